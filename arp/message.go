package arp

import (
	"net/netip"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/wire"
)

// A message is what an ARP packet and a message of neighbour discovery have in common, in
// one set of words: ARP's.
type message struct {
	v6       bool
	question bool // ARP request, neighbour solicitation
	answer   bool // ARP reply, neighbour advertisement; neither: of or to a router
	multi    bool // v6: to a multicast address

	dst, src  frame.MAC  // of the frame
	sender    netip.Addr // who speaks; unspecified in a probe
	senderMAC frame.MAC  // what it says its MAC is
	told      bool       // it says so
	target    netip.Addr // whom a question is for
	asked     netip.Addr // whom an answer is for
	flags     Flags
	weak      bool // an advertisement without O
}

// gratuitous reports whether m announces its sender.
func (m *message) gratuitous() bool { return m.sender == m.target }

// spoofed reports whether the sender's MAC is another than that of the frame: a frame that
// came through a proxy, or a lie. Routers that share an address speak in its name with
// the MAC that belongs to it (VRRP, RFC 9568, section 7.3).
func (m *message) spoofed() bool {
	return m.told && m.senderMAC != m.src && !isVRRP(m.senderMAC)
}

// isVRRP reports whether a MAC is that of a virtual router.
func isVRRP(m frame.MAC) bool {
	return m[0] == 0 && m[1] == 0 && m[2] == 0x5e && m[3] == 0 && (m[4] == 1 || m[4] == 2)
}

// parse reads f into m; what it finds wrong is the branch, else ok is true. A frame that
// is neither ARP nor ND has no branch.
func (m *message) parse(f *frame.Frame) (b Branch, ok bool) {
	e, isEth := wire.ParseEthernet(f.Bytes())
	if !isEth {
		return NumBranches, false
	}
	m.dst, m.src = frame.MAC(e.Dst()), frame.MAC(e.Src())
	switch body := e[wire.EthernetLen:]; e.Type() {
	case wire.TypeARP:
		return m.parseARP(body)
	case wire.TypeIPv6:
		return m.parseND(body, f.GSO.Flags&frame.NeedsCsum != 0)
	}
	return NumBranches, false
}

func (m *message) parseARP(b []byte) (Branch, bool) {
	a, ok := wire.ParseARP(b)
	if !ok {
		return Malformed, false
	}
	m.question, m.answer = a.Op() == wire.ARPRequest, a.Op() == wire.ARPReply
	if !m.question && !m.answer {
		return Malformed, false
	}
	m.sender, m.target = netip.AddrFrom4(a.SenderIP()), netip.AddrFrom4(a.TargetIP())
	m.senderMAC, m.told = frame.MAC(a.SenderMAC()), true
	m.asked = m.target
	switch {
	case !isMAC(m.senderMAC), !m.sender.IsUnspecified() && !isHost(m.sender), m.sender.IsUnspecified() && m.answer:
		return BadSender, false
	case m.question && !isHost(m.target):
		return BadTarget, false
	}
	return 0, true
}

// parseND reads a message whose checksum may be unfinished, as a host that left it to its
// network card sends it.
func (m *message) parseND(b []byte, unfinished bool) (Branch, bool) {
	m.v6 = true
	p, ok := wire.ParseIPv6(b)
	if !ok {
		return Malformed, false
	}
	n, ok := wire.ParseND(p)
	if !ok || !unfinished && !n.Valid(p) {
		return Malformed, false
	}
	src, dst := p.Src(), p.Dst()
	m.sender, m.multi = netip.AddrFrom16(src), dst[0] == 0xff
	m.asked = netip.AddrFrom16(dst)
	var mac [6]byte
	switch n.Type() {
	case wire.NeighbourSolicitation:
		m.question = true
		m.target = netip.AddrFrom16(n.Target())
		mac, m.told = n.LinkLayer(wire.SourceLinkLayer)
		if !isHost(m.target) {
			return BadTarget, false
		}
		// RFC 4861, section 7.1.1.
		probe := m.sender.IsUnspecified()
		if (probe && m.told) || ((probe || m.multi) && dst != wire.SolicitedNode(n.Target())) {
			return Malformed, false
		}
	case wire.NeighbourAdvert:
		m.answer = true
		m.target = netip.AddrFrom16(n.Target())
		mac, m.told = n.LinkLayer(wire.TargetLinkLayer)
		if n.Flags()&wire.NASolicited != 0 && m.multi || !isHost(m.sender) { // section 7.1.2
			return Malformed, false
		}
		if !isHost(m.target) {
			return BadTarget, false
		}
		m.sender = m.target // it speaks for the target
		m.flags, m.weak = Taught, n.Flags()&wire.NAOverride == 0
		if n.Flags()&wire.NARouter != 0 {
			m.flags |= Router
		}
		if m.weak {
			m.flags |= Anycast
		}
	case wire.RouterAdvertisement:
		mac, m.told = n.LinkLayer(wire.SourceLinkLayer)
		if !m.sender.IsLinkLocalUnicast() { // section 6.1.2
			return Malformed, false
		}
		m.flags = Taught | Router
	default:
		mac, m.told = n.LinkLayer(wire.SourceLinkLayer)
		if m.told && m.sender.IsUnspecified() { // section 6.1.1
			return Malformed, false
		}
	}
	m.senderMAC = frame.MAC(mac)
	if m.told && !isMAC(m.senderMAC) || !m.sender.IsUnspecified() && !isHost(m.sender) {
		return BadSender, false
	}
	return 0, true
}
