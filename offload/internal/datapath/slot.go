package datapath

import (
	"sync/atomic"
	"time"
)

// Epochs is the number of epochs. They stay in the cache; two MACs that share one, and have flows, void each other's when one changes.
const Epochs = 1 << 14

// Global is the epoch that counts changes which may concern any flow.
const Global = 0

// A Validity is the values of three epochs.
type Validity struct {
	Global, Src, Dst uint64
}

// A Slot is the validity and the counters of one flow, in memory that the programs share. It is struct slot in
// bpf/maps.h. One goroutine writes it.
type Slot struct {
	global, src, dst atomic.Uint64
	packets, bytes   atomic.Uint64
	last             atomic.Uint64
	merged           atomic.Uint64
	joined           atomic.Uint64
}

// Validate says for which epochs the flow is valid. They must have been read before the decision was made, which must be
// the one that the entry has.
func (s *Slot) Validate(v Validity) {
	s.src.Store(v.Src)
	s.dst.Store(v.Dst)
	s.global.Store(v.Global)
}

// Validity returns the last argument of Validate; its Global is 0 if the slot is dead.
func (s *Slot) Validity() Validity {
	return Validity{s.global.Load(), s.src.Load(), s.dst.Load()}
}

// Kill makes the flow a miss.
func (s *Slot) Kill() { s.global.Store(0) }

// Clear sets the slot to zero, before another flow gets it: after [Grace].
func (s *Slot) Clear() {
	for _, v := range [...]*atomic.Uint64{&s.global, &s.src, &s.dst, &s.packets, &s.bytes, &s.last, &s.merged, &s.joined} {
		v.Store(0)
	}
}

// Counters returns the frames that the flow has carried since Clear, and their bytes from the destination MAC on. A
// superframe is one frame. Last is when the last one was carried, by the coarse monotonic clock of the kernel
// (CLOCK_MONOTONIC_COARSE), 0 if there was none.
func (s *Slot) Counters() (packets, bytes uint64, last time.Duration) {
	return s.packets.Load(), s.bytes.Load(), time.Duration(s.last.Load())
}
