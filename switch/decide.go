package vswitch

import (
	"encoding/binary"

	"github.com/vxswitch/vxswitch/fdb"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/gso"
)

// Class is a set of kinds of flooded frames (BUM).
type Class uint8

// Classes of flooded frames.
const (
	Broadcast Class = 1 << iota
	Multicast
	UnknownUnicast
)

// A circuit is an attachment as the workers see it. It is immutable: a change of settings replaces
// it. The switch itself has a circuit in each VSI, on port 0.
type circuit struct {
	vsi   *VSI
	port  *port
	tag   uint32
	tally *tally

	group         uint8 // split horizon; 0 = none
	hub           bool  // frames may leave through the tunnel they came in on, to another peer
	learn         bool
	gbp           uint16 // group policy ID for frames that enter without one
	forwardPinned bool   // of the VSI
	forwardBridge bool   // of the VSI: forward 01:80:c2:00:00:0x
	noFloodIn     Class  // of the VSI: drop instead of flooding
	misses        bool   // of the VSI: report unknown unicast
	noFloodOut    Class  // of the attachment: gets no copies
	locked        bool   // learn is false, and source MACs need an entry here
	confined      bool   // may reach the gateway only
	hidden        bool   // enters no tunnel
	routeIsolated bool   // of the VSI
	innerVLAN     VLANMode
	native        bool // passes tags, on a port where tags are VLANs
	slots         Slots
	enters        look       // what decides about unicast frames that enter here
	leaves        look       // or leave
	fib           FIB        // slot Gateway, if it is one; nil in the switch's own
	selector      Selector   // slot Multicast; likewise
	match         Matcher    // of frames that enter here; nil = those with the tag that no other attachment matches
	role          *role      // in an Ethernet segment that others share; nil = none
	storm         [2]*meters // of the attachment and of the VSI; nil without limits
}

const (
	macsLen   = 12
	ethLen    = 14
	vlanLen   = 4
	typeARP   = 0x0806
	typeIPv4  = 0x0800
	typeVLAN  = 0x8100
	typeIPv6  = 0x86dd
	typeQinQ  = 0x88a8
	icmpv4    = 1
	icmpv6    = 58
	fragment  = 44
	ndFirst   = 133 // router solicitation; 137 is redirect (RFC 4861, section 4)
	ndLast    = 137
	groupBit  = 1 << 40        // of a MAC as a number
	bridgeMAC = 0x0180c2000000 // ...0f: not forwarded by bridges (IEEE 802.1Q, 8.6.3)
)

// decide returns the verdict on f, which came in on c:
//
//  1. check the Ethernet header, and handle a VLAN tag
//  2. slot Ingress: policy, guards
//  3. check and learn the source MAC
//  4. slot Neighbour: ARP and ND
//  5. drop frames to MACs that bridges do not forward
//  6. look up the destination: unknown ones are flooded, groups after slot Multicast, the switch's own go to slot Gateway
//  7. split horizon, and hosts whose MACs stay local
//  8. the MTU of the way out, and slot TooBig
//
// It does no I/O, and changes nothing but the FDB, by learning. If it forwards the frame itself, it
// also returns the attachment to forward to; for a Forward of a stage that is nil.
func (c *circuit) decide(f *frame.Frame, at *frame.At) (frame.Verdict, *circuit) {
	b := f.Bytes()
	if f.Kind == frame.Ethernet { // 1
		if r := c.wellFormed(b); r != frame.NotDropped {
			if r = c.tagged(f, r); r != frame.NotDropped {
				return frame.Drop(r), nil
			}
			b = f.Bytes()
		}
	}
	if c.gbp != 0 && f.GBP.ID == 0 {
		f.GBP.ID = c.gbp
	}
	if c.slots.Ingress != nil { // 2
		if v := c.slots.Ingress.Process(f, *at); v != frame.Continue {
			return v, nil
		}
		b = f.Bytes()
	}
	if f.Kind != frame.Ethernet {
		return c.gateway(f, at, frame.BadKind), nil
	}
	if r := c.source(f, b, at); r != frame.NotDropped { // 3
		return frame.Drop(r), nil
	}
	if c.slots.Neighbour != nil && isNeighbour(b) { // 4
		told := *at
		told.NoLearn = !c.learn && c.port.tunnel != nil
		if v := c.slots.Neighbour.Process(f, told); v != frame.Continue {
			return v, nil
		}
	}
	return c.egress(f, at)
}

