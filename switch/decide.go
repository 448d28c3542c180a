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

// A circuit is an attachment as the workers see it: immutable, replaced as a whole
// when a setting changes. The switch itself has one in each VSI, on port 0.
type circuit struct {
	vsi  *VSI
	port *port
	tag  uint32

	group         uint8 // split horizon; 0 = none
	hub           bool  // what came in may go out here again, to another peer
	learn         bool
	gbp           uint16 // group of what enters here without one
	forwardPinned bool   // of the VSI
	forwardBridge bool   // of the VSI: 01:80:c2:00:00:0x
	noFloodIn     Class  // of the VSI: dropped instead of flooded
	misses        bool   // of the VSI: unknown unicast is told of
	noFloodOut    Class  // of the attachment: gets no copies
	locked        bool   // learn is false, and source MACs need an entry here
	confined      bool   // reaches the gateway and nobody else
	routeIsolated bool   // of the VSI
	innerVLAN     VLANMode
	native        bool // tags pass, on a port where they name VLANs
	slots         Slots
	storm         [2]*meters // of the attachment and of the VSI; nil without limits
}

const (
	macsLen   = 12
	ethLen    = 14
	vlanLen   = 4
	typeARP   = 0x0806
	typeVLAN  = 0x8100
	typeIPv6  = 0x86dd
	typeQinQ  = 0x88a8
	icmpv6    = 58
	fragment  = 44
	ndFirst   = 133 // router solicitation; 137 is redirect (RFC 4861, section 4)
	ndLast    = 137
	groupBit  = 1 << 40        // of a MAC as a number
	bridgeMAC = 0x0180c2000000 // ...0f: not forwarded by bridges (IEEE 802.1Q, 8.6.3)
)

// decide says what becomes of f, which came in on c. The order of its steps is
// fixed. It does no I/O; what it changes is the FDB, by learning. With a Forward of
// its own comes the attachment to forward to; with a stage's, nil.
func (c *circuit) decide(f *frame.Frame, at *frame.At) (frame.Verdict, *circuit) {
	b := f.Bytes()
	if f.Kind == frame.Ethernet {
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
	if c.slots.Ingress != nil {
		if v := c.slots.Ingress.Process(f, *at); v != frame.Continue {
			return v, nil
		}
		b = f.Bytes()
	}
	if f.Kind != frame.Ethernet {
		return c.gateway(f, at, frame.BadKind), nil
	}
	if r := c.source(f, frame.MAC(b[6:]), at); r != frame.NotDropped {
		return frame.Drop(r), nil
	}
	if c.slots.Neighbour != nil && isNeighbour(b) {
		if v := c.slots.Neighbour.Process(f, *at); v != frame.Continue {
			return v, nil
		}
	}
	return c.egress(f, at)
}

// egress looks up where f goes: steps 5 to 8 of decide.
func (c *circuit) egress(f *frame.Frame, at *frame.At) (frame.Verdict, *circuit) {
	b := f.Bytes()
	if binary.BigEndian.Uint64(b)>>20 == bridgeMAC>>4 && !c.forwardBridge {
		return frame.Drop(frame.ReservedMAC), nil
	}
	dst := frame.MAC(b)
	d, known := c.vsi.fdb.Lookup(dst)
	if c.confined && (!known || d.Port() != 0) {
		return frame.Drop(frame.NotGateway), nil
	}
	if !known {
		if c.misses && !dst.IsGroup() {
			c.vsi.miss(dst, f.From, at.Tick)
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
		return c.flood(dst), nil
	}
	if !c.reaches(e) || f.Replicated && d.Peer() == 0 && e.port == c.port {
		return frame.Drop(frame.SplitHorizon), nil
	}
	if f.Horizon != 0 && c.isolates(f, e) {
		return frame.Drop(frame.Isolated), nil
	}
	// Of nearly all frames the port's MTU says that they fit; a tunnel's flood list has one of its own.
	if n := f.SegLen(); n > e.port.p.MTU(d.Peer()) || d.Peer() == 0 && e.port.flooder != nil {
		if mtu := e.longest(f, d.Peer()); n > mtu && !gso.Shorten(f, mtu) {
			return c.tooBig(f, at, d, mtu), nil
		}
	}
	return frame.Forward(d), e
}

// tooBig asks the stage that answers for frames longer than their egress takes.
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

// reaches reports whether split horizon lets pass from c to e. While settings change
// the two may be of different times, so a port is told by itself, not by its group.
func (c *circuit) reaches(e *circuit) bool {
	return (e.group == 0 || e.group != c.group) && (e.port != c.port || e.hub)
}

// isolates reports whether f, which has been in the gateway's hands, came from a port of the
// segment that may not reach e. Peers of tunnels are not isolates: a gateway may sit between
// them.
func (c *circuit) isolates(f *frame.Frame, e *circuit) bool {
	return f.Horizon > GroupTunnel && f.Horizon == e.group && e.port.tunnel == nil && !c.routeIsolated
}

// wellFormed is what every Ethernet frame must be, before anything is learned. A tag
// that is still there was not asked for: an attachment's own has been taken off.
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

// source learns where f came from, or where learning is off only asks whether the
// MAC may come from there. On a locked attachment it may if it has an entry there. A frame
// from a tunnel whose peer has no number teaches nothing, nor does one whose mark says so;
// the gateway's own frames are not asked.
func (c *circuit) source(f *frame.Frame, src frame.MAC, at *frame.At) frame.Reason {
	if f.From.Port() == 0 {
		return frame.NotDropped
	}
	d := f.Origin()
	learn := c.learn && !f.GBP.DontLearn && d == f.From
	var o fdb.Outcome
	if learn {
		o = c.vsi.fdb.Learn(src, d, at.Tick)
	} else if o = c.vsi.fdb.Check(src, d); c.locked && o != fdb.Filtered && o != fdb.Own && !c.vsi.fdb.Pinned(src, d) {
		return frame.Locked
	}
	switch o {
	case fdb.Refused, fdb.Frozen:
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

// toGateway hands f over, with the group of the port it came in on. Where that was is noted in at:
// what the gateway forwards is nobody's.
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
		// The first fragment of one is none to hosts (RFC 6980, section 5); the stage says so.
		// In a later one there is no header where its own would be.
		return isND(b[ethLen+6], b[ethLen+40]) ||
			b[ethLen+6] == fragment && binary.BigEndian.Uint16(b[ethLen+42:])&^7 == 0 && isND(b[ethLen+40], b[ethLen+48])
	}
	return false
}

func isND(protocol, typ byte) bool { return protocol == icmpv6 && typ >= ndFirst && typ <= ndLast }
