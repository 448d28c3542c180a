package bfd

import (
	"container/heap"
	"time"
)

// timers is a heap of sessions by the time at which to look at them. The time may be early: packets that arrive do not move
// it.
type timers []*session

// set puts a session in its place.
func (h *timers) set(x *session, at time.Duration) {
	x.at = at
	if x.index < 0 {
		heap.Push(h, x)
	} else {
		heap.Fix(h, x.index)
	}
}

func (h *timers) remove(x *session) {
	if x.index >= 0 {
		heap.Remove(h, x.index)
	}
}

// Len implements [heap.Interface].
func (h timers) Len() int { return len(h) }

// Less implements [heap.Interface].
func (h timers) Less(i, j int) bool { return h[i].at < h[j].at }

// Swap implements [heap.Interface].
func (h timers) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

// Push implements [heap.Interface].
func (h *timers) Push(x any) {
	s := x.(*session)
	s.index = len(*h)
	*h = append(*h, s)
}

// Pop implements [heap.Interface].
func (h *timers) Pop() any {
	old := *h
	x := old[len(old)-1]
	old[len(old)-1] = nil
	*h, x.index = old[:len(old)-1], -1
	return x
}
