package vswitch

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/vxswitch/vxswitch/frame"
)

// The counts of an attachment are shared by all workers. Within a batch a worker adds up in memory of its own, once for each run
// of frames with the same attachment, and shows readers the sums at the end of the batch.

// A tally counts the frames of an attachment.
type tally struct {
	port *port
	tag  uint32

	rxFrames, rxBytes, txFrames, txBytes atomic.Uint64

	_ [64 - 48]byte // a cache line
}

// traffic is what came in and went out.
type traffic struct{ rx, tx frame.Count }

func (t *traffic) add(n traffic) {
	t.rx.Frames += n.rx.Frames
	t.rx.Bytes += n.rx.Bytes
	t.tx.Frames += n.tx.Frames
	t.tx.Bytes += n.tx.Bytes
}

func (t *tally) value() traffic {
	return traffic{frame.Count{Frames: t.rxFrames.Load(), Bytes: t.rxBytes.Load()}, frame.Count{Frames: t.txFrames.Load(), Bytes: t.txBytes.Load()}}
}

func (t *tally) stats() AttachmentStats {
	n := t.value()
	return AttachmentStats{Port: t.port.of.num, Tag: t.tag, Rx: n.rx, Tx: n.tx}
}

// tallies guards the lists of tallies that ports and VSIs have, and the sums of those that have gone.
type tallies struct{ sync.Mutex }

// open gives an attachment a tally.
func (s *tallies) open(a *Attachment) {
	s.Lock()
	defer s.Unlock()
	a.tally = &tally{port: a.port, tag: a.tag}
	a.port.of.tallies = append(a.port.of.tallies, a.tally)
	a.vsi.tallies = append(a.vsi.tallies, a.tally)
}

// shut ends an attachment that no worker knows any more. Its counts stay in those of the VSI. With keep they also stay in the
// list of its attachments.
func (s *tallies) shut(a *Attachment, keep bool) {
	s.Lock()
	defer s.Unlock()
	t, v := a.tally, a.vsi
	is := func(x *tally) bool { return x == t }
	if !keep {
		v.past.add(t.value())
		v.tallies = slices.DeleteFunc(v.tallies, is)
	}
	if p := a.port.of; !p.gone.Load() {
		p.past.add(t.value())
		p.tallies = slices.DeleteFunc(p.tallies, is)
	}
}

// ofPort returns the sum over the attachments that a port has and had.
func (s *tallies) ofPort(p *port) traffic {
	s.Lock()
	defer s.Unlock()
	all := p.past
	for _, t := range p.tallies {
		all.add(t.value())
	}
	return all
}

// list returns the counts of a VSI's attachments, and their sum with those that have gone.
func (s *tallies) list(v *VSI) (all traffic, list []AttachmentStats) {
	s.Lock()
	defer s.Unlock()
	all = v.past
	for _, t := range v.tallies {
		x := t.stats()
		all.add(traffic{x.Rx, x.Tx})
		list = append(list, x)
	}
	return all, list
}

// leaving returns the tally of an attachment that has just been unlinked: its detach waits for this batch.
func (s *tallies) leaving(p *port, tag uint32) *tally {
	s.Lock()
	defer s.Unlock()
	for _, t := range p.of.tallies {
		if t.port == p && t.tag == tag {
			return t
		}
	}
	return new(tally) // no frame was for it
}

// An addition is what a worker has counted for an attachment in the current batch.
type addition struct {
	of *tally
	traffic
}

// show adds it to the tally, where readers see it.
func (x *addition) show() {
	if x.rx.Frames != 0 {
		x.of.rxFrames.Add(x.rx.Frames)
		x.of.rxBytes.Add(x.rx.Bytes)
	}
	if x.tx.Frames != 0 {
		x.of.txFrames.Add(x.tx.Frames)
		x.of.txBytes.Add(x.tx.Bytes)
	}
	*x = addition{}
}

// additions has those of a few attachments; others take their turns.
type additions struct {
	of   [4]addition
	next uint8 // to be replaced
}

// count returns where to add for an attachment, until the next call.
func (w *worker) count(t *tally) *addition {
	p := &w.pending
	for i := range p.of {
		if p.of[i].of == t {
			return &p.of[i]
		}
	}
	x := &p.of[p.next%uint8(len(p.of))]
	p.next++
	x.show()
	x.of = t
	return x
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
	for i := range w.pending.of {
		w.pending.of[i].show()
	}
}
