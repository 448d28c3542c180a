package l3

import (
	"net"
	"net/netip"
	"slices"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
	"go.uber.org/goleak"

	"github.com/vxswitch/vxswitch/arp"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/packets"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	macA = frame.MAC{2, 0, 0, 0, 0, 0xa}
	macB = frame.MAC{2, 0, 0, 0, 0, 0xb}
	ip4A = net.IP{192, 168, 7, 1}
	ip4B = net.IP{192, 168, 7, 2}
	ip6A = net.ParseIP("fd00::a")
	ip6B = net.ParseIP("fd00::b")
)

// ether is the header of a frame from A to B with these VLAN tags.
func ether(typ layers.EthernetType, vids ...uint16) (ls []gopacket.SerializableLayer) {
	e := &layers.Ethernet{DstMAC: macB[:], SrcMAC: macA[:], EthernetType: typ}
	ls = append(ls, e)
	for i, vid := range vids {
		outer := layers.EthernetTypeDot1Q
		if i == 0 && len(vids) == 2 {
			outer = layers.EthernetTypeQinQ
		}
		if i == 0 {
			e.EthernetType = outer
		} else {
			ls[i].(*layers.Dot1Q).Type = outer
		}
		ls = append(ls, &layers.Dot1Q{VLANIdentifier: vid, Priority: 5, Type: typ})
	}
	return ls
}

func counting(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i)
	}
	return b
}

// queued returns how many bytes of packets wait.
func (g *Gateway) queued() int {
	g.queue.mu.Lock()
	defer g.queue.mu.Unlock()
	return g.queue.Bytes()
}

// host is the MAC of host n; gate and own are the MACs of the gateway in the segment of a VNI.
func host(n byte) frame.MAC   { return frame.MAC{2, 0, 0, 0, 1, n} }
func gate(vni byte) frame.MAC { return frame.MAC{2, 0, 0, 0xfe, 0, vni} }

var own = frame.MAC{2, 0xaa, 0, 0, 0, 1}

// at4 and at6 are host n's addresses in the segment of a VNI.
func at4(vni, n byte) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, vni, n}) }

func at6(vni, n byte) netip.Addr {
	return netip.AddrFrom16([16]byte{0xfd, 3: vni, 15: n})
}

func addrOf(v6 bool, vni, n byte) netip.Addr {
	if v6 {
		return at6(vni, n)
	}
	return at4(vni, n)
}

// A lab is a gateway with interfaces in VNIs 10 and 20, and what it injects.
type lab struct {
	t        testing.TB
	g        *Gateway
	vrf      *VRF
	i10, i20 *Interface
	injected []injected
	now      frame.Tick
}

type injected struct {
	vni frame.VNI
	to  frame.Dest
	f   frame.Frame
}

func newLab(t testing.TB, cfg *GatewayConfig) *lab {
	t.Helper()
	l := &lab{t: t}
	l.g = check.Must(NewGateway(cfg))(t)
	l.vrf = l.g.VRF("red")
	l.i10, l.i20 = l.iface(l.vrf, 10, false), l.iface(l.vrf, 20, false)
	return l
}

// iface adds the interface of a segment.
func (l *lab) iface(v *VRF, vni byte, anycast bool) *Interface {
	l.t.Helper()
	table := check.Must(arp.NewTable(&arp.TableConfig{VNI: frame.VNI(vni)}))(l.t)
	r := check.Must(arp.NewResponder(&arp.Config{Table: table}))(l.t)
	i, err := v.NewInterface(&InterfaceConfig{
		VNI: frame.VNI(vni), Addresses: []netip.Prefix{netip.PrefixFrom(at4(vni, 254), 24), netip.PrefixFrom(at6(vni, 254), 64)},
		MAC: gate(vni), VTEPMAC: own, Anycast: anycast, Neighbours: r, Send: l.send(frame.VNI(vni)),
	})
	check.OK(l.t, err)
	return i
}

func (l *lab) send(vni frame.VNI) func(to frame.Dest, f *frame.Frame) bool {
	return func(to frame.Dest, f *frame.Frame) bool {
		l.injected = append(l.injected, injected{vni, to, f.Clone()})
		return true
	}
}

// knows tells an interface of host n on its segment; behind a tunnel if peer is not 0.
func (l *lab) knows(i *Interface, n byte, peer uint16) {
	for _, v6 := range []bool{false, true} {
		i.neighbours.Learn(&arp.Claim{IP: addrOf(v6, byte(i.VNI()), n), MAC: host(n), From: frame.NewDest(1, peer)}, l.now)
	}
}

// A shape is a packet to be written by gopacket.
type shape struct {
	src, dst   netip.Addr
	from, to   frame.MAC
	ttl        uint8
	df         bool
	proto      layers.IPProtocol // 0: UDP
	payload    int
	options    []layers.IPv4Option
	icmp       uint8 // type, for ICMP
	sport      uint16
	noEthernet bool
}