// egress finds where f goes: steps 5 to 8 of decide.
func (c *circuit) egress(f *frame.Frame, at *frame.At) (frame.Verdict, *circuit) {
	b := f.Bytes()
	if binary.BigEndian.Uint64(b)>>20 == bridgeMAC>>4 && !c.forwardBridge { // 5
		return frame.Drop(frame.ReservedMAC), nil
	}
	d, known := c.vsi.fdb.LookupUint64(binary.BigEndian.Uint64(b) >> 16) // 6
	if c.confined && (!known || d.Port() != 0) {
		return frame.Drop(frame.NotGateway), nil
	}
	if !known {
		dst := frame.MAC(b)
		if c.misses && !dst.IsGroup() {
			c.vsi.miss(dst, f.From, at.Tick)
		}
		if c.selector != nil && classOf(dst) == Multicast {
			if v := c.selector.Process(f, *at); v != frame.Continue {
				return v, nil
			}
		}
		return c.flood(dst), nil
	}
	switch {
	case d == frame.Filter:
		return frame.Drop(frame.Filtered), nil
	case d.Port() == 0:
		if c.keepsTag(f) {
			return frame.Drop(frame.InnerVLAN), nil
		}
		return c.gateway(f, at, frame.NoRoute), nil
	case d == f.From:
		return frame.Drop(frame.Reflect), nil
	}
	e := c.vsi.view.Load().find(d.Port())
	if e == nil { // detached a moment ago
		return c.flood(frame.MAC(b)), nil
	}
	if c.hidden && e.port.tunnel != nil {
		return frame.Drop(frame.NotGateway), nil
	}
	if !c.reaches(e) || f.Replicated && d.Peer() == 0 && e.port == c.port { // 7
		return frame.Drop(frame.SplitHorizon), nil
	}
	if f.Horizon != 0 && c.isolates(f, e) {
		return frame.Drop(frame.Isolated), nil
	}
	// 8. Nearly all frames fit the port's MTU. The flood list of a tunnel has an MTU of its own.
	if n := f.SegLen(); n > e.port.p.MTU(d.Peer()) || d.Peer() == 0 && e.port.flooder != nil {
		if mtu := e.longest(f, d.Peer()); n > mtu && !gso.Shorten(f, mtu) {
			return c.tooBig(f, at, d, mtu), nil
		}
	}
	return frame.Forward(d), e
}

// tooBig has slot TooBig answer a frame that is longer than its egress takes.
func (c *circuit) tooBig(f *frame.Frame, at *frame.At, to frame.Dest, mtu int) frame.Verdict {
	if c.slots.TooBig != nil {
		told := *at
		told.To, told.MTU = to, mtu
		if f.From != 0 {
			told.From = f.Origin()
		}
		if v := c.slots.TooBig.Process(f, told); v != frame.Continue {
			return v
		}
	}
	return frame.Drop(frame.TooBig)
}

// reaches reports whether split horizon allows frames from c to e. While settings change, one of the
// two may be older than the other, so it compares ports, not only groups.
func (c *circuit) reaches(e *circuit) bool {
	return (e.group == 0 || e.group != c.group) && (e.port != c.port || e.hub)
}

// isolates reports whether f, which passed the gateway, came from a port of the segment that may not
// reach e. Peers of tunnels are never isolated: the gateway may be what connects them.
func (c *circuit) isolates(f *frame.Frame, e *circuit) bool {
	return f.Horizon > GroupTunnel && f.Horizon == e.group && e.port.tunnel == nil && !c.routeIsolated
}

