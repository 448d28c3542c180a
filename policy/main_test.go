package policy

import (
	"bytes"
	"fmt"
	"net"
	"net/netip"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
	"go.uber.org/goleak"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/framing"
	"github.com/vxswitch/vxswitch/internal/lab/packets"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var must = check.OK

// A pkt is a packet in words, which gopacket writes.
type pkt struct {
	kind     string // tcp, udp, sctp, gre, icmp (an echo request by default), arp, nd, lldp
	v6       bool
	src, dst int // hosts: 10.0.x.y and fd00::x:y, MAC 02:00:00:00:xx:yy
	srcIP    netip.Addr
	dstIP    netip.Addr
	sport    uint16
	dport    uint16
	flags    string // of TCP: S, A, F, R
	typ      uint8  // of ICMP; 0 = echo request, echoAnswer = 0
	code     uint8
	id       uint16
	vlans    int
	head     int    // 0, or which of framing.Plain is in front
	bare     bool   // an IP packet without Ethernet
	frag     string // "", first, later
	fragID   uint16
	about    *pkt // what an ICMP error quotes
	cut      int  // bytes of it
	group    uint16
}

const echoAnswer = 255 // pkt.typ: an echo reply

func ipOf(v6 bool, n int) netip.Addr {
	if v6 {
		return netip.MustParseAddr(fmt.Sprintf("fd00::%x:%x", n>>8, n&0xff))
	}
	return netip.AddrFrom4([4]byte{10, 0, byte(n >> 8), byte(n)})
}

func macOf(n int) frame.MAC { return frame.MAC{2, 0, 0, 0, byte(n >> 8), byte(n)} }

func (p *pkt) from() netip.Addr {
	if p.srcIP.IsValid() {
		return p.srcIP
	}
	return ipOf(p.v6, p.src)
}

func (p *pkt) to() netip.Addr {
	if p.dstIP.IsValid() {
		return p.dstIP
	}
	return ipOf(p.v6, p.dst)
}

func (p *pkt) icmpType() uint8 {
	switch {
	case p.typ == 0 && p.v6:
		return 128
	case p.typ == 0:
		return 8
	case p.typ == echoAnswer && p.v6:
		return 129
	case p.typ == echoAnswer:
		return 0
	}
	return p.typ
}

func (p *pkt) protocol() layers.IPProtocol {
	switch p.kind {
	case "tcp":
		return layers.IPProtocolTCP
	case "udp":
		return layers.IPProtocolUDP
	case "sctp":
		return layers.IPProtocolSCTP
	case "gre":
		return layers.IPProtocolGRE
	case "icmp", "nd":
		if p.v6 {
			return layers.IPProtocolICMPv6
		}
		return layers.IPProtocolICMPv4
	}
	return 0
}

// answer returns what the other side sends.
func (p pkt) answer() pkt {
	r := p
	r.src, r.dst, r.srcIP, r.dstIP, r.sport, r.dport = p.dst, p.src, p.dstIP, p.srcIP, p.dport, p.sport
	if p.kind == "tcp" {
		r.flags = "A"
		if p.flags == "S" {
			r.flags = "SA"
		}
	}
	if p.kind == "icmp" {
		r.typ = echoAnswer
	}
	return r
}

func (p *pkt) bytes(t testing.TB) []byte {
	t.Helper()
	var ls []gopacket.SerializableLayer
	etherType := layers.EthernetTypeIPv4
	src, dst := p.from(), p.to()
	payload := gopacket.Payload("0123456789abcdef")
	switch {
	case p.kind == "arp":
		etherType = layers.EthernetTypeARP
		sender, target := macOf(p.src), macOf(0)
		ls = append(ls, &layers.ARP{AddrType: 1, Protocol: layers.EthernetTypeIPv4, HwAddressSize: 6, ProtAddressSize: 4, Operation: 1,
			SourceHwAddress: sender[:], SourceProtAddress: src.AsSlice(), DstHwAddress: target[:], DstProtAddress: dst.AsSlice()})
	case p.kind == "lldp":
		etherType = layers.EthernetTypeLinkLayerDiscovery
		ls = append(ls, payload)
	default:
		etherType, ls = p.ip(t, payload)
	}
	if !p.bare {
		a, b := macOf(p.src), macOf(p.dst)
		e := &layers.Ethernet{SrcMAC: a[:], DstMAC: b[:], EthernetType: etherType}
		head := []gopacket.SerializableLayer{e}
		for i := range p.vlans {
			if i == 0 {
				e.EthernetType = layers.EthernetTypeDot1Q
			} else {
				head[i].(*layers.Dot1Q).Type = layers.EthernetTypeDot1Q
			}
			head = append(head, &layers.Dot1Q{VLANIdentifier: 7, Type: etherType})
		}
		ls = append(head, ls...)
	}
	buf := packets.Of(ls...)
	if p.head != 0 && !p.bare {
		return framing.Put(buf, framing.Plain[p.head-1])
	}
	return buf
}

// ip returns the layers from the IP header on.
func (p *pkt) ip(t testing.TB, payload gopacket.Payload) (layers.EthernetType, []gopacket.SerializableLayer) {
	var net gopacket.NetworkLayer
	var head []gopacket.SerializableLayer
	etherType := layers.EthernetTypeIPv4
	src, dst := net4or6(p.from()), net4or6(p.to())
	if p.v6 {
		etherType = layers.EthernetTypeIPv6
		ip := &layers.IPv6{Version: 6, HopLimit: 64, NextHeader: p.protocol(), SrcIP: src, DstIP: dst}
		if p.kind == "nd" {
			ip.HopLimit = 255
		}
		net, head = ip, []gopacket.SerializableLayer{ip}
		if p.frag != "" {
			ip.NextHeader = layers.IPProtocolIPv6Fragment
			offset, more := byte(0), byte(1)
			if p.frag == "later" {
				offset, more = 1, 0 // 256 * 8 bytes
			}
			head = append(head, gopacket.Payload{byte(p.protocol()), 0, offset, more, 0, 0, byte(p.fragID >> 8), byte(p.fragID)})
		}
	} else {
		ip := &layers.IPv4{Version: 4, IHL: 5, TTL: 64, Protocol: p.protocol(), SrcIP: src, DstIP: dst, Id: p.fragID}
		switch p.frag {
		case "first":
			ip.Flags = layers.IPv4MoreFragments
		case "later":
			ip.FragOffset = 32
		}
		net, head = ip, []gopacket.SerializableLayer{ip}
	}
	if p.frag == "later" {
		return etherType, append(head, payload)
	}
	switch p.kind {
	case "tcp":
		h := &layers.TCP{SrcPort: layers.TCPPort(p.sport), DstPort: layers.TCPPort(p.dport), Window: 1}
		for _, c := range p.flags {
			switch c {
			case 'S':
				h.SYN = true
			case 'A':
				h.ACK = true
			case 'F':
				h.FIN = true
			case 'R':
				h.RST = true
			}
		}
		h.SetNetworkLayerForChecksum(net)
		head = append(head, h, payload)
	case "udp":
		h := &layers.UDP{SrcPort: layers.UDPPort(p.sport), DstPort: layers.UDPPort(p.dport)}
		h.SetNetworkLayerForChecksum(net)
		head = append(head, h, payload)
	case "sctp":
		head = append(head, &layers.SCTP{SrcPort: layers.SCTPPort(p.sport), DstPort: layers.SCTPPort(p.dport)}, payload)
	case "gre":
		head = append(head, &layers.GRE{Protocol: layers.EthernetTypeIPv4}, payload)
	case "icmp", "nd":
		rest := gopacket.Payload(payload)
		if p.about != nil {
			q := *p.about
			q.bare = true
			if rest = q.bytes(t); p.cut != 0 {
				rest = rest[:p.cut]
			}
		}
		if !p.v6 {
			head = append(head, &layers.ICMPv4{TypeCode: layers.CreateICMPv4TypeCode(p.icmpType(), p.code), Id: p.id, Seq: 1}, rest)
			break
		}
		h := &layers.ICMPv6{TypeCode: layers.CreateICMPv6TypeCode(p.icmpType(), p.code)}
		h.SetNetworkLayerForChecksum(net)
		head = append(head, h)
		switch {
		case p.kind == "nd":
			target := p.to().As16()
			head = append(head, gopacket.Payload(append(append(make([]byte, 4), target[:]...), 1, 1, 2, 0, 0, 0, byte(p.src>>8), byte(p.src))))
		case p.about != nil:
			head = append(head, gopacket.Payload(append(make([]byte, 4), rest...)))
		default:
			head = append(head, &layers.ICMPv6Echo{Identifier: p.id, SeqNumber: 1}, rest)
		}
	}
	return etherType, head
}

func net4or6(a netip.Addr) net.IP { return a.AsSlice() }

func (p *pkt) frame(t testing.TB) frame.Frame {
	f := frame.Make(p.bytes(t))
	f.VNI, f.From, f.GBP.ID = 100, frame.NewDest(1, 0), p.group
	if p.bare {
		f.Kind = frame.IPv4
		if p.v6 {
			f.Kind = frame.IPv6
		}
	}
	return f
}

// A lab is a policy and a clock.
type lab struct {
	testing.TB
	p   *Policy
	at  frame.At
	vni frame.VNI
}

func newLab(t testing.TB, cfg *Config) *lab {
	t.Helper()
	p := check.Must(New(cfg))(t)
	return &lab{TB: t, p: p, at: frame.At{Tick: 10, Worker: 1}, vni: 100}
}

func (l *lab) send(s *Stage, x pkt) bool {
	l.Helper()
	f := x.frame(l)
	f.VNI = l.vni
	before := bytes.Clone(f.Bytes())
	v := s.Process(&f, l.at)
	if v != frame.Continue && v != frame.Drop(frame.Policy) {
		l.Fatalf("%+v: %v", x, v)
	}
	if !bytes.Equal(before, f.Bytes()) {
		l.Fatalf("%+v: changed", x)
	}
	return v == frame.Continue
}

// in sends a packet in, out one out; want is whether it passes.
func (l *lab) in(want bool, x pkt) {
	l.Helper()
	if got := l.send(l.p.Ingress(), x); got != want {
		l.Errorf("in: %+v: passed %v, want %v", x, got, want)
	}
}

func (l *lab) out(want bool, x pkt) {
	l.Helper()
	if got := l.send(l.p.Egress(), x); got != want {
		l.Errorf("out: %+v: passed %v, want %v", x, got, want)
	}
}

func (l *lab) update(cfg *Config) {
	l.Helper()
	must(l, l.p.Update(cfg))
}

func prefixes(s ...string) (list []netip.Prefix) {
	for _, x := range s {
		list = append(list, netip.MustParsePrefix(x))
	}
	return list
}
