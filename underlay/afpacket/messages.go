package afpacket

import (
	"net/netip"

	"github.com/mdlayher/arp"
	"github.com/mdlayher/ethernet"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/wire"
)

// A messenger makes and reads what is said between neighbours: ARP (RFC 826, RFC 5227) and
// neighbour discovery (RFC 4861). None of it is in the packet path.
type messenger struct {
	is4 bool
	mac frame.MAC
	ip  [16]byte
}

// A notice is what a message says.
type notice struct {
	ip     hopKey
	mac    frame.MAC
	told   bool // there is a MAC
	sure   bool // it answers a question of ours
	change bool // it may be believed in the place of another MAC

	asks bool      // it asks for us
	from frame.MAC // to answer to
	to   hopKey    // likewise; unspecified: nobody is to be named
}

// arpFrame marshals an ARP packet. Both addresses are of IPv4: the library takes no other.
func arpFrame(op arp.Operation, to, mac frame.MAC, ip netip.Addr, targetMAC frame.MAC, target netip.Addr) []byte {
	p, err := arp.NewPacket(op, mac.HardwareAddr(), ip, targetMAC.HardwareAddr(), target)
	if err != nil {
		return nil
	}
	body, err := p.MarshalBinary()
	if err != nil {
		return nil
	}
	b, _ := (&ethernet.Frame{Destination: to.HardwareAddr(), Source: mac.HardwareAddr(), EtherType: ethernet.EtherTypeARP, Payload: body}).MarshalBinary()
	return b
}

func (m *messenger) addr() netip.Addr { return netip.AddrFrom16(m.ip).Unmap() }

// question asks who is at an address: a MAC, or with the zero MAC all.
func (m *messenger) question(ip hopKey, to frame.MAC) []byte {
	if m.is4 {
		target := to
		if to.IsZero() {
			to = frame.Broadcast
		}
		return arpFrame(arp.OperationRequest, to, m.mac, m.addr(), target, netip.AddrFrom16(ip).Unmap())
	}
	dst := [16]byte(ip)
	if to.IsZero() {
		dst = wire.SolicitedNode(ip)
		to = groupMAC(dst)
	}
	b, p := m.ndFrame(to, dst)
	wire.PutNeighbourSolicitation(p[wire.IPv6Len:], ip, m.mac).SetChecksum(p)
	return b
}

// answer answers a question for us.
func (m *messenger) answer(n *notice) []byte {
	if m.is4 {
		return arpFrame(arp.OperationReply, n.from, m.mac, m.addr(), n.from, netip.AddrFrom16(n.to).Unmap())
	}
	to, dst, flags := n.from, [16]byte(n.to), uint8(wire.NASolicited|wire.NAOverride)
	if n.to == (hopKey{}) { // a probe: the address is taken (RFC 4861, section 7.2.4)
		to, dst, flags = groupMAC(allNodes), allNodes, wire.NAOverride
	}
	b, p := m.ndFrame(to, dst)
	wire.PutNeighbourAdvert(p[wire.IPv6Len:], flags, m.ip, m.mac).SetChecksum(p)
	return b
}

// announcement tells all that we are here, so that who knew another MAC forgets it (RFC
// 5227, section 2.3; RFC 4861, section 7.2.6).
func (m *messenger) announcement() []byte {
	if m.is4 {
		return arpFrame(arp.OperationRequest, frame.Broadcast, m.mac, m.addr(), frame.MAC{}, m.addr())
	}
	return m.answer(&notice{})
}

var allNodes = [16]byte{0xff, 2, 15: 1}

// groupMAC returns the MAC of a multicast group (RFC 1112, section 6.4; RFC 2464, section 7).
func groupMAC(ip [16]byte) frame.MAC {
	if ip[0] == 0xff {
		return frame.MAC{0x33, 0x33, ip[12], ip[13], ip[14], ip[15]}
	}
	return frame.MAC{1, 0, 0x5e, ip[13] & 0x7f, ip[14], ip[15]}
}

