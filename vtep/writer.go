package vtep

import (
	"errors"

	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/gso"
	"github.com/vxswitch/vxswitch/internal/perworker"
)

// A writer puts frames into datagrams. It builds headers in scratch memory, because other ports may send the same
// frame.
type writer struct {
	v        *VTEP
	worker   int
	counts   *perworker.Table[count] // of hops
	send     [2]outbox
	scratch  []scratch        // parallel to the Outs
	groups   []wrapped        // towards multicast groups, of a VTEP that marks copies; likewise
	headers  []byte           // those that do not fit wrapped.header
	to       []frame.Endpoint // parts of flood lists
	in       innerIP          // of the current frame
	mark     *tos             // of its VNI; nil = as its hop has it
	services Services         // of a VXLAN-GPE tunnel; nil if there are none

	cutter gso.Cutter
	pieces [][]byte // of superframes: headers in scratch, payload in the frame
	runs   [][]byte // of runs: the parts of several datagrams

	// Copies are counted once for each run of frames to one hop, or to one list without one peer.
	hop  *hop
	list *floodList
	skip uint16
	run  uint64
	size uint64 // bytes of the run
}

// An outbox has the datagrams for one address family.
type outbox struct {
	link  *link
	to    frame.Sender // of link
	ds    []frame.Datagram
	owner []int // index of the Out of each datagram, before they were joined
	span  []int // number of datagrams in each, after they were joined
}

// follow changes to the current link of the family, and reports whether it was another.
func (l *outbox) follow(now *link, worker int) bool {
	if l.link == now {
		return false
	}
	l.link, l.to = now, now.u.Sender(worker)
	return true
}

// again sends the datagrams that were lost because SetUnderlay closed the underlay.
func (l *outbox) again() (err error) {
	for k := range l.ds {
		if d := &l.ds[k]; int(d.Lost) == len(d.To) {
			d.Lost, d.Drop = 0, frame.NotDropped
			err = errors.Join(err, l.to.Send(l.ds[k:k+1]))
		}
	}
	return err
}

// A scratch is the memory for one Out.
type scratch struct {
	wrapped
	copies int
	lost   int          // copies that were not sent
	drop   frame.Reason // of the last of them
	losses [3]loss      // lost, by family, and those that were too long
}

type loss struct {
	copies int
	why    frame.Reason
}

const tooLong = 2 // index of losses beside family4 and family6

// lose records copies that are not sent. Most packets lose none, and never touch losses.
func (p *scratch) lose(of, copies int, why frame.Reason) {
	if p.lost == 0 {
		p.losses = [3]loss{}
	}
	p.lost += copies
	p.drop = why
	p.losses[of].copies += copies
	p.losses[of].why = why
}

// wrapped is a frame with its tunnel header.
type wrapped struct {
	header [encap.VXLANLen]byte
	whole  [2][]byte // header, frame
	parts  [][]byte  // whole, or the pieces of a superframe
	seg    uint16    // 0, or the size of these segments
	extra  uint16    // bytes of an NSH, which the MTU does not leave room for
}

// release forgets the borrowed frame.
func (x *wrapped) release() { x.whole[1], x.parts = nil, nil }

