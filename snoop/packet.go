package snoop

import (
	"encoding/binary"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/mix"
	"github.com/vxswitch/vxswitch/internal/wire"
)

// A group is the address of a multicast group; IPv4 is mapped into IPv6.
type group [16]byte

// Hash implements [index.Key].
func (g group) Hash(secret *mix.Key) uint64 { return secret.HashAddr((*[16]byte)(&g)) }

// isMulticast reports whether g is the address of a group.
func (g group) isMulticast() bool { return g[0] == 0xff || g.family() == v4 && g[12]>>4 == 0xe }

// flooded reports whether frames to g go everywhere: 224.0.0.0/24, and groups of reserved, interface-local and link-local scope.
// Hosts report many of the latter, but gateways of VTEPs do not.
func (g group) flooded() bool {
	if g.family() == v4 {
		return g[12] == 224 && g[13] == 0 && g[14] == 0
	}
	return g[1]&0xf <= 2
}

// Families, as indexes.
const (
	v4 = iota
	v6
	families
)

func (g group) family() int {
	if g[0] == 0 && g[10] == 0xff {
		return v4
	}
	return v6
}

// A kind is what a packet is to snooping.
type kind uint8

const (
	data   kind = iota // no message
	query              // from a querier
	report             // from a host that listens, or has stopped
	router             // from a router that says what it is
	other              // IGMP of another type, or a fragment
)

// Protocols and types of messages.
const (
	protoIGMP = 2
	protoPIM  = 103

	igmpQuery    = 0x11
	igmpReport1  = 0x12
	igmpReport2  = 0x16
	igmpLeave    = 0x17
	igmpReport3  = 0x22
	igmpRouterAd = 0x30 // RFC 4286, section 3.1

	mldQuery    = 130
	mldReport1  = 131
	mldDone     = 132
	mldReport2  = 143
	mldRouterAd = 151 // RFC 4286, section 3.1

	pimHello = 0x20 // version 2, type 0 (RFC 7761, section 4.9)
)

// A packet is what can be seen of a frame to a group without verifying it.
type packet struct {
	dst     group
	family  int
	kind    kind
	ip      []byte
	message int // where the message is in ip
}

// look finds the packet in a frame. ok is false if it is not IP to a group.
func look(b []byte) (p packet, ok bool) {
	if len(b) < wire.EthernetLen {
		return p, false
	}
	p.ip = b[wire.EthernetLen:]
	switch binary.BigEndian.Uint16(b[wire.MACsLen:]) {
	case wire.TypeIPv4:
		return p, p.look4()
	case wire.TypeIPv6:
		return p, p.look6()
	}
	return p, false
}

func (p *packet) look4() bool {
	b := p.ip
	if len(b) < wire.IPv4Len || b[0]>>4 != 4 {
		return false
	}
	p.dst, p.family, p.message = wire.Mapped([4]byte(b[16:])), v4, int(b[0]&0xf)*4
	switch ip := wire.IPv4(b); {
	case ip.Protocol() == protoIGMP && (ip.Fragment() || p.message < wire.IPv4Len):
		p.kind = other
	case ip.Protocol() == protoIGMP:
		p.kind = kindOf(p.typ(), igmpQuery, igmpRouterAd, igmpReport1, igmpReport2, igmpLeave, igmpReport3)
	case ip.Protocol() == protoPIM && p.typ() == pimHello && !ip.Fragment():
		p.kind = router
	}
	return p.dst.isMulticast()
}

func (p *packet) look6() bool {
	b := p.ip
	if len(b) < wire.IPv6Len || b[0]>>4 != 6 {
		return false
	}
	p.dst, p.family, p.message = wire.IPv6(b).Dst(), v6, wire.IPv6Len
	// Messages of MLD follow a hop-by-hop header with a router alert, and nodes ignore others (RFC 3810, section 6.2).
	switch next := wire.IPv6(b).NextHeader(); {
	case next == protoPIM && p.typ() == pimHello:
		p.kind = router
	case next == wire.ProtoHopByHop && len(b) >= wire.IPv6Len+8 && b[wire.IPv6Len] == wire.ProtoICMPv6:
		p.message += 8 * (1 + int(b[wire.IPv6Len+1]))
		if !alerts(b[wire.IPv6Len+2 : min(p.message, len(b))]) {
			break
		}
		if p.kind = kindOf(p.typ(), mldQuery, mldRouterAd, mldReport1, mldReport1, mldDone, mldReport2); p.kind == other {
			p.kind = data // of ICMPv6
		}
	}
	return p.dst[0] == 0xff
}

// alerts reports whether a router alert for MLD is among hop-by-hop options (RFC 2711, section 2.1).
func alerts(b []byte) bool {
	for len(b) > 1 {
		n := 2 + int(b[1])
		switch {
		case b[0] == 0: // Pad1
			n = 1
		case n > len(b):
			return false
		case b[0] == 5 && n == 4:
			return b[2] == 0 && b[3] == 0
		}
		b = b[n:]
	}
	return false
}

// toAllHosts reports whether a frame, of which p is the packet, is to all hosts: 224.0.0.1 or ff02::1, by IP and by MAC.
func (p *packet) toAllHosts(b []byte) bool {
	if p.family == v4 {
		return p.dst == mapped([]byte{224, 0, 0, 1}) && frame.MAC(b) == frame.MAC{1, 0, 0x5e, 0, 0, 1}
	}
	return p.dst == allNodes && frame.MAC(b) == frame.MAC{0x33, 0x33, 0, 0, 0, 1}
}

// allNodes is the group of all IPv6 nodes on the link.
var allNodes = group{0: 0xff, 1: 2, 15: 1}

// typ returns the first byte of the message, 0 if there is none.
func (p *packet) typ() byte {
	if p.message >= len(p.ip) {
		return 0
	}
	return p.ip[p.message]
}

func kindOf(typ, asks, advertises, r1, r2, leaves, r3 byte) kind {
	switch typ {
	case asks:
		return query
	case advertises:
		return router
	case r1, r2, leaves, r3:
		return report
	}
	return other
}
