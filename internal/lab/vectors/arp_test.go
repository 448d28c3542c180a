package vectors

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"github.com/vxswitch/vxswitch/arp"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/mem"
	"github.com/vxswitch/vxswitch/internal/lab/packets"
	vswitch "github.com/vxswitch/vxswitch/switch"
)

var neighbourRows = slices.Concat(askedRows(), tunnelRows(), tableRows(), accessRows(), proxyRows())

// A message is ARP or ND in one set of words, ARP's; gopacket writes it.
type message struct {
	answer            bool
	dst, src          frame.MAC
	sender, target    netip.Addr
	senderMAC         frame.MAC  // zero in ND: no option
	targetMAC         frame.MAC  // ARP only
	to                netip.Addr // ND only: where the packet goes
	flags             uint8      // of an advertisement
	hopLimit, badCode uint8      // ND: 255 and 0 if not set
}

const (
	naRouter, naSolicited, naOverride = 0x80, 0x40, 0x20

	gatewayHost = 254
)

var (
	gwMAC    = frame.MAC{2, 0xee, 0, 0, 0, 1}
	ownMAC   = frame.MAC{2, 0xee, 0, 0, 0, 2}
	allNodes = netip.MustParseAddr("ff02::1")
)

// inner returns host n's address inside the tunnel.
func inner(v6 bool, n byte) netip.Addr {
	return pick(v6, netip.AddrFrom4([4]byte{192, 0, 2, n}), netip.AddrFrom16([16]byte{0x20, 1, 0xd, 0xb8, 15: n}))
}

// groupMAC is where a packet to an IPv6 group goes (RFC 2464, section 7).
func groupMAC(ip netip.Addr) frame.MAC {
	b := ip.As16()
	return frame.MAC{0x33, 0x33, b[12], b[13], b[14], b[15]}
}

// solicit addresses a question to everybody who may be its target: in ND the
// solicited-node group (RFC 4291, section 2.7.1).
func (m *message) solicit(target netip.Addr) {
	if m.target, m.dst = target, frame.Broadcast; target.Is6() {
		b := target.As16()
		m.to = netip.AddrFrom16([16]byte{0xff, 2, 11: 1, 12: 0xff, 13: b[13], 14: b[14], 15: b[15]})
		m.dst = groupMAC(m.to)
	}
}

// asks is host from's question for host to.
func asks(v6 bool, mac frame.MAC, from, to byte) message {
	m := message{src: mac, sender: inner(v6, from), senderMAC: mac}
	m.solicit(inner(v6, to))
	return m
}

// says is what host n answers to an asker, whose MAC is toMAC.
func says(v6 bool, mac frame.MAC, n byte, toMAC frame.MAC, to byte) message {
	m := message{answer: true, src: mac, dst: toMAC, sender: inner(v6, n), senderMAC: mac, target: inner(v6, to), targetMAC: toMAC}
	if v6 {
		m.target, m.to, m.targetMAC, m.flags = m.sender, inner(v6, to), frame.MAC{}, naSolicited|naOverride
	}
	return m
}

// announces is what host n tells everybody: a gratuitous request (RFC 5227, section 3), an
// unsolicited advertisement (RFC 4861, section 7.2.6).
func announces(v6 bool, mac frame.MAC, n byte) message {
	if !v6 {
		return asks(false, mac, n, n)
	}
	return message{
		answer: true, src: mac, dst: groupMAC(allNodes), sender: inner(true, n), senderMAC: mac, target: inner(true, n), to: allNodes, flags: naOverride,
	}
}

// probes is the question whether anybody has host n's address.
func probes(v6 bool, mac frame.MAC, n byte) message {
	m := asks(v6, mac, 0, n)
	m.sender = netip.IPv4Unspecified()
	if v6 {
		m.sender, m.senderMAC = netip.IPv6Unspecified(), frame.MAC{}
	}
	return m
}

