// Package neighbour reads and writes messages of ARP (RFC 826) and neighbour discovery (RFC 4861) in one form, and queues
// packets that wait for a next hop's MAC.
package neighbour

import (
	"net/netip"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/wire"
)

// Kind is the kind of a message.
type Kind uint8

// Kinds. Malformed is ARP for other than IPv4 over Ethernet or with another operation, and IPv6 without a message that RFC
// 4861 allows nodes to accept.
const (
	None      Kind = iota // neither ARP nor IPv6
	Malformed             // see above
	Question              // ARP request, neighbour solicitation
	Answer                // ARP reply, neighbour advertisement
	Solicit               // router solicitation
	Advertise             // router advertisement
)

// A Message is a message of ARP or neighbour discovery, in ARP's terms.
type Message struct {
	Kind  Kind
	V6    bool
	Told  bool  // the message has SenderMAC
	Flags uint8 // of a neighbour advertisement

	Dst, Src  frame.MAC  // of the frame
	SenderMAC frame.MAC  // in the message; of an advertisement, the target's
	Sender    netip.Addr // unspecified in a probe
	Target    netip.Addr // address that the message is about
	To        netip.Addr // receiver: in IPv6 the destination, in ARP the target
}

// Multicast reports whether the message is to an IPv6 multicast address.
func (m *Message) Multicast() bool { return m.V6 && m.To.As16()[0] == 0xff }

// Spoofed reports whether the sender's MAC differs from that of the frame: the frame came through a proxy, or is forged.
// It allows the virtual MACs of routers that share an address (VRRP, RFC 9568, section 7.3).
func (m *Message) Spoofed() bool {
	return m.Told && m.SenderMAC != m.Src && ([4]byte(m.SenderMAC[:]) != [4]byte{0, 0, 0x5e, 0} || m.SenderMAC[4]-1 > 1)
}

// Solicited reports whether the message is to the solicited-node address of its target (RFC 4861, section 7.1.1).
func (m *Message) Solicited() bool { return m.To.As16() == wire.SolicitedNode(m.Target.As16()) }

// Parse reads a frame without VLAN tags. It checks lengths, the constants of ARP, and in ND all that does not depend on
// addresses. With unfinished it ignores the checksum, which a host has left to its network card.
func (m *Message) Parse(b []byte, unfinished bool) Kind {
	*m = Message{}
	e, ok := wire.ParseEthernet(b)
	if !ok {
		return None
	}
	m.Dst, m.Src = e.Dst(), e.Src()
	switch body := e[wire.EthernetLen:]; e.Type() {
	case wire.TypeARP:
		m.Kind = m.parse4(body)
	case wire.TypeIPv6:
		m.V6 = true
		m.Kind = m.parse6(body, unfinished)
	}
	return m.Kind
}

func (m *Message) parse4(b []byte) Kind {
	a, ok := wire.ParseARP(b)
	if !ok {
		return Malformed
	}
	m.Sender, m.Target = netip.AddrFrom4(a.SenderIP()), netip.AddrFrom4(a.TargetIP())
	m.SenderMAC, m.Told, m.To = a.SenderMAC(), true, m.Target
	switch a.Op() {
	case wire.ARPRequest:
		return Question
	case wire.ARPReply:
		return Answer
	}
	return Malformed
}

func (m *Message) parse6(b []byte, unfinished bool) (k Kind) {
	p, ok := wire.ParseIPv6(b)
	if !ok {
		return Malformed
	}
	n, ok := wire.ParseND(p)
	if !ok || !unfinished && !n.Valid(p) {
		return Malformed
	}
	m.Sender, m.To = netip.AddrFrom16(p.Src()), netip.AddrFrom16(p.Dst())
	option := uint8(wire.SourceLinkLayer)
	switch n.Type() {
	case wire.NeighbourSolicitation:
		k, m.Target = Question, netip.AddrFrom16(n.Target())
	case wire.NeighbourAdvert:
		k, m.Target, m.Flags = Answer, netip.AddrFrom16(n.Target()), n.Flags()
		option = wire.TargetLinkLayer
	case wire.RouterSolicitation:
		k = Solicit
	default:
		k = Advertise
	}
	m.SenderMAC, m.Told = n.LinkLayer(option)
	return k
}

// Lengths of frames without padding: with an ARP packet, and with a neighbour solicitation or advertisement that has a
// link-layer option.
const (
	Len4   = wire.EthernetLen + wire.ARPLen
	Len6   = wire.EthernetLen + wire.IPv6Len + ndLen
	MinLen = 60 // length of a padded ARP frame (IEEE 802.3, section 4.4.2, without FCS)

	ndLen = wire.NeighbourLen + wire.LinkLayerLen
)

