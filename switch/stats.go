package vswitch

import (
	"sync"
	"sync/atomic"

	"github.com/vxswitch/vxswitch/fdb"
	"github.com/vxswitch/vxswitch/frame"
)

// Indices into counters. What a port accepted and sent is what its attachments have; see tally.
const (
	cFrames = iota
	cBytes
	cForwarded
	cReplied
	cConsumed
	cBroadcast
	cMulticast
	cUnknown
	cDrops
	numCounters = cDrops + int(frame.NumReasons)
)

func floodCounter(c Class) int {
	switch c {
	case Broadcast:
		return cBroadcast
	case Multicast:
		return cMulticast
	}
	return cUnknown
}

// counters of received frames belong to one worker each. Those of copies that were not sent are shared by all
// workers that send to the port: separate ones would be 65,536 for 256 ports that send to each other.
type counters [numCounters]atomic.Uint64

func (c *counters) values() (v [numCounters]uint64) {
	for i := range c {
		v[i] = c[i].Load()
	}
	return v
}

func (c *counters) add(i int, n uint64) {
	if n != 0 {
		c[i].Add(n)
	}
}

// A ledger sums the counters of several workers.
type ledger struct {
	mu   sync.Mutex
	live map[*counters]struct{}
	past [numCounters]uint64 // of workers that have ended
}

func (l *ledger) join() *counters {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.live == nil {
		l.live = map[*counters]struct{}{}
	}
	c := new(counters)
	l.live[c] = struct{}{}
	return c
}

func (l *ledger) leave(c *counters) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.live, c)
	for i, n := range c.values() {
		l.past[i] += n
	}
}

func (l *ledger) sum() [numCounters]uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.past
	for c := range l.live {
		for i, n := range c.values() {
			s[i] += n
		}
	}
	return s
}

// drop counts a dropped frame. c is nil if no attachment was found.
func (w *worker) drop(c *circuit, r frame.Reason) {
	w.verdict = frame.Drop(r)
	w.rx.add(cDrops+int(r), 1)
	w.dropped++
	w.droppedBytes += w.length
	if c != nil {
		w.ofVSI(c.vsi).add(cDrops+int(r), 1)
	}
}

// dropOut counts a copy that was not sent to e.
func (w *worker) dropOut(e *circuit, r frame.Reason) {
	e.port.of.tx.add(cDrops+int(r), 1)
	w.ofVSI(e.vsi).add(cDrops+int(r), 1)
}

// dropVSI counts, for the frame's VSI, a copy that its port did not take.
func (w *worker) dropVSI(o *frame.Out, r frame.Reason) {
	if own, ok := w.sw.own.circuits.Load(tagKey(o.F.VNI)); ok {
		w.ofVSI(own.vsi).add(cDrops+int(r), 1)
	}
}

func (w *worker) ofVSI(v *VSI) *counters {
	if v == w.of {
		return w.last
	}
	c := w.vsis[v]
	if c == nil {
		c = v.ledger.join()
		w.vsis[v] = c
	}
	w.of, w.last = v, c
	return c
}

// prune forgets ports and VSIs that are gone.
func (w *worker) prune(version uint64) {
	w.version = version
	w.of, w.last = nil, nil
	for i, x := range w.egress {
		if x != nil && x.port.gone.Load() {
			w.egress[i] = nil
		}
	}
	for v, c := range w.vsis {
		if v.gone.Load() {
			v.ledger.leave(c)
			delete(w.vsis, v)
		}
	}
}

// retire adds the counters of a worker that has ended to the sums.
func (w *worker) retire() {
	w.port.rx.leave(w.rx)
	for v, c := range w.vsis {
		v.ledger.leave(c)
	}
}

// Flooded counts flooded frames by class, each once regardless of the number of copies.
type Flooded struct {
	Broadcast uint64 `json:"broadcast"`
	Multicast uint64 `json:"multicast"`
	Unknown   uint64 `json:"unknown"`
}

// PortStats counts the frames of a port. Every frame in Rx is in exactly one of Forwarded, Flood,
// Replied, Consumed and RxDrops. TxDrops counts copies for this port that were not sent. Counters never
// decrease. Under traffic a snapshot may include the drops of a batch but not yet its frames.
type PortStats struct {
	Port      uint16      `json:"port"`
	Name      string      `json:"name"`
	Rx        frame.Count `json:"rx"`
	Accepted  frame.Count `json:"accepted"` // Rx without RxDrops
	Tx        frame.Count `json:"tx"`
	Forwarded uint64      `json:"forwarded"` // to one destination
	Replied   uint64      `json:"replied"`   // answered through the port they came in on
	Consumed  uint64      `json:"consumed"`  // taken by a stage
	Flood     Flooded     `json:"flood"`
	RxDrops   frame.Drops `json:"rx_drops"`
	TxDrops   frame.Drops `json:"tx_drops"`
}

