package vswitch

import (
	"reflect"
	"slices"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/absent"
	"github.com/vxswitch/vxswitch/setting"
)

// A Stage fills a slot of decide. It may rewrite the frame in place, but must not block, allocate, or
// keep the frame. If it returns Continue, the next step decides.
type Stage interface {
	Process(f *frame.Frame, at frame.At) frame.Verdict
}

// A Housekeeper is a Stage with periodic work. While it is in a slot, the switch calls Housekeep about
// once a second, and only once if it is in several. Housekeep must not wait. The type must be
// comparable, as pointers are.
type Housekeeper interface {
	Stage
	Housekeep(now frame.Tick)
}

// A Leaver is a Stage that remembers where frames came from. The switch calls Left when a port has left a segment,
// or a peer its tunnel, and unless it is a Selector when their MACs are flushed: what it has learned from d is old, for a port also
// what it has learned from the peers behind it. Left must not call the switch, except for Notify. The type must be comparable.
type Leaver interface {
	Stage
	Left(d frame.Dest)
}

// A Router is a Stage for slot Gateway of a VSI that routes for a VRF. EventGatewayUp and EventGatewayDown say when a
// segment gets and loses one. The type must be comparable.
type Router interface {
	Stage
	VRFName() string
}

// A Stateful is a Stage that has learned something; see [Switch.State]. The type must be comparable.
type Stateful interface {
	Stage
	State(yield func(frame.Event) bool) // one event for each fact; yield must not be called with a lock that Process takes
}

// A Confiner is a Stage for slot Neighbour that answers every request itself. If Confines is true, the
// port reaches the gateway and nobody else: frames to MACs other than the switch's own are dropped as
// frame.NotGateway. Tunnels are never confined.
type Confiner interface {
	Stage
	Confines() bool // must not change
}

// A Hider is a Stage for slot Neighbour behind which the MACs of hosts stay local. If Hides is true, frames of the port enter no
// tunnel but by a gateway or a stage: flooded ones reach ports alone, and others are dropped as frame.NotGateway.
type Hider interface {
	Stage
	Hides() bool // must not change
}

// A Variant is a Stage with other settings for the same state, such as a responder with another mode
// for the same neighbours. A Variant of an attachment replaces the stage of the VSI that has the same
// state, instead of running before it.
type Variant interface {
	Stage
	Shares() any // the state; nil = none
}

func sameState(a, b Stage) bool {
	x, ok := a.(Variant)
	y, is := b.(Variant)
	return ok && is && x.Shares() != nil && x.Shares() == y.Shares()
}

func confines(s Stage) bool {
	if c, ok := s.(chain); ok {
		return slices.ContainsFunc(c, confines)
	}
	c, ok := s.(Confiner)
	return ok && c.Confines()
}

func hides(s Stage) bool {
	if c, ok := s.(chain); ok {
		return slices.ContainsFunc(c, hides)
	}
	h, ok := s.(Hider)
	return ok && h.Hides()
}

// A Rewriter is a Stage that writes into frames that it lets pass. Slot Egress refuses it, since all
// copies of a frame share its memory.
type Rewriter interface {
	Stage
	Rewrites()
}

func rewrites(s Stage) bool {
	if c, ok := s.(chain); ok {
		return slices.ContainsFunc(c, rewrites)
	}
	_, ok := s.(Rewriter)
	return ok
}

// A Judge is a Stage that decides about packets by their MACs and [frame.Tuple] alone, and changes none that it lets pass. An
// Offload may carry frames past it. The type must be comparable.
type Judge interface {
	Stage

	// Judge reports whether Process lets each Ethernet frame with these headers pass, if it has neither a VLAN tag nor a group
	// policy ID, and does nothing with it but count it. Then carried counts those that passed by; nil counts nothing. Judge
	// itself has no effect. It must neither wait nor call the switch.
	Judge(src, dst frame.MAC, t frame.Tuple) (carried func(frame.Count), pass bool)

	// Watch has f called after each change of what Judge returns; f may be called with locks held. Stop ends that.
	Watch(f func()) (stop func())
}

