package vswitch

import (
	"runtime"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/gso"
)

// busyBatches is how many batches a worker handles before it yields, so that a port that is never empty
// does not starve others.
const busyBatches = 64

// A worker takes the frames of one receive queue from read to write. Everything that it touches is its
// own, immutable, or safe for many readers.
type worker struct {
	epoch // odd while it handles a batch
	sw    *Switch
	port  *port
	id    int
	in    frame.Reader
	batch *frame.Batch
	done  chan struct{}

	at      frame.At
	now     int64         // the time for storm control in this batch; 0 = not read yet
	tag     uint32        // of the previous frame
	circuit *circuit      // of the previous frame; nil at the start of a batch
	from    uint16        // number of its port, or sub-port
	trace   *Trace        // nil if there is none
	verdict frame.Verdict // on the current frame, for trace
	tap     Tap           // nil if there is none
	offload Offload       // likewise
	recent  []recent      // for hints to it
	arrival arrival       // likewise
	egress  []*egress
	staged  []*egress // those with something to write
	version uint64    // of the switch's tables, when pruned
	adapter *adapter  // of those egresses that need it

	rx   *counters
	vsis map[*VSI]*counters
	of   *VSI      // the last VSI that was counted for
	last *counters // its counters
	// Added to rx once a batch.
	frames, bytes, forwarded uint64
	dropped, droppedBytes    uint64
	length                   uint64 // of the current frame, as read

	pending additions   // to the tallies of attachments
	counted frame.Count // frames of this batch in them, in
}

// An egress is one worker's list of frames for one port.
type egress struct {
	port *port
	to   frame.Writer
	out  []frame.Out
}

// run handles batches until Read fails.
func (w *worker) run() error {
	for n := 1; ; n++ {
		if err := w.in.Read(w.batch); err != nil {
			w.batch.Release()
			return err
		}
		w.enter()
		if b := w.batch; b.Gone != nil && b.Gone.Load() != b.Known {
			forgetPeers(b)
		}
		w.handle()
		w.leave()
		if n%busyBatches == 0 {
			runtime.Gosched()
		}
	}
}

// forgetPeers removes the peer numbers of a batch, because they may have been given to other peers
// between the look-up and enter.
func forgetPeers(b *frame.Batch) {
	for i := range b.Frames {
		b.Frames[i].From = 0
	}
}

// handle takes one batch from read to write.
func (w *worker) handle() {
	if v := w.sw.version.Load(); v != w.version {
		w.prune(v)
	}
	w.at.Tick = frame.Tick(w.sw.tick.Load())
	w.circuit, w.now = nil, 0
	w.tap = nil
	if t := w.sw.tap.Load(); t != nil {
		w.tap = *t
	}
	w.offload = nil
	if o := w.sw.offload.Load(); o != nil {
		w.offload = *o
	}
	if w.trace = w.sw.trace.Load(); w.trace == nil {
		for i := range w.batch.Frames {
			w.frame(&w.batch.Frames[i])
		}
	} else {
		for i := range w.batch.Frames {
			w.traced(&w.batch.Frames[i])
		}
	}
	w.flush()
	w.entered()
	w.rx.add(cFrames, w.frames)
	w.rx.add(cBytes, w.bytes)
	w.rx.add(cForwarded, w.forwarded)
	w.tell() // last: no snapshot has more accepted than received
	w.frames, w.bytes, w.forwarded, w.dropped, w.droppedBytes, w.counted = 0, 0, 0, 0, 0, frame.Count{}
}

// frame finds the attachment of f, has it decided, and carries out the verdict.
func (w *worker) frame(f *frame.Frame) {
	w.length = uint64(f.Len())
	to := f.From
	c, drop := w.attachment(f)
	f.From = frame.NewDest(w.from, to.Peer())
	w.frames++
	w.bytes += w.length
	if w.tap != nil && c != nil && w.port.p != nil {
		w.tap.Frame(c.vsi.vni, w.port.name, f)
	}
	if f.Drop != frame.NotDropped {
		drop = f.Drop
	}
	if drop != frame.NotDropped {
		w.drop(c, drop)
		return
	}
	f.VNI = c.vsi.vni
	if w.port.p == nil { // from the switch itself
		kills := f.Hash
		f.Hash = 0
		if to != 0 { // Send with a destination
			f.From = 0
			v := frame.Forward(to)
			if kills != w.sw.gens.Kills(to) { // which has been removed since
				v = frame.Drop(frame.PortDown)
			}
			w.act(f, c, v)
			return
		}
	}
	w.arrival.kept = w.offload != nil && c.fib != nil && w.arrived(f, c)
	v, e := c.decide(f, &w.at)
	if e == nil {
		w.act(f, c, v)
		return
	}
	w.forwarded++
	w.verdict = v
	if w.offload != nil {
		w.hint(f, c, e)
	}
	peer, skip := v.Dest().Peer(), uint16(0)
	if peer == 0 && e.port == w.port { // an entry for the flood list of a hub
		skip = f.From.Peer()
	}
	w.stage(f, e, peer, skip)
}