// AttachmentStats counts the frames of an attachment as PortStats counts those of the port: the sum over
// the attachments that a port has and had is its Accepted and its Tx.
//
// Rx are the frames that came in through the attachment and were not dropped, neither by the checks at the
// entrance nor afterwards, with the bytes that were read. Tx are the copies of frames that the port took to
// send them here. A flooded frame is one in Tx of each attachment that it leaves by, and a tunnel counts it
// again for each peer.
//
// A routed frame is in Rx of the attachment where it came in, and in Tx of the one where it leaves, which is
// in another VSI. An answer of a stage, such as ARP suppression, is in Tx of the attachment where the question
// is in Rx. What the switch itself sends (Inject, Send) is in Tx only, and what a gateway or another stage
// keeps, in Rx only.
type AttachmentStats struct {
	Port uint16      `json:"port"`
	Tag  uint32      `json:"tag"` // VNI, or VLAN with frame.ServiceTag or without
	Rx   frame.Count `json:"rx"`
	Tx   frame.Count `json:"tx"`
}

// VSIStats counts the frames of a VSI and the changes of its FDB. Rx and Tx are the sums over the
// attachments that it has and had, and never decrease.
type VSIStats struct {
	VNI         frame.VNI         `json:"vni"`
	Rx          frame.Count       `json:"rx"`
	Tx          frame.Count       `json:"tx"`
	Attachments []AttachmentStats `json:"attachments"` // in the order they were attached
	Flood       Flooded           `json:"flood"`
	Drops       frame.Drops       `json:"drops"`
	FDB         fdb.Stats         `json:"fdb"`
	Held        uint64            `json:"held"` // times a port was blocked because of a flapping MAC
}

// Stats is a snapshot of the counters of a switch. Port 0 is the switch itself: its Rx counts injected
// frames, and its TxDrops those that found no room in the queue.
type Stats struct {
	Ports      []PortStats       `json:"ports"`
	VSIs       []VSIStats        `json:"vsis"`
	TooBig     frame.TooBigStats `json:"too_big"`     // of Switch.TooBig
	EventsLost uint64            `json:"events_lost"` // events that did not fit the queue of a reader, which got an EventOverflow
}

func flooded(s *[numCounters]uint64) Flooded {
	return Flooded{Broadcast: s[cBroadcast], Multicast: s[cMulticast], Unknown: s[cUnknown]}
}

// Stats returns a snapshot, with ports and VSIs in the order of their numbers. After Close it returns
// the last one, with the ports that were attached then.
func (s *Switch) Stats() Stats {
	if last := s.last.Load(); last != nil {
		return *last
	}
	return s.stats(*s.ports.Load())
}

func (s *Switch) stats(ports []*port) Stats {
	st := Stats{TooBig: s.tooBig.Stats(), EventsLost: s.events.lost.Load()}
	for _, p := range ports {
		if p != nil && p.of == p {
			st.Ports = append(st.Ports, p.stats(s.tallies.ofPort(p)))
		}
	}
	for _, v := range s.VSIs() {
		st.VSIs = append(st.VSIs, v.Stats())
	}
	return st
}

// Stats returns a snapshot of the counters of the VSI. After Delete it returns the last one.
func (v *VSI) Stats() VSIStats {
	sum := v.ledger.sum()
	all, list := v.sw.tallies.list(v)
	return VSIStats{
		VNI: v.vni, Rx: all.rx, Tx: all.tx, Attachments: list,
		Flood: flooded(&sum), Drops: frame.Drops(sum[cDrops:]), FDB: v.fdb.Stats(), Held: v.held.Load(),
	}
}

// Stats returns a snapshot of the counters of the attachment. After Detach it returns the last one.
func (a *Attachment) Stats() AttachmentStats { return a.tally.stats() }

// stats returns the counters beside those of its attachments, which were read before.
func (p *port) stats(sum traffic) PortStats {
	rx, tx := p.rx.sum(), p.tx.values()
	return PortStats{
		Port: p.num, Name: p.name,
		Rx:        frame.Count{Frames: rx[cFrames], Bytes: rx[cBytes]},
		Accepted:  sum.rx,
		Tx:        sum.tx,
		Forwarded: rx[cForwarded], Replied: rx[cReplied], Consumed: rx[cConsumed], Flood: flooded(&rx),
		RxDrops: frame.Drops(rx[cDrops:]), TxDrops: frame.Drops(tx[cDrops:]),
	}
}