// bytes is the message on the wire, as a network card sends it.
func (m message) bytes() []byte {
	eth := &layers.Ethernet{SrcMAC: m.src[:], DstMAC: m.dst[:], EthernetType: layers.EthernetTypeARP}
	all := []gopacket.SerializableLayer{eth}
	if !m.to.IsValid() {
		op := uint16(layers.ARPRequest)
		if m.answer {
			op = layers.ARPReply
		}
		all = append(all, &layers.ARP{
			AddrType: layers.LinkTypeEthernet, Protocol: layers.EthernetTypeIPv4, HwAddressSize: 6, ProtAddressSize: 4, Operation: op,
			SourceHwAddress: m.senderMAC[:], SourceProtAddress: m.sender.AsSlice(), DstHwAddress: m.targetMAC[:], DstProtAddress: m.target.AsSlice(),
		})
	} else {
		eth.EthernetType = layers.EthernetTypeIPv6
		ip := &layers.IPv6{Version: 6, NextHeader: layers.IPProtocolICMPv6, HopLimit: 255, SrcIP: m.sender.AsSlice(), DstIP: m.to.AsSlice()}
		if m.hopLimit != 0 {
			ip.HopLimit = m.hopLimit
		}
		typ, option := uint8(layers.ICMPv6TypeNeighborSolicitation), layers.ICMPv6OptSourceAddress
		if m.answer {
			typ, option = layers.ICMPv6TypeNeighborAdvertisement, layers.ICMPv6OptTargetAddress
		}
		icmp := &layers.ICMPv6{TypeCode: layers.CreateICMPv6TypeCode(typ, m.badCode)}
		icmp.SetNetworkLayerForChecksum(ip)
		var opts layers.ICMPv6Options
		if !m.senderMAC.IsZero() {
			opts = layers.ICMPv6Options{{Type: option, Data: m.senderMAC[:]}}
		}
		all = append(all, ip, icmp)
		if m.answer {
			all = append(all, &layers.ICMPv6NeighborAdvertisement{Flags: m.flags, TargetAddress: m.target.AsSlice(), Options: opts})
		} else {
			all = append(all, &layers.ICMPv6NeighborSolicitation{TargetAddress: m.target.AsSlice(), Options: opts})
		}
	}
	return packets.Of(all...)
}

// bare is bytes without padding, which answers have none of.
func (m message) bare() []byte {
	if b := m.bytes(); m.to.IsValid() {
		return b
	} else {
		return b[:42]
	}
}

// A segment is VNI 100 with a responder. Host 1 asks, at port a; host 2 is at port b, host 3
// behind far end f, with rmac(3). The table has host 4 with rmac(4), which is nowhere; of
// host 5 nothing is known.
type segment struct {
	*lab
	v6   bool
	vlan uint16 // of port a; 0 = an access port
	a, b *mem.Host
	f, g *far
	r    *arp.Responder
}

// neighbours starts one. What is not said of the responder is mode Suppress.
func (l *lab) neighbours(v6 bool, vlan uint16, tc arp.TableConfig, cfg arp.Config, gw *arp.Gateway) *segment {
	l.T.Helper()
	l.start(floods{2, 3})
	s := &segment{lab: l, v6: v6, vlan: vlan, f: l.far(2), g: l.far(3)}
	s.a, s.b = l.HostWith(vni, uint32(vlan), vswitch.AttachConfig{}), l.host()
	s.r = l.responder(l.seg, tc, cfg, gw)
	s.f.send(vx(vni, announces(v6, rmac(3), 3).bytes()))
	s.b.Send(announces(v6, s.b.MAC, 2).bytes())
	l.must(s.r.Table().Set(inner(v6, 4), rmac(4), arp.Control, 0))
	l.forget()
	return s
}

// responder fills a segment's slot.
func (l *lab) responder(v *vswitch.VSI, tc arp.TableConfig, cfg arp.Config, gw *arp.Gateway) *arp.Responder {
	l.T.Helper()
	tc.VNI = v.VNI()
	cfg.Table = check.Must(arp.NewTable(&tc))(l.T)
	cfg.Locate = v.FDB().Lookup
	r := check.Must(arp.NewResponder(&cfg))(l.T)
	l.must(r.SetGateway(gw))
	l.must(v.Configure(vswitch.VSIConfig{Slots: vswitch.Slots{Neighbour: r}}))
	return r
}

