package vswitch

import (
	"slices"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/absent"
	"github.com/vxswitch/vxswitch/setting"
)

// A Port is a source and sink of frames: a TAP, a VTEP, a Pipe into a Go program. The switch
// identifies a port by its Go value, so implementations are pointers.
//
// To write your own, implement these four methods, a [frame.Reader] and a [frame.Writer]; the example
// shows how short that can be. Its Writers get Ethernet frames that can be sent as they are: at most
// MTU bytes long, with complete checksums and with the VLAN tag of the attachment. A port that can
// take more says so by implementing Offloader. Its Readers may return any kind of frame that
// [frame.Frame] describes; the default is Ethernet.
//
// A port may also have a method Name() string, which logs and statistics use, and the methods of
// Pauser, Tunnel and Flooder.
type Port interface {
	// Readers returns the receive queues, at least one. The switch calls it once, when the port is
	// attached, and runs one goroutine for each queue.
	Readers() []frame.Reader

	// Writer returns the transmit side for worker w, which may be any number from 0; a port with n
	// queues uses queue w mod n. The switch calls it once for each worker that sends to the port.
	// Each worker uses its Writer from one goroutine, several workers at the same time. Writers may
	// share descriptors but not scratch memory; one Writer for all is fine if its Write is safe
	// for concurrent use.
	Writer(w int) frame.Writer

	// MTU returns the length of the longest frame that the port takes towards peer, in bytes from
	// the destination MAC, without VLAN tag and FCS; for a superframe, that of each segment. On a
	// port for IP it is the length of the packet. Peer is 0 except on a Tunnel, where 0 stands for
	// flooded frames; see Flooder. The switch calls it for every frame, from any goroutine.
	MTU(peer uint16) int

	// Close makes every Read return net.ErrClosed, including one that is waiting. It is idempotent.
	// The switch calls it when the port is detached, and after a Read has failed.
	Close() error
}

// An Offloader is a Port whose Writers take more than ordinary frames, or frames of another kind; see
// [frame.Offloads]. The switch does the work that the port does not take, and drops frames that it
// cannot make fit, as [frame.BadKind], [frame.Short], [frame.TooBig] or [frame.BadHeader]. The switch
// calls Offloads once, when the port is attached. A port that wraps another must pass the method on.
type Offloader interface {
	Offloads() frame.Offloads
}

// A Tunnel is a Port with many peers, such as a VTEP. Its attachments are in split-horizon group 1
// unless configured otherwise. Frames from it have the tag in Frame.VNI and the peer in Frame.From.
type Tunnel interface {
	Port

	// Control returns what only the switch calls. It is always the same.
	Control() frame.TunnelControl

	// PeerName returns the name of a peer, which is its address, or "" if there is no such peer.
	PeerName(peer uint16) string
}

// A Leader is a Tunnel in which a number may stand for another peer, or for a group of peers.
type Leader interface {
	// Leads reports whether frames sent to the number to may reach the peer that sends as peer. If
	// so, that peer may send from a MAC whose static entry refers to the number to.
	Leads(to, peer uint16) bool
}

// A Flooder is a Tunnel whose peers take frames of different lengths. For other tunnels MTU(0) holds
// for all peers.
type Flooder interface {
	// FloodMTU returns the length of the longest frame that some peers on the flood list of a tag
	// take, and of the longest that all of them take. A frame in between is flooded, and the tunnel
	// counts the copies that do not fit.
	FloodMTU(tag uint32) (some, all int)
}

// A Pauser is a Port that can be detached without being closed. Between Pause and Resume every Read
// returns frame.ErrPaused.
type Pauser interface {
	Pause()
	Resume()
}

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

// A Confiner is a Stage for slot Neighbour that answers every request itself. If Confines is true, the
// port reaches the gateway and nobody else: frames to MACs other than the switch's own are dropped as
// frame.NotGateway. Tunnels are never confined.
type Confiner interface {
	Stage
	Confines() bool // must not change
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
	}{{"Ingress", s.Ingress}, {"Neighbour", s.Neighbour}, {"Gateway", s.Gateway}, {"TooBig", s.TooBig}, {"Egress", s.Egress}} {
		if x.stage != nil && holdsNil(x.stage) {
			w.Wrong(x.name, nil, "the %T is nil or contains nil; leave an empty slot nil", x.stage)
		}
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
	return Slots{
		Ingress: both(s.Ingress, other.Ingress), Neighbour: both(s.Neighbour, other.Neighbour),
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
