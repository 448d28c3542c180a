package vswitch

import (
	"slices"

	"github.com/vxswitch/vxswitch/frame"
)

// TooBig returns the switch's own stage for the slot TooBig. It answers as l3.TooBig does, at
// the rates of Config.TooBig, for the whole switch, and Stats.TooBig has its counters.
//
// In a VSI that has a tunnel it is there by itself, behind what the slot holds: a sender that
// never hears of the tunnel's MTU has ping, and no TCP. [NoTooBig] ends that. A VSI without a
// tunnel is as silent as any bridge, unless the slot is filled.
func (s *Switch) TooBig() Stage { return &s.tooBig }

// NoTooBig is a Stage for the slot TooBig: what is too long is dropped, and no sender is told.
type NoTooBig struct{}

// Process drops f.
func (NoTooBig) Process(*frame.Frame, frame.At) frame.Verdict { return frame.Drop(frame.TooBig) }

// last returns the stages behind those of all slots. s.mu is held.
func (v *VSI) last() (s Slots) {
	if slices.ContainsFunc(v.members, func(a *Attachment) bool { return a.port.tunnel != nil }) {
		s.TooBig = v.sw.TooBig()
	}
	return s
}