// wellFormed checks the header of an Ethernet frame. The tag of an attachment has been removed by
// now, so a tag that is still there is unexpected.
func (c *circuit) wellFormed(b []byte) frame.Reason {
	if len(b) < ethLen {
		return frame.Short
	}
	w := binary.BigEndian.Uint64(b[6:]) // the source and the type in one load
	if src := w >> 16; src == 0 || src&groupBit != 0 {
		return frame.BadSourceMAC
	}
	if t := uint16(w); t == typeVLAN || t == typeQinQ {
		return frame.InnerVLAN
	}
	return frame.NotDropped
}

// source learns where f, with the bytes b, came from or, where learning is off, checks that the MAC may come from there.
// On a locked attachment it needs an entry there. Nothing is learned from a peer without a number, or
// if the frame's group policy header says so. Frames of the gateway pass unchecked.
func (c *circuit) source(f *frame.Frame, b []byte, at *frame.At) frame.Reason {
	if f.From.Port() == 0 {
		return frame.NotDropped
	}
	d := f.Origin()
	var o fdb.Outcome
	if c.learn && !f.GBP.DontLearn && d == f.From {
		o = c.vsi.fdb.LearnUint64(binary.BigEndian.Uint64(b[6:])>>16, d, at.Tick)
	} else if o = c.vsi.fdb.Check(frame.MAC(b[6:]), d); c.locked && o != fdb.Filtered && o != fdb.Own && !c.vsi.fdb.Pinned(frame.MAC(b[6:]), d) {
		return frame.Locked
	}
	switch o {
	case fdb.Refused, fdb.Frozen:
		if o == fdb.Refused {
			c.vsi.refused(frame.MAC(b[6:]), d, at.Tick)
		}
		if !c.forwardPinned {
			return frame.MACPinned
		}
	case fdb.Filtered:
		return frame.Filtered
	case fdb.Own:
		return frame.OwnMAC
	}
	return frame.NotDropped
}

func (c *circuit) gateway(f *frame.Frame, at *frame.At, otherwise frame.Reason) frame.Verdict {
	if c.slots.Gateway != nil {
		if v := c.toGateway(f, at); v != frame.Continue {
			return v
		}
	}
	return frame.Drop(otherwise)
}

// toGateway passes f to slot Gateway, with the split-horizon group of its port. It saves where f came
// in in at, because frames that the gateway forwards have no From.
func (c *circuit) toGateway(f *frame.Frame, at *frame.At) frame.Verdict {
	if f.From != 0 {
		at.From = f.Origin()
	}
	if c.port.p != nil && c.port.tunnel == nil {
		f.Horizon = c.group
	}
	return c.slots.Gateway.Process(f, *at)
}

func (c *circuit) flood(dst frame.MAC) frame.Verdict {
	switch class := classOf(dst); c.noFloodIn & class {
	case Broadcast:
		return frame.Drop(frame.BroadcastOff)
	case Multicast:
		return frame.Drop(frame.MulticastOff)
	case UnknownUnicast:
		return frame.Drop(frame.UnknownUnicastOff)
	}
	if c.hidden {
		return frame.FloodLocal
	}
	return frame.FloodAll
}

func classOf(dst frame.MAC) Class {
	switch {
	case dst == frame.Broadcast:
		return Broadcast
	case dst.IsGroup():
		return Multicast
	}
	return UnknownUnicast
}

// isNeighbour reports whether b is ARP or neighbour discovery.
func isNeighbour(b []byte) bool {
	switch binary.BigEndian.Uint16(b[12:]) {
	case typeARP:
		return true
	case typeIPv6:
		if len(b) <= ethLen+48 {
			return len(b) > ethLen+40 && isND(b[ethLen+6], b[ethLen+40])
		}
		// Hosts ignore ND messages in fragments (RFC 6980, section 5), and the stage drops the first
		// fragment. Later fragments have no ICMPv6 header to recognize.
		return isND(b[ethLen+6], b[ethLen+40]) ||
			b[ethLen+6] == fragment && binary.BigEndian.Uint16(b[ethLen+42:])&^7 == 0 && isND(b[ethLen+40], b[ethLen+48])
	}
	return false
}

func isND(protocol, typ byte) bool { return protocol == icmpv6 && typ >= ndFirst && typ <= ndLast }