func (s *segment) gateway(anycast bool) *arp.Gateway {
	return &arp.Gateway{IPs: []netip.Addr{inner(s.v6, gatewayHost)}, MAC: gwMAC, Anycast: anycast}
}

// tagged is b as it is on port a's wire.
func (s *segment) tagged(b []byte) []byte {
	if s.vlan == 0 {
		return b
	}
	return mem.Tagged(s.vlan, b)
}

// sends has host 1 send a frame, and checks that it is counted once, under a outcome.
func (s *segment) sends(b []byte, want arp.Outcome) {
	s.T.Helper()
	s.counts(want, func() { s.a.Send(s.tagged(b)) })
}

// counts checks that what happens is one message of the family, under a outcome; NumBranches
// for none.
func (s *segment) counts(want arp.Outcome, happens func()) {
	s.T.Helper()
	was := s.r.Stats()
	happens()
	is := s.r.Stats()
	old, now := was.ARP, is.ARP
	if s.v6 {
		old, now = was.ND, is.ND
	}
	for b := range arp.NumOutcomes {
		n := uint64(0)
		if b == want {
			n = 1
		}
		s.check(now[b]-old[b] == n, "%d messages counted %v, want %d", now[b]-old[b], b, n)
	}
}

// fate is what becomes of a message.
type fate int

const (
	answered  fate = iota // and nobody else hears of it
	flooded               // to everybody else, as it is
	localOnly             // to the other local port
	toFar                 // to the one far end whose MAC it is for
	consumed
	confined // from an access port, to another than the gateway
)

// asks is sends and wantFate.
func (s *segment) asks(b []byte, want arp.Outcome, f fate, answer []byte) {
	s.T.Helper()
	s.sends(b, want)
	s.wantFate(b, f, answer)
}

// wantFate checks who got what of host 1's frame.
func (s *segment) wantFate(b []byte, f fate, answer []byte) {
	s.T.Helper()
	toA, toB, toF, toG := [][]byte(nil), [][]byte(nil), [][]byte(nil), [][]byte(nil)
	switch f {
	case answered:
		toA = [][]byte{s.tagged(answer)}
	case flooded:
		toB, toF, toG = [][]byte{b}, [][]byte{vx(vni, b)}, [][]byte{vx(vni, b)}
	case localOnly:
		toB = [][]byte{b}
	case toFar:
		toF = [][]byte{vx(vni, b)}
	}
	s.a.Want(toA...)
	s.b.Want(toB...)
	s.f.want(toF...)
	s.g.want(toG...)
	if f == confined {
		s.drops(map[string]uint64{"not-gateway": 1})
	} else {
		s.drops(nil)
	}
}

// wantEntry checks where the table says a host is; a zero MAC is nowhere.
func (s *segment) wantEntry(n byte, mac frame.MAC) {
	s.T.Helper()
	e, ok := s.r.Table().Lookup(inner(s.v6, n))
	s.check(e.MAC == mac && ok != mac.IsZero(), "host %d: %+v, want %v", n, e, mac)
}

// each runs a row for ARP and ND, on an access port and on a trunk.
func each(id, name string, only int, test func(l *lab, v6 bool, vlan uint16)) (rows []row) {
	for _, v6 := range []bool{false, true} {
		for _, vlan := range []uint16{0, 10} {
			if only == 4 && v6 || only == 6 && !v6 {
				continue
			}
			of := pick(v6, "ARP", "ND")
			if vlan != 0 {
				of = fmt.Sprint(of, ", VLAN ", vlan)
			}
			rows = append(rows, row{id: id, name: name + ", " + of, wire: func(l *lab) { test(l, v6, vlan) }})
		}
	}
	return rows
}
