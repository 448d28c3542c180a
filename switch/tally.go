package vswitch

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/perworker"
)

// Each worker counts the frames of each attachment in a table of its own. Within a batch it adds up in plain memory, once for
// each run of frames with the same attachment, and at the end of the batch it adds to the table, where readers sum.

// A tally is the number of an attachment in the workers' tables.
type tally struct {
	num   uint32
	port  uint16
	tag   uint32
	final *traffic // of one that has gone; under tallies.mu
}

// traffic is what came in and went out.
type traffic struct{ rx, tx frame.Count }

func (t *traffic) add(n traffic) {
	t.rx.Frames += n.rx.Frames
	t.rx.Bytes += n.rx.Bytes
	t.tx.Frames += n.tx.Frames
	t.tx.Bytes += n.tx.Bytes
}

// A tallied is what one worker has counted for an attachment.
type tallied struct {
	rxFrames, rxBytes, txFrames, txBytes atomic.Uint64

	at uint32 // in worker.pending; may be that of an earlier batch
}

func (x *tallied) value() traffic {
	return traffic{frame.Count{Frames: x.rxFrames.Load(), Bytes: x.rxBytes.Load()}, frame.Count{Frames: x.txFrames.Load(), Bytes: x.txBytes.Load()}}
}

func (x *tallied) add(n *traffic) {
	if n.rx.Frames != 0 {
		x.rxFrames.Add(n.rx.Frames)
		x.rxBytes.Add(n.rx.Bytes)
	}
	if n.tx.Frames != 0 {
		x.txFrames.Add(n.tx.Frames)
		x.txBytes.Add(n.tx.Bytes)
	}
}

func (x *tallied) clear() {
	x.rxFrames.Store(0)
	x.rxBytes.Store(0)
	x.txFrames.Store(0)
	x.txBytes.Store(0)
}

type tallyTable = perworker.Table[tallied]

// tallies sums the tables of the workers.
type tallies struct {
	mu   sync.Mutex
	next uint32 // the last number given; 0 is the switch itself, in all VSIs
	free []uint32
	live map[*tallyTable]struct{}
	past tallyTable // of workers that have ended
}

// open gives an attachment a number.
func (s *tallies) open(a *Attachment) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := &tally{port: a.port.num, tag: a.tag}
	if n := len(s.free); n > 0 {
		t.num, s.free = s.free[n-1], s.free[:n-1]
	} else {
		s.next++
		t.num = s.next
	}
	a.tally = t
	a.port.tallies = append(a.port.tallies, t)
	a.vsi.tallies = append(a.vsi.tallies, t)
}

// shut ends an attachment that no worker knows any more. Its counts stay in those of the VSI. With keep they also stay in the
// list of its attachments.
func (s *tallies) shut(a *Attachment, keep bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, v := a.tally, a.vsi
	n := s.sum(t)
	t.final = &n
	for x := range s.of(t.num) {
		x.clear()
	}
	s.free = append(s.free, t.num)
	if !keep {
		v.past.add(n)
		v.tallies = slices.DeleteFunc(v.tallies, func(x *tally) bool { return x == t })
	}
	if !a.port.gone.Load() {
		a.port.past.add(n)
		a.port.tallies = slices.DeleteFunc(a.port.tallies, func(x *tally) bool { return x == t })
	}
}

func (s *tallies) join(t *tallyTable) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.live == nil {
		s.live = map[*tallyTable]struct{}{}
	}
	s.live[t] = struct{}{}
}

func (s *tallies) leave(t *tallyTable) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.live, t)
	for num, x := range t.All {
		if n := x.value(); n != (traffic{}) {
			s.past.Of(num).add(&n)
		}
	}
}

// of iterates over what there is under a number. s.mu is held.
func (s *tallies) of(num uint32) func(func(*tallied) bool) {
	return func(yield func(*tallied) bool) {
		if x := s.past.At(num); x != nil && !yield(x) {
			return
		}
		for t := range s.live {
			if x := t.At(num); x != nil && !yield(x) {
				return
			}
		}
	}
}

// sum returns the counts of an attachment. s.mu is held.
func (s *tallies) sum(t *tally) (n traffic) {
	if t.final != nil {
		return *t.final
	}
	for x := range s.of(t.num) {
		n.add(x.value())
	}
	return n
}

func (s *tallies) stats(t *tally) AttachmentStats {
	n := s.sum(t)
	return AttachmentStats{Port: t.port, Tag: t.tag, Rx: n.rx, Tx: n.tx}
}

// ofPort returns the sum over the attachments that a port has and had.
func (s *tallies) ofPort(p *port) traffic {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := p.past
	for _, t := range p.tallies {
		all.add(s.sum(t))
	}
	return all
}

// list returns the counts of a VSI's attachments, and their sum with those that have gone.
func (s *tallies) list(v *VSI) (all traffic, list []AttachmentStats) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all = v.past
	for _, t := range v.tallies {
		x := s.stats(t)
		all.add(traffic{x.Rx, x.Tx})
		list = append(list, x)
	}
	return all, list
}

// An addition is what a worker has counted for an attachment in the current batch.
type addition struct {
	in *tallied
	traffic
}

// count returns where to add for an attachment, until the next call.
func (w *worker) count(t *tally) *addition {
	in := w.tallies.Of(t.num)
	if i := int(in.at); i < len(w.pending) && w.pending[i].in == in {
		return &w.pending[i]
	}
	in.at = uint32(len(w.pending))
	w.pending = append(w.pending, addition{in: in})
	return &w.pending[in.at]
}

// entered counts, for the attachment of the frames so far, those that were not dropped since the last call.
func (w *worker) entered() {
	now := frame.Count{Frames: w.frames - w.dropped, Bytes: w.bytes - w.droppedBytes}
	if c := w.circuit; c != nil && now.Frames != w.counted.Frames {
		p := w.count(c.tally)
		p.rx.Frames += now.Frames - w.counted.Frames
		p.rx.Bytes += now.Bytes - w.counted.Bytes
	}
	w.counted = now
}

// tell shows readers what the batch has added.
func (w *worker) tell() {
	for i := range w.pending {
		p := &w.pending[i]
		p.in.add(&p.traffic)
	}
	w.pending = w.pending[:0]
}