// attachment returns the circuit for the frame's port and tag, and removes a VLAN tag.
func (w *worker) attachment(f *frame.Frame) (*circuit, frame.Reason) {
	tag, unknown := uint32(f.VNI), frame.UnknownVNI
	if !w.port.byVNI {
		tag, unknown = 0, frame.UnknownVLAN
		if f.Kind == frame.Ethernet {
			tag = w.takeVLAN(f)
		}
	}
	if w.circuit == nil || tag != w.tag {
		c := w.find(f, tag)
		if c == nil {
			if w.from = w.port.num; w.port.gone.Load() {
				unknown = frame.PortDown
			}
			w.tag = noTag // w.from is not that of w.circuit
			return nil, unknown
		}
		if c != w.circuit {
			w.entered()
		}
		w.circuit, w.from = c, c.port.num
	}
	return w.circuit, frame.NotDropped
}

// find returns the first circuit that matches f, else the one with the tag. Where any match, the answer is for f alone: w.tag becomes
// noTag.
func (w *worker) find(f *frame.Frame, tag uint32) *circuit {
	w.tag = tag
	if list := w.port.matching.Load(); list != nil {
		w.tag = noTag
		if c := match(*list, tag, f); c != nil {
			return c
		}
	}
	c, _ := w.port.circuits.Load(tagKey(tag))
	return c
}

// noTag is the tag of no attachment.
const noTag = 1 << 31

// maxReenter limits how often stages may return one frame to the switch.
const maxReenter = 16

// act carries out v, short of writing. A stage that routes has changed the VNI of the frame to that of
// another segment.
func (w *worker) act(f *frame.Frame, c *circuit, v frame.Verdict) {
	for range maxReenter {
		if a := v.Action(); a != frame.ActReenter && a != frame.ActForward {
			break
		}
		var e *circuit
		if c, e, v = w.pass(f, c, v); c == nil {
			w.drop(nil, frame.UnknownVNI)
			return
		}
		if e != nil {
			w.forwarded++
			w.verdict = v
			w.hintRouted(f, e)
			w.stage(f, e, v.Dest().Peer(), 0)
			return
		}
	}
	w.verdict = v
	switch v.Action() {
	case frame.ActFlood:
		w.flood(f, c, v == frame.FloodLocal)
	case frame.ActReply:
		if r := w.reply(f, c); r != frame.NotDropped {
			w.drop(c, r)
			return
		}
		w.rx.add(cReplied, 1)
	case frame.ActDrop:
		w.drop(c, v.Reason())
	case frame.ActReenter, frame.ActForward:
		w.drop(c, frame.TTL)
	default:
		w.rx.add(cConsumed, 1)
	}
}

// pass handles a Forward or Reenter of a stage. Forward goes to its attachment, if the frame fits there.
// Reenter goes back into the segment of the frame's VNI, as a frame of the gateway. It returns the
// attachment to send to, or a new verdict, and the circuit for it.
func (w *worker) pass(f *frame.Frame, c *circuit, v frame.Verdict) (from, to *circuit, _ frame.Verdict) {
	reenter := v.Action() == frame.ActReenter
	if reenter {
		if f.From != 0 {
			w.at.From = f.Origin()
		}
		f.From, f.Tunnel, f.Replicated = 0, false, false
	}
	if f.VNI != c.vsi.vni {
		f.Horizon = 0
	}
	if reenter || f.VNI != c.vsi.vni {
		own, ok := w.sw.own.circuits.Load(tagKey(uint32(f.VNI)))
		if !ok {
			return nil, nil, v
		}
		c = own
	}
	switch {
	case reenter && f.Kind == frame.Ethernet: // needs neither checks nor learning
		v, to = c.egress(f, &w.at)
		return c, to, v
	case reenter:
		return c, nil, c.gateway(f, &w.at, frame.BadKind)
	}
	e := c.vsi.view.Load().find(v.Dest().Port())
	if e == nil {
		return c, nil, frame.Drop(frame.PortDown)
	}
	if f.Horizon != 0 && c.isolates(f, e) {
		return c, nil, frame.Drop(frame.Isolated)
	}
	if mtu := e.longest(f, v.Dest().Peer()); f.SegLen() > mtu && !gso.Shorten(f, mtu) {
		return c, nil, c.tooBig(f, &w.at, v.Dest(), mtu)
	}
	return c, e, v
}

