package vtep

import (
	"sync/atomic"
	"time"

	"github.com/vxswitch/vxswitch/frame"
)

// Each receive queue and each worker that sends counts the frames of peers in a table of its own, once for each run of frames of
// one peer. Frames to a flood list count for the list, not for each of its peers, until somebody wants to know.

// A count is a number of frames and of their bytes.
type count struct{ frames, bytes atomic.Uint64 }

func (c *count) add(frames, bytes uint64) {
	c.frames.Add(frames)
	c.bytes.Add(bytes)
}

func (c *count) value() frame.Count {
	return frame.Count{Frames: c.frames.Load(), Bytes: c.bytes.Load()}
}

func (c *count) addTo(n *frame.Count) {
	n.Frames += c.frames.Load()
	n.Bytes += c.bytes.Load()
}

// received is what a queue has received from a peer.
type received struct {
	count
	last atomic.Int64 // time of the last batch, in Unix seconds
}

func (r *received) add(frames, bytes uint64, now int64) {
	r.count.add(frames, bytes)
	if r.last.Load() != now {
		r.last.Store(now)
	}
}

// rx returns what was received from a hop, and when the last of it.
func (v *VTEP) rx(h *hop) (n frame.Count, last int64) {
	for _, t := range v.received.All() {
		if x := t.At(uint32(h.num)); x != nil {
			x.addTo(&n)
			last = max(last, x.last.Load())
		}
	}
	return n, last
}

// heard returns how many frames were received from a hop.
func (v *VTEP) heard(h *hop) uint64 {
	n, _ := v.rx(h)
	return n.Frames
}

// tx returns what was sent to a hop, without what its flood lists have not passed on.
func (v *VTEP) tx(h *hop) frame.Count {
	n := h.flooded.value()
	for _, t := range v.sent.All() {
		if x := t.At(uint32(h.num)); x != nil {
			x.addTo(&n)
		}
	}
	return n
}

// uncount forgets the counts of a number that nobody uses any more.
func (v *VTEP) uncount(num uint16) {
	for _, t := range v.received.All() {
		if x := t.At(uint32(num)); x != nil {
			x.frames.Store(0)
			x.bytes.Store(0)
			x.last.Store(0)
		}
	}
	for _, t := range v.sent.All() {
		if x := t.At(uint32(num)); x != nil {
			x.frames.Store(0)
			x.bytes.Store(0)
		}
	}
}

// count adds frames that were sent to all of the list.
func (l *floodList) count(frames, bytes uint64) {
	l.sent.add(frames, bytes)
	if l.old.Load() {
		l.pass() // perhaps nobody else will
	}
}

// pass passes the counts of a list on to its hops.
func (l *floodList) pass() {
	if frames, bytes := l.sent.frames.Swap(0), l.sent.bytes.Swap(0); frames|bytes != 0 {
		for h := range l.all {
			h.flooded.add(frames, bytes)
		}
	}
	for x := range l.parts {
		x.pass()
	}
}

// replaced passes on the counts of a list that is in use no more, except by who has it already.
func (l *floodList) replaced() {
	l.old.Store(true)
	for x := range l.parts {
		x.old.Store(true)
	}
	l.pass()
}

// clock returns the time of the clock of a batch, or that of the system.
func clock(b *frame.Batch) int64 {
	if b.Clock != nil {
		return b.Clock.Load()
	}
	return time.Now().Unix()
}