func (s shape) bytes(t testing.TB) []byte {
	t.Helper()
	eth := &layers.Ethernet{SrcMAC: s.from[:], DstMAC: s.to[:], EthernetType: layers.EthernetTypeIPv4}
	var ls []gopacket.SerializableLayer
	var network gopacket.NetworkLayer
	proto := s.proto
	if proto == 0 {
		proto = layers.IPProtocolUDP
	}
	if s.src.Is6() {
		eth.EthernetType = layers.EthernetTypeIPv6
		ip := &layers.IPv6{Version: 6, HopLimit: s.ttl, NextHeader: proto, SrcIP: s.src.AsSlice(), DstIP: s.dst.AsSlice()}
		network, ls = ip, []gopacket.SerializableLayer{ip}
	} else {
		ip := &layers.IPv4{Version: 4, TTL: s.ttl, Protocol: proto, SrcIP: s.src.AsSlice(), DstIP: s.dst.AsSlice(), Options: s.options, Id: 7}
		if s.df {
			ip.Flags = layers.IPv4DontFragment
		}
		network, ls = ip, []gopacket.SerializableLayer{ip}
	}
	switch proto {
	case layers.IPProtocolUDP:
		u := &layers.UDP{SrcPort: layers.UDPPort(s.sport), DstPort: 9}
		u.SetNetworkLayerForChecksum(network)
		ls = append(ls, u)
	case layers.IPProtocolICMPv4:
		ls = append(ls, &layers.ICMPv4{TypeCode: layers.CreateICMPv4TypeCode(s.icmp, 0), Id: 3, Seq: 4})
	case layers.IPProtocolICMPv6:
		c := &layers.ICMPv6{TypeCode: layers.CreateICMPv6TypeCode(s.icmp, 0)}
		c.SetNetworkLayerForChecksum(network)
		ls = append(ls, c, &layers.ICMPv6Echo{Identifier: 3, SeqNumber: 4})
	}
	ls = append(ls, gopacket.Payload(counting(s.payload)))
	if !s.noEthernet {
		ls = append([]gopacket.SerializableLayer{eth}, ls...)
	}
	return packets.Of(ls...)
}

// between is a packet from host a of VNI 10 to host b of VNI 20.
func between(v6 bool, a, b byte) shape {
	return shape{src: addrOf(v6, 10, a), dst: addrOf(v6, 20, b), from: host(a), to: gate(10), ttl: 64, df: true, payload: 64}
}

// in hands a frame to an interface.
func (l *lab) in(i *Interface, b []byte) (frame.Verdict, frame.Frame) {
	f := frame.Make(b)
	f.From, f.VNI = frame.NewDest(1, 0), i.VNI()
	return i.Process(&f, frame.At{Tick: l.now}), f
}

// verdict is what an interface says of a frame.
func (l *lab) verdict(i *Interface, b []byte) frame.Verdict { v, _ := l.in(i, b); return v }

// packetOf has gopacket read a frame and write it again: every length and checksum.
func packetOf(t testing.TB, b []byte, first gopacket.LayerType) gopacket.Packet {
	t.Helper()
	p := gopacket.NewPacket(b, first, gopacket.Default)
	if e := p.ErrorLayer(); e != nil {
		t.Fatalf("gopacket: %v\n% x", e.Error(), b)
	}
	if ip, ok := p.NetworkLayer().(*layers.IPv4); ok {
		h := b[len(b)-int(ip.Length):]
		if first == layers.LayerTypeEthernet {
			h = b[14:]
		}
		check.True(t, sum16(h[:int(ip.IHL)*4]) == 0xffff, "header checksum of % x", h[:int(ip.IHL)*4])
		if ip.Protocol == layers.IPProtocolICMPv4 && sum16(ip.Payload) != 0xffff {
			t.Errorf("ICMP checksum of % x", ip.Payload)
		}
	}
	if ip, ok := p.NetworkLayer().(*layers.IPv6); ok && ip.NextHeader == layers.IPProtocolICMPv6 {
		pseudo := append(append(slices.Clone(ip.SrcIP), ip.DstIP...), 0, 0, byte(len(ip.Payload)>>8), byte(len(ip.Payload)), 0, 0, 0, 58)
		check.True(t, sum16(append(pseudo, ip.Payload...)) == 0xffff, "ICMPv6 checksum of % x", ip.Payload)
	}
	return p
}

func sum16(b []byte) uint16 {
	var s uint32
	for i, x := range b {
		s += uint32(x) << (8 * (1 - i%2))
	}
	for s>>16 != 0 {
		s = s>>16 + s&0xffff
	}
	return uint16(s)
}