// reply stages f to go back where it came from. A peer without a number cannot be answered: the tunnel
// would send to its flood list instead.
func (w *worker) reply(f *frame.Frame, c *circuit) frame.Reason {
	switch {
	case c.port.p == nil: // the switch itself asked
		return frame.NoRoute
	case c.port.tunnel != nil && f.From.Peer() == 0:
		return frame.NoPeer
	}
	f.GBP = frame.GBP{} // the switch is the sender
	w.stage(f, c, f.From.Peer(), 0)
	return frame.NotDropped
}

// stage puts f on the list of e's port. From then on, nothing may write to f.
func (w *worker) stage(f *frame.Frame, e *circuit, peer, skip uint16) {
	if e.native && f.Kind == frame.Ethernet && e.port.of.inOtherVLAN(f.Bytes()) {
		w.dropOut(e, frame.InnerVLAN)
		return
	}
	if e.slots.Egress != nil {
		if v := e.slots.Egress.Process(f, w.at); v.Action() == frame.ActDrop {
			w.dropOut(e, v.Reason())
			return
		}
	}
	var x *egress
	if n := int(e.port.num); n < len(w.egress) {
		x = w.egress[n]
	}
	if x == nil || x.port != e.port {
		x = w.newEgress(e.port)
	}
	if len(x.out) == 0 {
		w.staged = append(w.staged, x)
	}
	k := len(x.out)
	if k == cap(x.out) {
		x.out = append(x.out, frame.Out{})
	}
	x.out = x.out[:k+1]
	o := &x.out[k] // set in place: a literal would be copied
	o.F, o.Peer, o.Skip, o.Tag, o.Drop = f, peer, skip, e.tag, frame.NotDropped
}

// newEgress makes the list for p.
func (w *worker) newEgress(p *port) *egress {
	n := int(p.num)
	if n >= len(w.egress) {
		w.egress = append(w.egress, make([]*egress, n+1-len(w.egress))...)
	}
	x := &egress{port: p}
	w.egress[n] = x
	if p.of != p { // the Writer is that of the port
		m := int(p.of.num)
		if m >= len(w.egress) || w.egress[m] == nil || w.egress[m].port != p.of {
			w.newEgress(p.of)
		}
		x.to = w.egress[m].to
	} else {
		x.to = p.writer(w)
	}
	return x
}

// flush writes the lists, port by port, and counts them.
func (w *worker) flush() {
	for _, x := range w.staged {
		if w.tap != nil {
			w.tapped(x)
		}
		if err := x.to.Write(x.out); err != nil && !x.port.of.broken.Swap(true) {
			w.sw.log.Warn("write", "port", x.port.name, "err", err)
		}
		for i := 0; i < len(x.out); {
			i += w.sent(x.port, x.out[i:])
		}
		x.out = x.out[:0]
	}
	w.staged = w.staged[:0]
}

// sent counts and forgets the first frames of a list, which leave by one attachment. It returns their number.
func (w *worker) sent(p *port, out []frame.Out) int {
	var frames, bytes uint64
	tag, n := out[0].Tag, 0
	for ; n < len(out) && out[n].Tag == tag; n++ {
		o := &out[n]
		if o.Drop != frame.NotDropped {
			p.of.tx.add(cDrops+int(o.Drop), 1)
			w.dropVSI(o, o.Drop)
		} else {
			frames++
			bytes += uint64(o.F.Len())
		}
		o.F = nil // borrowed
	}
	if frames > 0 {
		c, ok := p.circuits.Load(tagKey(tag))
		var t *tally
		if ok {
			t = c.tally
		} else {
			t = w.sw.tallies.leaving(p, tag)
		}
		left := &w.count(t).tx
		left.Frames += frames
		left.Bytes += bytes
	}
	return n
}