// Write sends each frame to its peer, or with peer 0 to the flood list of its VNI.
func (w *writer) Write(out []frame.Out) error {
	w.grow(len(out))
	varied, marked := w.v.varied.Load() != 0, w.v.marked.Load() != 0
	w.mark, w.services = nil, nil
	if s := w.v.services.Load(); s != nil {
		w.services = *s
	}
	for i := range out {
		o := &out[i]
		w.scratch[i].copies, w.scratch[i].lost = 0, 0
		if o.F.Kind != frame.Ethernet || w.v.cfg.Type != encap.TypeVXLAN {
			if o.Drop = w.fits(o); o.Drop != frame.NotDropped {
				continue
			}
		}
		if o.F.Hash == 0 {
			o.F.Hash = w.v.flow(o.F)
		}
		w.in.find(o.F)
		if marked {
			w.mark = w.v.tosOf(o.Tag)
		}
		if o.Peer != 0 {
			o.Drop = w.unicast(i, o)
		} else {
			o.Drop = w.flood(i, o, varied)
		}
	}
	w.count()
	w.hop, w.list = nil, nil
	err := w.flush()
	var frames, bytes uint64
	for i := range out {
		p := &w.scratch[i]
		n := p.copies - p.lost
		frames += uint64(n)
		bytes += uint64(n * out[i].F.Len())
		if p.lost > 0 && n == 0 {
			out[i].Drop = p.drop
		} else if p.lost > 0 {
			for _, l := range p.losses {
				w.v.lost[l.why].Add(uint64(l.copies))
			}
		}
		p.release()
	}
	for i := range min(len(out), len(w.groups)) {
		w.groups[i].release()
	}
	if len(w.pieces) > 0 {
		clear(w.pieces) // borrowed
		w.pieces = w.pieces[:0]
		w.cutter.Reset()
	}
	if len(w.runs) > 0 {
		clear(w.runs) // borrowed
		w.runs = w.runs[:0]
	}
	if frames > 0 {
		w.v.txFrames.Add(frames)
		w.v.txBytes.Add(bytes)
	}
	return err
}

func (w *writer) grow(n int) {
	if n > len(w.scratch) {
		w.scratch = make([]scratch, max(n, frame.MaxBatch))
		for i := range w.scratch {
			w.scratch[i].whole[0] = w.scratch[i].header[:w.v.cfg.Type.Header()]
		}
		if w.v.marksCopies() {
			w.groups = make([]wrapped, len(w.scratch))
		}
	}
	w.to, w.headers = w.to[:0], w.headers[:0]
	for s := range w.send {
		w.send[s].ds, w.send[s].owner = w.send[s].ds[:0], w.send[s].owner[:0]
	}
}

func (w *writer) unicast(i int, o *frame.Out) frame.Reason {
	h := w.v.hops.get(o.Peer)
	if h != nil && h.family < 0 {
		h = h.pick(o.F.Hash)
	}
	if h == nil {
		return frame.NoPeer
	}
	vni := h.vni
	if vni == 0 {
		vni = frame.VNI(o.Tag)
	}
	if o.F.Kind != frame.Ethernet {
		r := w.bare()
		if r == frame.NotDropped && w.v.cfg.Type.Bare() {
			r = w.loops(o.F, h)
		}
		if r != frame.NotDropped {
			return r
		}
	}
	x := &w.scratch[i].wrapped
	if r := w.wrap(x, o.F, vni, false, h); r != frame.NotDropped {
		return r
	}
	w.stage(int(h.family), i, x, o.F, h.to.Load()[:], w.v.headerTo(h))
	if h != w.hop {
		w.count()
		w.hop, w.list = h, nil
	}
	w.run++
	w.size += uint64(o.F.Len())
	return frame.NotDropped
}

// flood stages one datagram for each address family, or a few if peers have headers or path MTUs of their own. The
// number of peers does not change the number of Sends.
func (w *writer) flood(i int, o *frame.Out, varied bool) frame.Reason {
	n, ok := w.v.networks.Load(vniKey(o.Tag))
	if !ok {
		return frame.NoPeer
	}
	l, p := n.flood.Load().listFor(o.F), &w.scratch[i]
	extra := 0
	if !l.noPeers() {
		if r := w.wrap(&p.wrapped, o.F, frame.VNI(o.Tag), true, nil); r != frame.NotDropped {
			return r
		}
		extra = int(p.extra)
	}
	x := &p.wrapped // towards groups
	if len(l.groups) > 0 {
		var r frame.Reason
		if x, r = w.wrapGroups(l, i, o); r != frame.NotDropped {
			return r
		}
		extra = max(extra, int(x.extra))
	}
	// A frame may be too long for one family, or with an NSH for a peer.
	varied = varied || o.F.SegLen()+extra > w.v.least() && (extra > 0 || !w.v.oneFamily())
	if varied {
		w.count()
		w.hop, w.list = nil, nil
	}
	for s := range l.hops {
		to := l.to[s]
		switch {
		case varied:
			w.each(l, s, i, o)
			continue
		case o.Skip != 0:
			to = w.without(l, s, o.Skip)
		}
		if len(to) > 0 {
			w.stage(s, i, &p.wrapped, o.F, to, w.v.header)
		}
	}
	if len(l.groups) > 0 {
		w.toGroups(l, x, i, o, varied)
	}
	if p.copies == 0 {
		return frame.NoPeer
	}
	if varied {
		return frame.NotDropped
	}
	if l != w.list || o.Skip != w.skip {
		w.count()
		w.hop, w.list, w.skip = nil, l, o.Skip
	}
	w.run++
	w.size += uint64(o.F.Len())
	return frame.NotDropped
}

