package vswitch

import (
	"slices"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/absent"
	"github.com/vxswitch/vxswitch/setting"
)

// A Port is anything frames come in from and go out to: a TAP, a VTEP, a Go
// program's Pipe. Its identity is its Go value, so implementations are pointers.
//
// One of your own has these four methods, a [frame.Reader] and a [frame.Writer]; the example shows
// how little that can be. Its Writers get whole Ethernet frames that can be sent as they are, cut,
// with complete checksums and their VLAN tag, unless the port says that it takes more: see
// Offloader. What its Readers hand over may be of any kind that [frame.Frame] describes, and is an
// Ethernet frame if they say nothing else.
//
// Name() string, if there is one, is what the port is called in logs and statistics. Pauser, Tunnel
// and Flooder are methods that some ports have as well.
type Port interface {
	// Readers returns the receive queues, one at least. The switch runs one goroutine on each, and asks
	// once, when the port is attached.
	Readers() []frame.Reader

	// Writer returns the transmit side for worker w, which is any number from 0 on;
	// a port with n queues uses queue w mod n. Each is used by one goroutine, several at the
	// same time, and may be one for all if its Write can bear that: Writers of one port may share
	// descriptors, never scratch memory. It is called once for each worker that
	// sends here, on first use.
	Writer(w int) frame.Writer

	// MTU returns the longest frame the port takes towards peer, in bytes from the
	// destination MAC on, VLAN tag and FCS not counted; a superframe is judged by
	// its segments. Of a port of IP packets it is that of the packet. Peer is 0 on all but a
	// Tunnel, where that asks for flooded frames; see Flooder. It is called for every frame,
	// from any goroutine.
	MTU(peer uint16) int

	// Close makes every Read return net.ErrClosed, one that waits included. It is idempotent.
	// The switch calls it when the port is detached, and when a Read has failed.
	Close() error
}

// An Offloader is a Port whose Writers take more than ordinary frames, or another kind: see
// [frame.Offloads]. What they do not take they do not get: the switch does that work, and frames
// that cannot be made fit are dropped with [frame.BadKind], [frame.Short], [frame.TooBig] or
// [frame.BadHeader]. To a port that takes everything frames go as they are. It is asked once, when
// the port is attached; who wraps a port passes it on.
type Offloader interface {
	Offloads() frame.Offloads
}

// A Tunnel is a Port that leads to many peers, such as a VTEP. Its attachments are
// in split-horizon group 1 unless they say otherwise, and frames that come in
// through it carry their tag in Frame.VNI and the peer in Frame.From.
type Tunnel interface {
	Port

	// Open makes the tunnel accept frames with this tag; Shut ends it.
	Open(tag uint32) error
	Shut(tag uint32)

	// Retire starts the removal of learned peers for which named returns false: from
	// here on no frame comes in from them, but for those of Batches whose Gone says so.
	// The switch then waits until no worker knows the number, flushes their entries,
	// waits again and calls Free.
	Retire(named func(peer uint16) bool) []uint16
	Free(peers []uint16)

	// PeerName returns what a peer is called, its address; "" if there is none.
	PeerName(peer uint16) string
}

// A Leader is a Tunnel with numbers that stand for other peers, or for several.
type Leader interface {
	// Leads reports whether what is sent to one number may go to the peer that sends under
	// another: then this peer may send from a MAC whose static entry names the first.
	Leads(to, peer uint16) bool
}

// A Flooder is a Tunnel whose peers take frames of different length: MTU of peer 0 would be that
// of the whole tunnel.
type Flooder interface {
	// FloodMTU returns the longest frame that some of the peers on a tag's flood list take,
	// and the longest that all of them take. A frame between the two is flooded, and the
	// tunnel counts the copies that do not fit.
	FloodMTU(tag uint32) (some, all int)
}

// A Pauser is a Port that can be detached without being closed: between Pause and
// Resume every Read returns frame.ErrPaused.
type Pauser interface {
	Pause()
	Resume()
}

// A Stage fills a slot of decide. It may rewrite the frame in place; it must not
// block, allocate or keep it. Continue means "not mine", and the next step decides.
type Stage interface {
	Process(f *frame.Frame, at frame.At) frame.Verdict
}

// A Housekeeper is a Stage that has housekeeping of its own: the switch calls Housekeep about once a
// second, once however many slots the stage is in, for as long as it is in one. It must not
// wait, and its type must be comparable, as a pointer is.
type Housekeeper interface {
	Stage
	Housekeep(now frame.Tick)
}

// A Confiner is a Stage for the slot Neighbour that answers every question itself. A port whose
// stage says so, alone or in a chain, reaches the gateway and nobody else: what is not for a
// MAC of the switch's own is dropped as frame.NotGateway. Tunnels are not confined.
type Confiner interface {
	Stage
	Confines() bool // the same each time
}

// A Variant is a Stage with settings of its own for what it shares with others. One of an attachment
// takes the place of one of the VSI that shares the same, instead of being asked before it.
type Variant interface {
	Stage
	Shares() any // what; nil: nothing
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

// A Rewriter is a Stage that writes into frames it lets pass. It is refused in the slot Egress:
// the frame there is the one that all copies share.
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

// holdsNil reports whether a stage is none: a nil pointer, or a nil in a chain.
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
	}{{"Ingress", s.Ingress}, {"Neighbour", s.Neighbour}, {"Gateway", s.Gateway}, {"TooBig", s.TooBig}, {"Egress", s.Egress}} {
		if x.stage != nil && holdsNil(x.stage) {
			w.Wrong(x.name, "the %T is nil or holds a nil; an empty slot is nil itself", x.stage)
		}
	}
	if rewrites(s.Egress) {
		w.Wrong("Egress", "a stage there may only drop, and this one rewrites frames; its slot is Ingress")
	}
	return w.Err()
}

// Slots are the places where stages take part in decide. A nil slot is passed over.
type Slots struct {
	Ingress   Stage // first of all: policy, anti-spoofing
	Neighbour Stage // gets ARP and ND: suppression, proxy
	Gateway   Stage // gets frames to the switch's own MACs, and IP frames: routing
	TooBig    Stage // gets unicast frames longer than their egress takes, and in At.MTU what it takes; nil, or Continue: see Switch.TooBig
	Egress    Stage // sees a frame on its way out to one attachment, and may only drop it
}

// before returns the slots of s, each with the stage of other behind its own.
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
	return Slots{
		Ingress: both(s.Ingress, other.Ingress), Neighbour: both(s.Neighbour, other.Neighbour),
		Gateway: both(s.Gateway, other.Gateway), TooBig: both(s.TooBig, other.TooBig), Egress: both(s.Egress, other.Egress),
	}
}

// Chain fills one slot with several stages: each is asked until one does not say
// Continue.
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