// Ask returns a request for the MAC of target, from an address and a MAC, to one MAC, or with the zero MAC to all. It is
// nil if the addresses are of two families.
func Ask(target netip.Addr, to frame.MAC, from netip.Addr, mac frame.MAC) []byte {
	switch {
	case target.Is6():
		dst := target.As16()
		if to.IsZero() {
			dst = wire.SolicitedNode(dst)
			to = GroupMAC(dst)
		}
		b := make([]byte, Len6)
		put6(b, to, mac, dst, from, wire.PutNeighbour(b[Len6-ndLen:], wire.NeighbourSolicitation, 0, target.As16(), mac))
		return b
	case !target.Is4() || !from.Is4():
		return nil
	case to.IsZero():
		to = frame.Broadcast
	}
	b := make([]byte, MinLen)
	PutARP(b, wire.ARPRequest, to, mac, from, frame.MAC{}, target)
	return b
}

// PutARP writes an ARP packet of a sender for a target to b, in a frame to a MAC: [Len4] bytes.
func PutARP(b []byte, op uint16, to, mac frame.MAC, ip netip.Addr, targetMAC frame.MAC, target netip.Addr) {
	header(b, to, mac, wire.TypeARP)
	wire.PutARP(b[wire.EthernetLen:], op, mac, ip.As4(), targetMAC, target.As4())
}

var allNodes = [16]byte{0xff, 2, 15: 1}

// PutAdvert writes the answer to a solicitation from an address and a MAC to b, [Len6] bytes: target is at mac. To the
// unspecified address, as to a probe, it goes to all nodes: the address is taken (RFC 4861, section 7.2.4). PutAdvert sets
// NASolicited itself.
func PutAdvert(b []byte, target netip.Addr, mac frame.MAC, flags uint8, to netip.Addr, toMAC frame.MAC) {
	dst := to.As16()
	if to.IsUnspecified() {
		dst = allNodes
		toMAC = GroupMAC(dst)
	} else {
		flags |= wire.NASolicited
	}
	put6(b, toMAC, mac, dst, target, wire.PutNeighbour(b[Len6-ndLen:], wire.NeighbourAdvert, flags, target.As16(), mac))
}

// ToAllNodes returns a message of an address and a MAC in a frame to all nodes.
func ToAllNodes(m []byte, src netip.Addr, mac frame.MAC) []byte {
	b := append(make([]byte, wire.EthernetLen+wire.IPv6Len, wire.EthernetLen+wire.IPv6Len+len(m)), m...)
	put6(b, GroupMAC(allNodes), mac, allNodes, src, wire.ND(b[wire.EthernetLen+wire.IPv6Len:]))
	return b
}

// Readdress sends such a frame to one host.
func Readdress(b []byte, mac frame.MAC, host netip.Addr) {
	copy(b, mac[:])
	p, dst := wire.IPv6(b[wire.EthernetLen:]), host.As16()
	copy(p[24:], dst[:])
	wire.ND(p[wire.IPv6Len:]).SetChecksum(p)
}

// put6 writes the headers in front of a message, and its checksum.
func put6(b []byte, to, mac frame.MAC, dst [16]byte, src netip.Addr, n wire.ND) {
	header(b, to, mac, wire.TypeIPv6)
	p := wire.IPv6(b[wire.EthernetLen:])
	h := wire.IPv6Header{NextHeader: wire.ProtoICMPv6, HopLimit: 255, PayloadLen: uint16(len(n)), Src: src.As16(), Dst: dst}
	h.Put(p)
	n.SetChecksum(p)
}

func header(b []byte, to, mac frame.MAC, etherType uint16) {
	p := (*[wire.EthernetLen]byte)(b)
	*(*frame.MAC)(p[0:]) = to
	*(*frame.MAC)(p[6:]) = mac
	p[12], p[13] = byte(etherType>>8), byte(etherType)
}

// GroupMAC returns the MAC of a multicast group (RFC 1112, section 6.4; RFC 2464, section 7).
func GroupMAC(ip [16]byte) frame.MAC {
	if ip[0] == 0xff {
		return frame.MAC{0x33, 0x33, ip[12], ip[13], ip[14], ip[15]}
	}
	return frame.MAC{1, 0, 0x5e, ip[13] & 0x7f, ip[14], ip[15]}
}