// ndFrame makes a frame around a message with one option.
func (m *messenger) ndFrame(to frame.MAC, dst [16]byte) (b []byte, p wire.IPv6) {
	const n = wire.NeighbourLen + wire.LinkLayerLen
	b = make([]byte, wire.EthernetLen+wire.IPv6Len+n)
	copy(b, to[:])
	copy(b[6:], m.mac[:])
	b[12], b[13] = wire.TypeIPv6>>8, wire.TypeIPv6&0xff
	p = wire.IPv6(b[wire.EthernetLen:])
	h := wire.IPv6Header{NextHeader: wire.ProtoICMPv6, HopLimit: 255, PayloadLen: n, Src: m.ip, Dst: dst}
	h.Put(p)
	return b, p
}

// read reads a frame; ok is false when it is no message, or not one that can be believed.
func (m *messenger) read(b []byte) (n notice, ok bool) {
	e, ok := wire.ParseEthernet(b)
	if !ok || frame.MAC(e.Src()).IsGroup() {
		return n, false
	}
	if m.is4 {
		if e.Type() != wire.TypeARP {
			return n, false
		}
		return m.readARP(e)
	}
	if e.Type() != wire.TypeIPv6 {
		return n, false
	}
	p, ok := wire.ParseIPv6(e[wire.EthernetLen:])
	if !ok {
		return n, false
	}
	return m.readND(e, p)
}

// readARP believes nobody who speaks from another MAC than the one it tells, routers that
// share an address excepted (VRRP, RFC 9568, section 7.3).
func (m *messenger) readARP(e wire.Ethernet) (n notice, ok bool) {
	a, ok := wire.ParseARP(e[wire.EthernetLen:])
	if !ok || a.Op() != wire.ARPRequest && a.Op() != wire.ARPReply {
		return n, false
	}
	from := frame.Endpoint{IP: wire.Mapped(a.SenderIP())}
	mac := frame.MAC(a.SenderMAC())
	if mac.IsGroup() || mac.IsZero() || mac != e.Src() && !isVRRP(mac) || mac == m.mac || from.IP == m.ip {
		return n, false
	}
	us := wire.Mapped(a.TargetIP()) == m.ip
	n = notice{ip: from.IP, mac: mac, from: mac, to: from.IP}
	n.asks = us && a.Op() == wire.ARPRequest
	if isSource(&from) && (us || a.SenderIP() == a.TargetIP()) {
		n.told, n.change = true, true
		n.sure = us && a.Op() == wire.ARPReply
	}
	return n, n.told || n.asks
}

// readND checks what RFC 4861, sections 7.1.1 and 7.1.2, ask for.
func (m *messenger) readND(e wire.Ethernet, p wire.IPv6) (n notice, ok bool) {
	d, ok := wire.ParseND(p)
	if !ok || !d.Valid(p) {
		return n, false
	}
	src, dst := frame.Endpoint{IP: p.Src()}, p.Dst()
	probe := src.IP == [16]byte{}
	if !probe && (!isSource(&src) || src.IP == m.ip) || dst != m.ip && dst[0] != 0xff {
		return n, false
	}
	switch d.Type() {
	case wire.NeighbourSolicitation:
		mac, told := d.LinkLayer(wire.SourceLinkLayer)
		if d.Target() != m.ip || probe && (told || dst != wire.SolicitedNode(m.ip)) {
			return n, false
		}
		n = notice{asks: true, from: e.Src(), to: src.IP}
		if told && !probe && isHostMAC(mac) {
			n.ip, n.mac, n.told, n.change, n.from = src.IP, mac, true, true, mac
		}
		return n, true
	case wire.NeighbourAdvert:
		mac, told := d.LinkLayer(wire.TargetLinkLayer)
		if probe || d.Target() == m.ip || told && (!isHostMAC(mac) || mac == m.mac) || d.Flags()&wire.NASolicited != 0 && dst[0] == 0xff {
			return n, false
		}
		n = notice{ip: d.Target(), mac: mac, told: told, sure: d.Flags()&wire.NASolicited != 0, change: d.Flags()&wire.NAOverride != 0}
		return n, told || n.sure
	}
	return n, false
}

func isHostMAC(m frame.MAC) bool { return !m.IsGroup() && !m.IsZero() }

// isVRRP reports whether a MAC is that of a virtual router.
func isVRRP(m frame.MAC) bool {
	return [4]byte(m[:4]) == [4]byte{0, 0, 0x5e, 0} && (m[4] == 1 || m[4] == 2)
}