// A FIB is a Stage for slot Gateway that routes packets by their addresses, or by their [frame.Tuple]. An Offload may carry frames
// past it. The type must be comparable.
type FIB interface {
	Stage

	// Lookup returns where Process sends each packet between the addresses of t that comes in an Ethernet frame to dst, if it is not a
	// VLAN's: with a valid header and a TTL or hop limit above 1, it returns Reenter, and all that it has changed is the Hop and
	// the TTL, less by one. With Hop.Ports that holds for the packets with the Tuple. A packet with IP options may have another
	// way. carried counts those that passed by. ok is false if Process may do something else. Lookup itself has no effect. It must
	// neither wait nor call the switch.
	Lookup(dst frame.MAC, t frame.Tuple) (hop frame.Hop, carried func(frame.Count), ok bool)

	// Watch has f called after each change of what Lookup returns: with the Hop.Dst that it has returned, or with the zero MAC if that
	// may be any. f may be called with locks held. Stop ends that.
	Watch(f func(mac frame.MAC)) (stop func())
}

// A look is what stages look at that decide about a frame.
type look uint8

const (
	atPair  look = iota // MACs: there is no stage
	atHosts             // and addresses: slot Gateway is a FIB
	atTuple             // and ports: all are Judges
	atAll
)

func lookOf(s Stage) (l look) {
	if c, ok := s.(chain); ok {
		for _, x := range c {
			l = max(l, lookOf(x))
		}
		return l
	}
	if s == nil {
		return atPair
	}
	if _, ok := s.(Judge); ok && reflect.TypeOf(s).Comparable() {
		return atTuple
	}
	return atAll
}

// fibOf returns a stage as a FIB that can be asked, nil if it is none.
func fibOf(s Stage) FIB {
	if x, ok := s.(FIB); ok && reflect.TypeOf(s).Comparable() {
		return x
	}
	return nil
}

// selectorOf returns a stage as a Selector, nil if it is none.
func selectorOf(s Stage) Selector {
	x, _ := s.(Selector)
	return x
}

// holdsNil reports whether a stage is a nil pointer, or a chain with a nil in it.
func holdsNil(s Stage) bool {
	if c, ok := s.(chain); ok {
		return slices.ContainsFunc(c, holdsNil)
	}
	return absent.Is(s)
}

// check refuses what cannot be in a slot.
func (s *Slots) check() error {
	w := setting.Of("Slots")
	for _, x := range []struct {
		name  string
		stage Stage
	}{{"Ingress", s.Ingress}, {"Neighbour", s.Neighbour}, {"Multicast", s.Multicast}, {"Gateway", s.Gateway}, {"TooBig", s.TooBig}, {"Egress", s.Egress}} {
		if x.stage != nil && holdsNil(x.stage) {
			w.Wrong(x.name, nil, "the %T is nil or contains nil; leave an empty slot nil", x.stage)
		}
	}
	if s.Multicast != nil && selectorOf(s.Multicast) == nil {
		w.Wrong("Multicast", nil, "a %T is no Selector", s.Multicast)
	}
	if rewrites(s.Egress) {
		w.Wrong("Egress", nil, "a %T rewrites frames, only stages that drop are allowed; use Slots.Ingress", s.Egress)
	}
	return w.Err()
}

// Slots hold the stages that take part in decide. Nil slots are skipped.
type Slots struct {
	Ingress   Stage // every frame, first: policy, anti-spoofing
	Neighbour Stage // ARP and ND: suppression, proxy
	Multicast Stage // frames to groups: a Selector; that of an attachment replaces that of the VSI
	Gateway   Stage // frames to the switch's own MACs, and IP packets: routing
	TooBig    Stage // unicast frames longer than the MTU of their egress, which is in At.MTU; see Switch.TooBig
	Egress    Stage // frames on their way out of one attachment; may only drop them
}

// before returns the stages of s, each followed by that of other.
func (s Slots) before(other Slots) Slots {
	both := func(a, b Stage) Stage {
		switch {
		case a == nil:
			return b
		case b == nil || sameState(a, b):
			return a
		}
		return chain{a, b}
	}
	if s.Multicast != nil {
		other.Multicast = s.Multicast
	}
	return Slots{
		Multicast: other.Multicast,
		Ingress:   both(s.Ingress, other.Ingress), Neighbour: both(s.Neighbour, other.Neighbour),
		Gateway: both(s.Gateway, other.Gateway), TooBig: both(s.TooBig, other.TooBig), Egress: both(s.Egress, other.Egress),
	}
}

// Chain combines stages for one slot. They run in order until one does not return Continue.
func Chain(stages ...Stage) Stage { return chain(stages) }

type chain []Stage

func (c chain) Process(f *frame.Frame, at frame.At) frame.Verdict {
	for _, s := range c {
		if v := s.Process(f, at); v != frame.Continue {
			return v
		}
	}
	return frame.Continue
}
