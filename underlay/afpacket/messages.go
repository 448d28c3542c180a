package afpacket

import (
	"net/netip"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/neighbour"
	"github.com/vxswitch/vxswitch/internal/wire"
)

// A messenger makes and parses messages of ARP (RFC 826, RFC 5227) and neighbour discovery (RFC 4861).
type messenger struct {
	is4 bool
	raw bool // errors are about IP-in-IP
	mac frame.MAC
	ip  [16]byte
}

// A notice is the content of a message.
type notice struct {
	ip     hopKey
	mac    frame.MAC
	told   bool // it has a MAC
	sure   bool // it answers a request of ours
	change bool // it may replace another MAC

	asks bool      // it requests our MAC
	from frame.MAC // where to send the answer
	to   hopKey    // likewise; unspecified for a probe
}

func addr(ip [16]byte) netip.Addr { return netip.AddrFrom16(ip).Unmap() }

// question requests the MAC of an address: from one MAC, or with the zero MAC from all.
func (m *messenger) question(ip hopKey, to frame.MAC) []byte {
	b := neighbour.Ask(addr(ip), to, addr(m.ip), m.mac)
	if m.is4 && b != nil {
		wire.ARP(b[wire.EthernetLen:]).SetTargetMAC(to)
	}
	return b
}

// answer answers a request for our MAC.
func (m *messenger) answer(n *notice) []byte {
	if m.is4 {
		b := make([]byte, neighbour.MinLen)
		neighbour.PutARP(b, wire.ARPReply, n.from, m.mac, addr(m.ip), n.from, addr(n.to))
		return b
	}
	b := make([]byte, neighbour.Len6)
	neighbour.PutAdvert(b, addr(m.ip), m.mac, wire.NAOverride, addr(n.to), n.from)
	return b
}

// announcement announces our MAC to all, so that they forget another one (RFC 5227, section 2.3; RFC 4861,
// section 7.2.6).
func (m *messenger) announcement() []byte {
	if m.is4 {
		return m.question(m.ip, frame.MAC{})
	}
	return m.answer(&notice{})
}

// read parses a frame; ok is false if it is not a valid message.
func (m *messenger) read(b []byte) (n notice, ok bool) {
	var x neighbour.Message
	kind := x.Parse(b, false)
	if kind != neighbour.Question && kind != neighbour.Answer || x.V6 == m.is4 || x.Src.IsGroup() {
		return n, false
	}
	sender, us := frame.Endpoint{IP: x.Sender.As16()}, x.Target.As16() == m.ip
	if m.is4 {
		// A message with different MACs in Ethernet and ARP is refused.
		if !x.SenderMAC.IsHost() || x.Spoofed() || x.SenderMAC == m.mac || sender.IP == m.ip {
			return n, false
		}
		n = notice{ip: sender.IP, mac: x.SenderMAC, from: x.SenderMAC, to: sender.IP}
		n.asks = us && kind == neighbour.Question
		if isSource(&sender) && (us || x.Sender == x.Target) {
			n.told, n.change = true, true
			n.sure = us && kind == neighbour.Answer
		}
		return n, n.told || n.asks
	}
	// RFC 4861, sections 7.1.1 and 7.1.2.
	probe, host := x.Sender.IsUnspecified(), x.Told && x.SenderMAC.IsHost()
	if !probe && (!isSource(&sender) || sender.IP == m.ip) || !x.Multicast() && x.To.As16() != m.ip {
		return n, false
	}
	if kind == neighbour.Question {
		if !us || probe && (x.Told || !x.Solicited()) {
			return n, false
		}
		n = notice{asks: true, from: x.Src, to: sender.IP}
		if host && !probe {
			n.ip, n.mac, n.told, n.change, n.from = sender.IP, x.SenderMAC, true, true, x.SenderMAC
		}
		return n, true
	}
	sure := x.Flags&wire.NASolicited != 0
	if probe || us || x.Told && (!host || x.SenderMAC == m.mac) || sure && x.Multicast() {
		return n, false
	}
	return notice{ip: x.Target.As16(), mac: x.SenderMAC, told: x.Told, sure: sure, change: x.Flags&wire.NAOverride != 0}, x.Told || sure
}
