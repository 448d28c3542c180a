package icmperr

import (
	"sync/atomic"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/wire"
)

// A PathMTU answers frames that are too long for their egress, as documented at vswitch.Switch.TooBig. Before Init it
// answers none.
type PathMTU struct {
	Limiter
	count [numOutcomes]atomic.Uint64
}

// An Outcome is the result for a frame: an index into PathMTU.count.
type Outcome int

// Outcomes, as [frame.TooBigStats] explains them.
const (
	Sent4 Outcome = iota
	Sent6
	limited
	fragmenting
	notIP
	notHost
	icmpError
	fragment
	Malformed
	fits
	tinyMTU
	unreachable
	numOutcomes
)

// Process answers f, which is longer than at.MTU, with frame.Reply; f is then the answer, not longer than at.MTU. If there
// is no answer, it returns frame.Drop(frame.TooBig) and leaves f unchanged. For a frame that fits it returns frame.Continue.
func (t *PathMTU) Process(f *frame.Frame, at frame.At) frame.Verdict {
	if f.SegLen() <= at.MTU {
		return frame.Continue
	}
	o := t.answer(f, at)
	t.count[o].Add(1)
	if o == Sent4 || o == Sent6 {
		return frame.Reply
	}
	return frame.Drop(frame.TooBig)
}

// answer does what IPv4 and IPv6 have in common.
func (t *PathMTU) answer(f *frame.Frame, at frame.At) Outcome {
	if f.From.Port() == 0 || f.Tunnel && f.From.Peer() == 0 {
		return unreachable
	}
	switch f.Kind {
	case frame.IPv4:
		return t.answer4(f, 0, at)
	case frame.IPv6:
		return t.answer6(f, 0, at)
	}
	e, ok := wire.ParseEthernet(f.Bytes())
	if !ok {
		return Malformed
	}
	dst, src := frame.MAC(e.Dst()), frame.MAC(e.Src())
	switch {
	case !dst.IsHost() || !src.IsHost():
		return notHost
	}
	switch etherType, ip := e.Network(); etherType {
	case wire.TypeIPv4:
		return t.answer4(f, ip, at)
	case wire.TypeIPv6:
		return t.answer6(f, ip, at)
	}
	return notIP
}

// Stats returns a snapshot.
func (t *PathMTU) Stats() frame.TooBigStats {
	n := func(o Outcome) uint64 { return t.count[o].Load() }
	return frame.TooBigStats{
		Sent4: n(Sent4), Sent6: n(Sent6), Limited: n(limited), Fragmenting: n(fragmenting), NotIP: n(notIP),
		NotHost: n(notHost), ICMPError: n(icmpError), Fragment: n(fragment), Malformed: n(Malformed),
		Fits: n(fits), TinyMTU: n(tinyMTU), Unreachable: n(unreachable),
	}
}