// count adds a run to the counters of its peers.
func (w *writer) count() {
	if w.hop != nil {
		w.counts.Of(uint32(w.hop.num)).add(w.run, w.size)
	}
	switch {
	case w.list == nil:
	case w.skip == 0:
		w.list.count(w.run, w.size)
	default:
		for h := range w.list.all {
			if h.num != w.skip {
				w.counts.Of(uint32(h.num)).add(w.run, w.size)
			}
		}
	}
	w.run, w.size = 0, 0
}

// without returns the endpoints of the list without the peer skip, in scratch memory.
func (w *writer) without(l *floodList, s int, skip uint16) []frame.Endpoint {
	from := len(w.to)
	for i, h := range l.hops[s] {
		if h.num != skip {
			w.to = append(w.to, l.to[s][i])
		}
	}
	return w.to[from:len(w.to):len(w.to)]
}

// each stages a flooded frame if peers differ in header or MTU. Consecutive peers with the same header share a
// datagram. A peer whose MTU is too small loses its copy.
func (w *writer) each(l *floodList, s, i int, o *frame.Out) {
	from, p := len(w.to), &w.scratch[i]
	var head *header
	send := func() {
		if to := w.to[from:len(w.to):len(w.to)]; len(to) > 0 {
			w.stage(s, i, &p.wrapped, o.F, to, head)
		}
		from = len(w.to)
	}
	for k, h := range l.hops[s] {
		if h.num == o.Skip {
			continue
		}
		if o.F.SegLen()+int(p.extra) > w.v.mtuTo(h) {
			p.copies++
			p.lose(tooLong, 1, frame.TooBig)
			continue
		}
		if c := w.v.headerTo(h); c != head {
			send()
			head = c
		}
		w.to = append(w.to, l.to[s][k])
		w.counts.Of(uint32(h.num)).add(1, uint64(o.F.Len()))
	}
	send()
}

// stage adds a datagram, reusing memory.
func (w *writer) stage(s, i int, x *wrapped, f *frame.Frame, to []frame.Endpoint, head *header) {
	l := &w.send[s]
	w.scratch[i].copies += len(to)
	k := len(l.ds)
	if k == cap(l.ds) {
		l.ds = append(l.ds, frame.Datagram{})
	}
	l.ds = l.ds[:k+1]
	d := &l.ds[k]
	d.Parts, d.To, d.Seg = x.parts, to, x.seg
	d.Flow = uint16(f.Hash)
	head.fill(d, &w.in, f.Priority, w.mark)
	d.Lost, d.Drop = 0, frame.NotDropped
	l.owner = append(l.owner, i)
}

func (w *writer) flush() (err error) {
	for s := range w.send {
		l := &w.send[s]
		if len(l.ds) == 0 {
			continue
		}
		w.join(l)
		now := &w.v.families[s].link
		l.follow(now.Load(), w.worker)
		e := l.to.Send(l.ds)
		for e != nil && l.follow(now.Load(), w.worker) {
			e = l.again()
		}
		if e != nil {
			err = e
		}
		first := 0
		for k := range l.ds {
			if d := &l.ds[k]; d.Lost > 0 {
				for _, i := range l.owner[first : first+l.span[k]] {
					w.scratch[i].lose(s, int(d.Lost), d.Drop)
				}
			}
			first += l.span[k]
		}
	}
	return err
}
