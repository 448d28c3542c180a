package filter

import (
	"encoding/binary"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/sys"
	"github.com/vxswitch/vxswitch/internal/wire"
)

// An Address is what an underlay receives on.
type Address struct {
	MAC  frame.MAC
	IP   [16]byte // IPv4 as IPv4-mapped
	Port uint16   // UDP port; 0 for IP-in-IP, protocols 4 and 41
	VLAN uint16   // ID of the 802.1Q tag; 0 = none
}

func (a *Address) is4() bool { return (&frame.Endpoint{IP: a.IP}).Is4() }

// For passes what is for an address. With groups, it also passes datagrams for the port to any multicast group of the
// family.
//
// Only the first fragment of a datagram has ports, so For passes all fragments of UDP over IPv4. Over IPv6 it
// passes packets with an extension header if UDP is next, or for IP-in-IP an IP packet: not fragments of ICMPv6.
func For(a Address, groups bool) []sys.SockFilter {
	p := program{taken: all}
	p.to(a)
	if groups {
		p.toGroups(a)
	}
	return p.finish()
}

// MaxAddresses is how many addresses Not takes: more instructions are too many for the kernel (BPF_MAXINSNS).
const MaxAddresses = 64

// Not passes what For passes for none of the addresses, without groups.
func Not(list []Address) []sys.SockFilter {
	p := program{taken: 0}
	for _, a := range list {
		p.to(a)
	}
	return p.finish()
}

// Offsets in a frame.
const (
	typeAt    = 12
	ipAt      = wire.EthernetLen
	frag4     = ipAt + 6
	proto4    = ipAt + 9
	dst4      = ipAt + 16
	end4      = ipAt + wire.IPv4Len
	proto6    = ipAt + 6
	dst6      = ipAt + 24
	upper6    = ipAt + wire.IPv6Len
	arpSender = ipAt + 14
	arpTarget = ipAt + 24
	portAt    = 2 // the destination port, in the UDP header
	anyFrag   = 0x3fff
)

// tagged goes on when the frame is in a VLAN: with an 802.1Q tag, or for 0 without any. A tag with VLAN 0 is only a
// priority (IEEE 802.1Q).
func (p *program) tagged(vlan uint16) {
	p.add(loadWord, vlanTag)
	p.add(and, 0xfff)
	p.need(equal, uint32(vlan))
	if vlan != 0 {
		p.add(loadWord, vlanType)
		p.need(equal, wire.TypeVLAN)
	}
}

// ip goes on when a frame is in the VLAN of an address, and long enough for an IP header of its family.
func (p *program) ip(a Address) {
	is4 := a.is4()
	p.tagged(a.VLAN)
	p.load(typeAt, 2)
	if is4 {
		p.need(equal, wire.TypeIPv4)
		p.add(loadLen, 0)
		p.need(atLeast, end4)
	} else {
		p.need(equal, wire.TypeIPv6)
		p.add(loadLen, 0)
		p.need(atLeast, upper6)
	}
}

func (p *program) to(a Address) {
	p.ip(a)
	if a.is4() {
		p.needBytes(dst4, a.IP[12:])
	} else {
		p.needBytes(dst6, a.IP[:])
	}
	p.needBytes(0, a.MAC[:])
	p.carried(a)
}

// toGroups takes datagrams to multicast groups.
func (p *program) toGroups(a Address) {
	p.ip(a)
	if a.is4() {
		p.load(dst4, 1)
		p.need(atLeast, 0xe0)
	} else {
		p.load(dst6, 1)
		p.need(equal, 0xff)
	}
	p.carried(a)
}

// carried takes UDP to the port, or IP-in-IP.
func (p *program) carried(a Address) {
	if a.is4() {
		p.carried4(a.Port)
	} else {
		p.carried6(a.Port)
	}
	p.or()
}

func (p *program) carried4(port uint16) {
	p.load(proto4, 1)
	if port == 0 {
		p.packets()
		return
	}
	p.need(equal, wire.ProtoUDP)
	p.load(ipAt, 1) // an invalid header length would misplace the port
	p.takeUnless(atLeast, 0x45)
	p.take(greater, 0x4f)
	p.load(frag4, 2)
	p.take(anySet, anyFrag)
	p.add(loadHeaderX, ipAt)
	p.add(loadHalfX, ipAt+portAt)
	p.take(equal, uint32(port))
}

func (p *program) carried6(port uint16) {
	extensions := []uint32{wire.ProtoFragment, wire.ProtoHopByHop, wire.ProtoRouting, wire.ProtoDstOpts}
	p.load(proto6, 1)
	var more []int // jumps to where an extension header is looked at
	for _, e := range extensions {
		more = append(more, len(p.ops))
		p.add(equal, e)
	}
	if port == 0 {
		p.packets()
		p.need(anySet, 0) // never
	} else {
		p.need(equal, wire.ProtoUDP)
		p.load(upper6+portAt, 2)
		p.take(equal, uint32(port))
		p.need(anySet, 0)
	}
	for _, i := range more {
		p.ops[i].Jt = uint8(len(p.ops) - i - 1)
	}
	p.load(upper6, 1) // the next header
	if port == 0 {
		p.packets()
	} else {
		p.take(equal, wire.ProtoUDP)
	}
}

// packets takes IP packets inside.
func (p *program) packets() {
	p.take(equal, wire.ProtoIPv4)
	p.take(equal, wire.ProtoIPv6)
}

// Control passes ARP to an address and announcements, and ICMP to the address; over IPv6 neighbour discovery and ICMPv6
// errors to all addresses, since these are few. All are of one VLAN, or untagged with 0.
func Control(ip [16]byte, vlan uint16) []sys.SockFilter {
	p, a := program{taken: all}, Address{IP: ip, VLAN: vlan}
	if !a.is4() {
		p.ip(a)
		p.load(proto6, 1)
		p.need(equal, wire.ProtoICMPv6)
		p.load(upper6, 1)
		for _, t := range []uint32{wire.ICMPv6Unreachable, wire.ICMPv6PacketTooBig, wire.ICMPv6TimeExceeded, wire.ICMPv6Parameter, wire.NeighbourSolicitation, wire.NeighbourAdvert} {
			p.take(equal, t)
		}
		return p.finish()
	}
	p.tagged(vlan)
	p.load(typeAt, 2)
	p.need(equal, wire.TypeARP)
	p.load(arpTarget, 4)
	p.take(equal, binary.BigEndian.Uint32(ip[12:]))
	p.add(toX, 0) // announcements: sender and target are one
	p.load(arpSender, 4)
	p.take(equalX, 0)
	p.or()
	p.ip(a)
	p.needBytes(dst4, ip[12:])
	p.load(proto4, 1)
	p.need(equal, wire.ProtoICMP)
	p.load(frag4, 2)
	p.takeUnless(anySet, anyFrag)
	return p.finish()
}
