package l3

import (
	"bytes"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"github.com/vxswitch/vxswitch/arp"
	"github.com/vxswitch/vxswitch/frame"
	vswitch "github.com/vxswitch/vxswitch/switch"
)

var _ vswitch.Housekeeper = (*Interface)(nil)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// host is the MAC of host n; gate and own are the MACs of the gateway in the segment of a
// VNI.
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
	var err error
	l.g, err = NewGateway(cfg)
	must(t, err)
	l.vrf = l.g.VRF("red")
	l.i10, l.i20 = l.iface(l.vrf, 10, false), l.iface(l.vrf, 20, false)
	return l
}

// iface adds the interface of a segment.
func (l *lab) iface(v *VRF, vni byte, anycast bool) *Interface {
	l.t.Helper()
	table, err := arp.NewTable(&arp.TableConfig{VNI: frame.VNI(vni)})
	must(l.t, err)
	r, err := arp.NewResponder(&arp.Config{Table: table})
	must(l.t, err)
	i, err := v.NewInterface(&InterfaceConfig{
		VNI: frame.VNI(vni), Addresses: []netip.Prefix{netip.PrefixFrom(at4(vni, 254), 24), netip.PrefixFrom(at6(vni, 254), 64)},
		MAC: gate(vni), VTEPMAC: own, Anycast: anycast, Neighbours: r, Send: l.send(frame.VNI(vni)),
	})
	must(l.t, err)
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
	return serialize(t, ls...)
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
		if sum16(h[:int(ip.IHL)*4]) != 0xffff {
			t.Errorf("header checksum of % x", h[:int(ip.IHL)*4])
		}
		if ip.Protocol == layers.IPProtocolICMPv4 && sum16(ip.Payload) != 0xffff {
			t.Errorf("ICMP checksum of % x", ip.Payload)
		}
	}
	if ip, ok := p.NetworkLayer().(*layers.IPv6); ok && ip.NextHeader == layers.IPProtocolICMPv6 {
		pseudo := append(append(slices.Clone(ip.SrcIP), ip.DstIP...), 0, 0, byte(len(ip.Payload)>>8), byte(len(ip.Payload)), 0, 0, 0, 58)
		if sum16(append(pseudo, ip.Payload...)) != 0xffff {
			t.Errorf("ICMPv6 checksum of % x", ip.Payload)
		}
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

// A packet between two segments: MACs rewritten, TTL one less, nothing else changed.
func TestRouted(t *testing.T) {
	for _, v6 := range []bool{false, true} {
		for _, peer := range []uint16{0, 7} {
			l := newLab(t, nil)
			l.knows(l.i20, 4, peer)
			s := between(v6, 1, 4)
			in := s.bytes(t)
			v, f := l.in(l.i10, in)
			if v != frame.Reenter || f.VNI != 20 || f.Kind != frame.Ethernet {
				t.Fatalf("%v, VNI %d", v, f.VNI)
			}
			want := s
			want.to, want.from, want.ttl = host(4), gate(20), 63
			if peer != 0 {
				want.from = own // a VTEP's common MAC is not shown to others
			}
			if out := want.bytes(t); !bytes.Equal(f.Bytes(), out) {
				t.Errorf("IPv6 %v:\n% x, want\n% x", v6, f.Bytes(), out)
			}
			if st := l.i10.Stats(); st.Routed4+st.Routed6 != 1 {
				t.Errorf("%+v", st)
			}
		}
	}
}

// What is dropped, for what reason, unchanged; and what is none of the gateway's business.
func TestDropped(t *testing.T) {
	l := newLab(t, nil)
	l.knows(l.i20, 4, 0)
	must(t, l.vrf.Add(Route{Prefix: netip.MustParsePrefix("10.9.0.0/16")}))
	edit := func(f func(s *shape)) []byte {
		s := between(false, 1, 4)
		f(&s)
		return s.bytes(t)
	}
	bits := func(f func(b []byte)) []byte {
		b := between(false, 1, 4).bytes(t)
		f(b)
		return b
	}
	six := func(f func(s *shape)) []byte {
		s := between(true, 1, 4)
		f(&s)
		return s.bytes(t)
	}
	ip := netip.MustParseAddr
	for _, c := range []struct {
		name string
		in   []byte
		want frame.Verdict
	}{
		{"to another MAC", edit(func(s *shape) { s.to = host(9) }), frame.Continue},
		{"broadcast", edit(func(s *shape) { s.to = frame.Broadcast }), frame.Continue},
		{"no IP", bits(func(b []byte) { b[12] = 0x88 }), frame.Drop(frame.NoRoute)},
		{"short", between(false, 1, 4).bytes(t)[:13], frame.Drop(frame.Short)},
		{"no packet", between(false, 1, 4).bytes(t)[:14], frame.Drop(frame.BadHeader)},
		{"version", bits(func(b []byte) { b[14] = 0x55 }), frame.Drop(frame.BadHeader)},
		{"header length", bits(func(b []byte) { b[14] = 0x44 }), frame.Drop(frame.BadHeader)},
		{"header longer than the packet", bits(func(b []byte) { b[14], b[17] = 0x4f, 40 }), frame.Drop(frame.BadHeader)},
		{"length", bits(func(b []byte) { b[16] = 9 }), frame.Drop(frame.BadHeader)},
		{"checksum", bits(func(b []byte) { b[24]++ }), frame.Drop(frame.BadChecksum)},
		{"IPv6 version", func() []byte { b := between(true, 1, 4).bytes(t); b[14] = 0x40; return b }(), frame.Drop(frame.BadHeader)},
		{"IPv6 length", func() []byte { b := between(true, 1, 4).bytes(t); b[18] = 9; return b }(), frame.Drop(frame.BadHeader)},
		{"source route", edit(func(s *shape) {
			s.options = []layers.IPv4Option{{OptionType: 131, OptionLength: 7, OptionData: []byte{4, 10, 0, 20, 4}}, {OptionType: 0}}
		}), frame.Drop(frame.BadHeader)},
		{"from loopback", edit(func(s *shape) { s.src = ip("127.0.0.1") }), frame.Drop(frame.Martian)},
		{"from 0.0.0.0", edit(func(s *shape) { s.src = ip("0.0.0.0") }), frame.Drop(frame.Martian)},
		{"from multicast", edit(func(s *shape) { s.src = ip("224.0.0.5") }), frame.Drop(frame.Martian)},
		{"from link-local", edit(func(s *shape) { s.src = ip("169.254.0.5") }), frame.Drop(frame.Martian)},
		{"from ourselves", edit(func(s *shape) { s.src = at4(10, 254) }), frame.Drop(frame.Martian)},
		{"to loopback", edit(func(s *shape) { s.dst = ip("127.0.0.1") }), frame.Drop(frame.Martian)},
		{"to multicast", edit(func(s *shape) { s.dst = ip("224.0.0.5") }), frame.Drop(frame.Martian)},
		{"to broadcast", edit(func(s *shape) { s.dst = ip("255.255.255.255") }), frame.Drop(frame.Martian)},
		{"to link-local", edit(func(s *shape) { s.dst = ip("169.254.169.254") }), frame.Drop(frame.Martian)},
		{"directed broadcast", edit(func(s *shape) { s.dst = at4(20, 255) }), frame.Drop(frame.NoRoute)},
		{"the network itself", edit(func(s *shape) { s.dst = at4(20, 0) }), frame.Drop(frame.NoRoute)},
		{"blackhole", edit(func(s *shape) { s.dst = ip("10.9.8.7") }), frame.Drop(frame.NoRoute)},
		{"IPv6 from loopback", six(func(s *shape) { s.src = ip("::1") }), frame.Drop(frame.Martian)},
		{"IPv6 from ::", six(func(s *shape) { s.src = ip("::") }), frame.Drop(frame.Martian)},
		{"IPv6 to multicast", six(func(s *shape) { s.dst = ip("ff02::1") }), frame.Drop(frame.Martian)},
		{"IPv6 to link-local", six(func(s *shape) { s.dst = ip("fe80::1") }), frame.Drop(frame.Martian)},
		{"IPv6 from ourselves", six(func(s *shape) { s.src = at6(10, 254) }), frame.Drop(frame.Martian)},
	} {
		v, f := l.in(l.i10, c.in)
		if v != c.want || !bytes.Equal(f.Bytes(), c.in) {
			t.Errorf("%s: %v, want %v; changed: %v", c.name, v, c.want, !bytes.Equal(f.Bytes(), c.in))
		}
	}
	if len(l.injected) != 0 {
		t.Errorf("%d frames injected", len(l.injected))
	}
	// Options other than source routes pass.
	in := edit(func(s *shape) {
		s.options = []layers.IPv4Option{{OptionType: 1}, {OptionType: 1}, {OptionType: 1}, {OptionType: 0}}
	})
	if v, _ := l.in(l.i10, in); v != frame.Reenter {
		t.Errorf("options: %v", v)
	}
}

// Errors go back the way the packet came, quote it, and come from the interface it came in
// on.
func TestErrors(t *testing.T) {
	for _, v6 := range []bool{false, true} {
		for _, c := range []struct {
			name       string
			edit       func(s *shape)
			typ4, typ6 uint16
		}{
			{"TTL 1", func(s *shape) { s.ttl = 1 }, 11 << 8, 3 << 8},
			{"TTL 0", func(s *shape) { s.ttl = 0 }, 11 << 8, 3 << 8},
			{"no route", func(s *shape) { s.dst = addrOf(v6, 99, 1) }, 3 << 8, 1 << 8},
			{"UDP to the gateway", func(s *shape) { s.dst = addrOf(v6, 20, 254) }, 3<<8 | 3, 1<<8 | 4},
			{"a long one", func(s *shape) { s.ttl, s.payload = 1, 1400 }, 11 << 8, 3 << 8},
			{"an empty one", func(s *shape) { s.ttl, s.payload = 1, 0 }, 11 << 8, 3 << 8},
		} {
			l := newLab(t, nil)
			s := between(v6, 1, 4)
			c.edit(&s)
			in := s.bytes(t)
			v, f := l.in(l.i10, in)
			if v != frame.Reply {
				t.Fatalf("%s, IPv6 %v: %v", c.name, v6, v)
			}
			checkError(t, f.Bytes(), in, v6, c.typ4, c.typ6, at4(10, 254), at6(10, 254))
			// The same where the answer does not fit in front of the packet.
			g := frame.Over(bytes.Clone(in), 0, len(in))
			g.From, g.VNI = frame.NewDest(9, 3), 10
			switch v := l.i10.Process(&g, frame.At{}); {
			case v == frame.Reply: // it was longer than the answer
			case v == frame.Consume && len(l.injected) == 1 && l.injected[0].vni == 10:
				checkError(t, l.injected[0].f.Bytes(), in, v6, c.typ4, c.typ6, at4(10, 254), at6(10, 254))
			default:
				t.Errorf("%s, IPv6 %v: %v", c.name, v6, v)
			}
			if st := l.i10.Stats(); st.Errors != 2 {
				t.Errorf("%+v", st)
			}
		}
	}
}

func checkError(t *testing.T, out, in []byte, v6 bool, typ4, typ6 uint16, from4, from6 netip.Addr) {
	t.Helper()
	p := packetOf(t, out, layers.LayerTypeEthernet)
	eth := p.LinkLayer().(*layers.Ethernet)
	if frame.MAC(eth.DstMAC) != frame.MAC(in[6:]) || frame.MAC(eth.SrcMAC) != frame.MAC(in) {
		t.Errorf("from %v to %v", eth.SrcMAC, eth.DstMAC)
	}
	var quote []byte
	if v6 {
		ip, c := p.NetworkLayer().(*layers.IPv6), p.Layer(layers.LayerTypeICMPv6).(*layers.ICMPv6)
		if a, _ := netip.AddrFromSlice(ip.SrcIP); uint16(c.TypeCode) != typ6 || a != from6 || !bytes.Equal(ip.DstIP, in[22:38]) {
			t.Errorf("%v from %v to %v", c.TypeCode, ip.SrcIP, ip.DstIP)
		}
		quote = c.Payload[4:]
	} else {
		ip, c := p.NetworkLayer().(*layers.IPv4), p.Layer(layers.LayerTypeICMPv4).(*layers.ICMPv4)
		if a, _ := netip.AddrFromSlice(ip.SrcIP); uint16(c.TypeCode) != typ4 || a != from4 || !bytes.Equal(ip.DstIP, in[26:30]) {
			t.Errorf("%v from %v to %v", c.TypeCode, ip.SrcIP, ip.DstIP)
		}
		quote = c.Payload
	}
	if !bytes.HasPrefix(in[14:], quote) || len(quote) < 28 {
		t.Errorf("quotes % x", quote)
	}
}

// No errors about errors, later fragments, nor beyond the rate.
func TestNoErrors(t *testing.T) {
	l := newLab(t, &GatewayConfig{PerSender: 3})
	s := between(false, 1, 4)
	s.ttl, s.proto, s.icmp = 1, layers.IPProtocolICMPv4, 3
	if v, _ := l.in(l.i10, s.bytes(t)); v != frame.Drop(frame.TTL) {
		t.Errorf("about an error: %v", v)
	}
	s = between(true, 1, 4)
	s.ttl, s.proto, s.icmp = 1, layers.IPProtocolICMPv6, 1
	if v, _ := l.in(l.i10, s.bytes(t)); v != frame.Drop(frame.TTL) {
		t.Errorf("about an error of IPv6: %v", v)
	}
	s = between(false, 1, 4)
	s.ttl = 1
	b := s.bytes(t)
	b[21] = 9
	b[24], b[25] = 0, 0
	sum := ^sum16(b[14:34])
	b[24], b[25] = byte(sum>>8), byte(sum)
	if v, _ := l.in(l.i10, b); v != frame.Drop(frame.TTL) {
		t.Errorf("about a later fragment: %v", v)
	}
	for k := range 5 {
		want := frame.Reply
		if k >= 3 {
			want = frame.Drop(frame.TTL)
		}
		if v, _ := l.in(l.i10, s.bytes(t)); v != want {
			t.Errorf("error %d: %v", k, v)
		}
	}
	if st := l.i10.Stats(); st.Errors != 3 || st.Limited != 2 {
		t.Errorf("%+v", st)
	}
}

func TestEcho(t *testing.T) {
	for _, v6 := range []bool{false, true} {
		for _, vni := range []byte{10, 20} { // the near address and the far one
			l := newLab(t, nil)
			s := between(v6, 1, 4)
			s.dst, s.ttl, s.proto, s.icmp = addrOf(v6, vni, 254), 1, layers.IPProtocolICMPv4, 8
			if v6 {
				s.proto, s.icmp = layers.IPProtocolICMPv6, 128
			}
			v, f := l.in(l.i10, s.bytes(t))
			if v != frame.Reply {
				t.Fatalf("IPv6 %v: %v", v6, v)
			}
			want := s
			want.src, want.dst, want.from, want.to, want.ttl, want.icmp = s.dst, s.src, s.to, s.from, 64, 0
			if v6 {
				want.icmp = 129
			}
			if out := want.bytes(t); !bytes.Equal(f.Bytes(), out) {
				t.Errorf("IPv6 %v:\n% x, want\n% x", v6, f.Bytes(), out)
			}
			bad := s.bytes(t)
			bad[len(bad)-1] ^= 1
			if v, _ := l.in(l.i10, bad); v != frame.Drop(frame.BadChecksum) {
				t.Errorf("IPv6 %v: %v", v6, v)
			}
		}
	}
}

// Packets wait for a next hop that is not known, three at most, and leave in order when it
// has spoken. One that does not answer is asked three times; then senders are told.
func TestUnresolved(t *testing.T) {
	for _, v6 := range []bool{false, true} {
		l := newLab(t, nil)
		for k := range 5 {
			s := between(v6, 1, 4)
			s.sport = uint16(k)
			want := frame.Consume
			if k >= 3 {
				want = frame.Drop(frame.Unresolved)
			}
			if v, _ := l.in(l.i10, s.bytes(t)); v != want {
				t.Fatalf("packet %d: %v", k, v)
			}
		}
		if len(l.injected) != 1 || l.injected[0].vni != 20 {
			t.Fatalf("asked %d times", len(l.injected))
		}
		q := l.injected[0].f.Bytes()
		if !frame.MAC(q).IsGroup() || frame.MAC(q[6:]) != gate(20) {
			t.Errorf("asked: % x", q)
		}
		if !v6 && !bytes.Equal(q[28:32], at4(20, 254).AsSlice()) {
			t.Errorf("asked in the name of % x", q[28:32])
		}
		l.injected = nil
		l.knows(l.i20, 4, 0)
		if len(l.injected) != 3 {
			t.Fatalf("%d left", len(l.injected))
		}
		for k, x := range l.injected {
			want := between(v6, 1, 4)
			want.sport, want.ttl, want.from, want.to = uint16(k), 63, gate(20), host(4)
			if x.vni != 20 || !bytes.Equal(x.f.Bytes(), want.bytes(t)) {
				t.Errorf("packet %d: % x", k, x.f.Bytes())
			}
		}
		if n := l.g.queued(); n != 0 || l.i20.Stats().Waiting != 0 {
			t.Errorf("%d bytes wait", n)
		}
		// Nobody is at 5.
		l.injected = nil
		for range 2 {
			l.in(l.i10, between(v6, 1, 5).bytes(t))
		}
		for l.now = 1; l.now < 4; l.now++ {
			l.i20.Housekeep(l.now)
		}
		var asked, told int
		for _, x := range l.injected {
			if x.vni == 20 {
				asked++
				continue
			}
			told++
			checkError(t, x.f.Bytes(), between(v6, 1, 5).bytes(t), v6, 3<<8|1, 1<<8|3, at4(10, 254), at6(10, 254))
		}
		if asked != 3 || told != 2 || l.g.queued() != 0 {
			t.Errorf("asked %d times, told %d, %d bytes wait", asked, told, l.g.queued())
		}
		// For a while nobody waits; then it is asked anew.
		if v, _ := l.in(l.i10, between(v6, 1, 5).bytes(t)); v != frame.Reply {
			t.Errorf("%v", v)
		}
		for range retryAfter {
			l.now++
			l.i20.Housekeep(l.now)
		}
		if v, _ := l.in(l.i10, between(v6, 1, 5).bytes(t)); v != frame.Consume {
			t.Errorf("%v", v)
		}
	}
}

// What waits is bounded: in bytes, in next hops, and in packets for each. What has been waiting
// longest makes room.
func TestUnresolvedBounds(t *testing.T) {
	l := newLab(t, &GatewayConfig{Queued: 1000})
	for k := range 20 {
		s := between(false, 1, byte(k+1))
		if v, _ := l.in(l.i10, s.bytes(t)); v != frame.Consume {
			t.Errorf("%d: %v", k, v)
		}
	}
	if n := l.g.queued(); n != 9*106 || l.i20.Stats().Unresolved != 11 {
		t.Errorf("%d bytes, %+v", n, l.i20.Stats())
	}
	l.injected = nil
	for k := range 20 {
		if l.knows(l.i20, byte(k+1), 0); len(l.injected) != max(0, k-10) {
			t.Fatalf("%d packets sent to %d next hops", len(l.injected), k+1)
		}
	}
	for _, c := range []struct {
		cfg                   GatewayConfig
		waiting, perNeighbour int
	}{
		{GatewayConfig{}, 1024, 3},
		{GatewayConfig{Waiting: 7, PerNeighbour: 5}, 7, 5},
		{GatewayConfig{Waiting: 1, PerNeighbour: 1}, 1, 1},
	} {
		l = newLab(t, &c.cfg)
		hop := func(k int) netip.Addr {
			return netip.AddrFrom16([16]byte{0xfd, 0, 3: 20, 13: 1, 14: byte(k >> 8), 15: byte(k)})
		}
		for k := range 3 * c.waiting {
			s := between(true, 1, 4)
			s.payload, s.dst = 10, hop(k)
			for n := range c.perNeighbour + 2 {
				want := frame.Consume
				if n >= c.perNeighbour {
					want = frame.Drop(frame.Unresolved)
				}
				if v, _ := l.in(l.i10, s.bytes(t)); v != want {
					t.Fatalf("%+v: packet %d for next hop %d: %v", c.cfg, n, k, v)
				}
			}
		}
		for k := range 3 * c.waiting {
			if got := l.i20.asked(hop(k)); got != (k >= 2*c.waiting) {
				t.Fatalf("%+v: next hop %d is asked for: %v", c.cfg, k, got)
			}
		}
		if st := l.i20.Stats(); st.Waiting != c.waiting {
			t.Errorf("%+v: %+v", c.cfg, st)
		}
		must(t, l.i20.Close())
		if l.g.queued() != 0 {
			t.Error("closed, and packets wait")
		}
	}
}

// An anycast gateway asks with the VTEP's own MAC, in nobody's name.
func TestAnycastAsks(t *testing.T) {
	l := newLab(t, nil)
	i30 := l.iface(l.vrf, 30, true)
	s := between(false, 1, 4)
	s.dst = at4(30, 4)
	l.in(l.i10, s.bytes(t))
	if q := l.injected[0].f.Bytes(); frame.MAC(q[6:]) != own || !bytes.Equal(q[28:32], make([]byte, 4)) {
		t.Errorf("% x", q)
	}
	if i30.MAC() != gate(30) {
		t.Error(i30.MAC())
	}
}

// Routes: the longest prefix, next hops by flow, VRFs apart, changes as a whole.
func TestRoutes(t *testing.T) {
	l := newLab(t, nil)
	l3vni, err := l.vrf.NewInterface(&InterfaceConfig{VNI: 50, MAC: gate(50), Send: l.send(50)})
	must(t, err)
	tun, err := l.vrf.NewInterface(&InterfaceConfig{VNI: 60, Port: frame.NewDest(6, 0), Send: l.send(60)})
	must(t, err)
	router := frame.MAC{2, 0, 0, 0, 5, 5}
	p := netip.MustParsePrefix
	must(t, l.vrf.Add(Route{p("0.0.0.0/0"), []NextHop{{Interface: tun}}}))
	must(t, l.vrf.Add(Route{p("172.16.0.0/12"), []NextHop{{Interface: l3vni, MAC: router}}}))
	must(t, l.vrf.Add(Route{p("172.16.1.0/24"), []NextHop{{Interface: l.i20, IP: at4(20, 4)}}}))
	l.knows(l.i20, 4, 0)
	send := func(dst string) (frame.Verdict, frame.Frame) {
		s := between(false, 1, 4)
		s.dst = netip.MustParseAddr(dst)
		return l.in(l.i10, s.bytes(t))
	}
	v, f := send("172.16.1.9")
	if v != frame.Reenter || f.VNI != 20 || frame.MAC(f.Bytes()) != host(4) {
		t.Errorf("%v %d", v, f.VNI)
	}
	v, f = send("172.17.1.9")
	if v != frame.Reenter || f.VNI != 50 || frame.MAC(f.Bytes()) != router || frame.MAC(f.Bytes()[6:]) != gate(50) {
		t.Errorf("%v %d", v, f.VNI)
	}
	v, f = send("8.8.8.8")
	if v != frame.Forward(frame.NewDest(6, 0)) || f.VNI != 60 || f.Kind != frame.IPv4 || f.From != 0 {
		t.Fatalf("%v %d", v, f.VNI)
	}
	want := between(false, 1, 4)
	want.dst, want.ttl, want.noEthernet = netip.MustParseAddr("8.8.8.8"), 63, true
	if !bytes.Equal(f.Bytes(), want.bytes(t)) {
		t.Errorf("% x", f.Bytes())
	}
	short := between(false, 1, 4)
	short.dst, short.payload = want.dst, 0
	v, f = l.in(l.i10, append(short.bytes(t)[:42], make([]byte, 18)...))
	short.ttl, short.noEthernet = 63, true
	if out := short.bytes(t); v != frame.Forward(frame.NewDest(6, 0)) || !bytes.Equal(f.Bytes(), out) {
		t.Errorf("padded: %v, % x, want % x", v, f.Bytes(), out)
	}
	// And back in from the TUN, and from the other router.
	back := shape{src: netip.MustParseAddr("8.8.8.8"), dst: at4(20, 4), ttl: 10, payload: 20, noEthernet: true}
	g := frame.Make(back.bytes(t))
	g.Kind, g.VNI, g.From = frame.IPv4, 60, frame.NewDest(6, 0)
	back.ttl, back.noEthernet, back.to, back.from = 9, false, host(4), gate(20)
	if v := tun.Process(&g, frame.At{}); v != frame.Reenter || g.Kind != frame.Ethernet || !bytes.Equal(g.Bytes(), back.bytes(t)) {
		t.Errorf("%v: % x", v, g.Bytes())
	}
	back.to, back.from, back.ttl = gate(50), router, 9
	if v, f := l.in(l3vni, back.bytes(t)); v != frame.Reenter || f.VNI != 20 {
		t.Errorf("%v", v)
	}
	// An L3VNI has no address: its errors come from the lowest interface that has.
	back.ttl = 1
	if v, f := l.in(l3vni, back.bytes(t)); v != frame.Reply || !bytes.Equal(f.Bytes()[26:30], at4(10, 254).AsSlice()) {
		t.Errorf("%v % x", v, f.Bytes())
	}
	// Another VRF has other routes, also for the same addresses.
	blue := l.g.VRF("blue")
	b10 := l.iface(blue, 110, false)
	s := between(false, 1, 4)
	s.to = gate(110)
	if v, _ := l.in(b10, s.bytes(t)); v != frame.Reply {
		t.Errorf("another VRF's network: %v", v)
	}
	for _, c := range []struct {
		r    Route
		want string
	}{
		{Route{p("10.8.0.0/16"), []NextHop{{Interface: b10, IP: at4(110, 1)}}}, "Interface: nil, closed or of another VRF"},
		{Route{p("10.8.0.0/16"), []NextHop{{Interface: tun}, {}}}, "Interface: nil, closed or of another VRF"},
		{Route{p("10.8.0.1/16"), nil}, "bits beyond"},
		{Route{netip.Prefix{}, nil}, "allowed are prefixes"},
		{Route{p("10.8.0.0/16"), []NextHop{{Interface: l.i10}}}, "IP: required"},
		{Route{p("10.8.0.0/16"), []NextHop{{Interface: l.i10, IP: at6(10, 1)}}}, "IP: required"},
		{Route{p("10.8.0.0/16"), []NextHop{{Interface: l3vni, IP: at4(10, 1)}}}, "has no Neighbours"},
		{Route{p("10.8.0.0/16"), []NextHop{{Interface: l3vni, MAC: frame.Broadcast}}}, "MAC"},
		{Route{p("10.0.20.0/24"), nil}, "belongs to an interface's address"},
	} {
		if err := l.vrf.Add(c.r); err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "VRF red: route "+c.r.Prefix.String()) {
			t.Errorf("%v: %v", c.r, err)
		}
	}
	if got := len(l.vrf.Routes()); got != 3 {
		t.Errorf("%d routes: %v", got, l.vrf.Routes())
	}
	if l.vrf.Delete(p("10.0.20.0/24")) || !l.vrf.Delete(p("172.16.1.0/24")) || l.vrf.Delete(p("172.16.1.0/24")) {
		t.Error("Delete")
	}
	must(t, l.vrf.Add(Route{p("172.30.0.0/16"), []NextHop{{Interface: tun}, {Interface: l3vni, MAC: router}}}))
	must(t, tun.Close())
	must(t, tun.Close())
	if v, f := send("172.30.1.1"); v != frame.Reenter || f.VNI != 50 || len(l.vrf.Routes()) != 2 {
		t.Errorf("the next hop that is left: %v, VNI %d, %v", v, f.VNI, l.vrf.Routes())
	}
	if v, _ := send("8.8.8.8"); v != frame.Reply {
		t.Errorf("through an interface that is gone: %v", v)
	}
}

// A next hop that goes moves only its own flows; all packets of a flow go one way.
func TestMultipath(t *testing.T) {
	l := newLab(t, nil)
	var hops []NextHop
	for n := range byte(4) {
		l.knows(l.i20, n+1, 0)
		hops = append(hops, NextHop{Interface: l.i20, IP: at4(20, n+1)})
	}
	p := netip.MustParsePrefix("172.16.0.0/12")
	ways := func(n int) (w []frame.MAC) {
		must(t, l.vrf.Add(Route{p, hops[:n]}))
		for k := range 2000 {
			s := between(false, 1, 4)
			s.dst, s.sport = netip.MustParseAddr("172.16.1.1"), uint16(k)
			v, f := l.in(l.i10, s.bytes(t))
			if v != frame.Reenter {
				t.Fatal(v)
			}
			w = append(w, frame.MAC(f.Bytes()))
		}
		return w
	}
	four, three := ways(4), ways(3)
	count := map[frame.MAC]int{}
	for k := range four {
		count[four[k]]++
		if four[k] != host(4) && four[k] != three[k] {
			t.Fatalf("flow %d moved from %v to %v", k, four[k], three[k])
		}
	}
	for n := range byte(4) {
		if c := count[host(n+1)]; c < 400 || c > 600 {
			t.Errorf("next hop %d has %d of 2000 flows", n+1, c)
		}
	}
	if !slices.Equal(four, ways(4)) {
		t.Error("a flow changed its way")
	}
}

// Routed packets that do not fit: senders are told, or IPv4 without DF is cut.
func TestPathMTU(t *testing.T) {
	for _, v6 := range []bool{false, true} {
		l := newLab(t, nil)
		l.knows(l.i10, 1, 0)
		l.knows(l.i20, 4, 0)
		s := between(v6, 1, 4)
		s.payload, s.ttl, s.to, s.from = 1472, 63, host(4), gate(20)
		if v6 {
			s.payload = 1452
		}
		f := frame.Make(s.bytes(t))
		f.VNI = 20
		v := l.i20.PathMTU().Process(&f, frame.At{MTU: 1464})
		if v != frame.Reenter || f.VNI != 10 {
			t.Fatalf("IPv6 %v: %v in VNI %d", v6, v, f.VNI)
		}
		b := f.Bytes()
		pk := packetOf(t, b, layers.LayerTypeEthernet)
		if frame.MAC(b) != host(1) || frame.MAC(b[6:]) != gate(10) {
			t.Errorf("% x", b[:14])
		}
		if v6 {
			c := pk.Layer(layers.LayerTypeICMPv6).(*layers.ICMPv6)
			if c.TypeCode.Type() != 2 || !bytes.Equal(c.Payload[:4], []byte{0, 0, 1450 >> 8, 1450 & 0xff}) {
				t.Errorf("%v % x", c.TypeCode, c.Payload[:4])
			}
		} else if c := pk.Layer(layers.LayerTypeICMPv4).(*layers.ICMPv4); uint16(c.TypeCode) != 3<<8|4 || c.Seq != 1450 {
			t.Errorf("%v, MTU %d", c.TypeCode, c.Seq)
		}
	}
	l := newLab(t, nil)
	for _, size := range []int{1423, 1424, 2000, 8972} {
		l.injected = nil
		s := between(false, 1, 4)
		s.df, s.payload, s.to, s.from = false, size, host(4), gate(20)
		s.options = []layers.IPv4Option{{OptionType: 0x94, OptionLength: 4, OptionData: []byte{0, 0}}}
		in := s.bytes(t)
		f := frame.Make(in)
		f.VNI = 20
		if v := l.i20.PathMTU().Process(&f, frame.At{MTU: 1464}); v != frame.Consume {
			t.Fatalf("%v", v)
		}
		var all []byte
		for k, x := range l.injected {
			b := x.f.Bytes()
			ip := packetOf(t, b, layers.LayerTypeEthernet).NetworkLayer().(*layers.IPv4)
			more := k < len(l.injected)-1
			if len(b) > 1464 || int(ip.FragOffset)*8 != len(all) || (ip.Flags&layers.IPv4MoreFragments != 0) != more || ip.Id != 7 || len(ip.Options) != 1 {
				t.Errorf("fragment %d: %d bytes, %+v", k, len(b), ip)
			}
			all = append(all, ip.Payload...)
		}
		if !bytes.Equal(all, in[14+24:]) {
			t.Errorf("%d bytes came out as %d", len(in)-38, len(all))
		}
	}
	bridged := frame.Make(between(false, 1, 4).bytes(t))
	bridged.From = frame.NewDest(1, 0)
	if v := l.i20.PathMTU().Process(&bridged, frame.At{MTU: 90}); v != frame.Continue {
		t.Errorf("bridged: %v", v)
	}
}

func TestGatewayConfig(t *testing.T) {
	for _, c := range []struct {
		cfg  GatewayConfig
		name string
	}{
		{GatewayConfig{PerSender: -1}, "PerSender"}, {GatewayConfig{Total: -1}, "Total"}, {GatewayConfig{Queued: -1}, "Queued"},
		{GatewayConfig{Fragments: -1}, "Fragments"}, {GatewayConfig{PerNeighbour: -1}, "PerNeighbour"}, {GatewayConfig{Waiting: -1}, "Waiting"},
	} {
		if _, err := NewGateway(&c.cfg); err == nil || !strings.Contains(err.Error(), "GatewayConfig."+c.name+": ") {
			t.Errorf("%+v: %v", c.cfg, err)
		}
	}
	l := newLab(t, nil)
	r := l.i10.cfg.Neighbours
	ok := InterfaceConfig{VNI: 30, MAC: gate(30), VTEPMAC: own, Addresses: []netip.Prefix{netip.MustParsePrefix("10.0.30.254/24")}, Neighbours: r, Send: l.send(30)}
	for name, edit := range map[string]func(c *InterfaceConfig){
		"VNI: 16777216":      func(c *InterfaceConfig) { c.VNI = 1 << 24 },
		"VNI: 10 has":        func(c *InterfaceConfig) { c.VNI = 10 },
		"MAC: ":              func(c *InterfaceConfig) { c.MAC = frame.MAC{} },
		"MAC: ff":            func(c *InterfaceConfig) { c.MAC = frame.Broadcast },
		"VTEPMAC: ff":        func(c *InterfaceConfig) { c.VTEPMAC = frame.Broadcast },
		"VTEPMAC: required":  func(c *InterfaceConfig) { c.Anycast, c.VTEPMAC = true, c.MAC },
		"Neighbours: ":       func(c *InterfaceConfig) { c.Neighbours = nil },
		"Send: ":             func(c *InterfaceConfig) { c.Send = nil },
		"Port: ":             func(c *InterfaceConfig) { c.Port = frame.NewDest(3, 0) },
		"Addresses[0]: 224":  func(c *InterfaceConfig) { c.Addresses = []netip.Prefix{netip.MustParsePrefix("224.0.0.1/24")} },
		"Addresses: 10.0.20": func(c *InterfaceConfig) { c.Addresses = []netip.Prefix{netip.MustParsePrefix("10.0.20.7/24")} },
	} {
		c := ok
		edit(&c)
		if _, err := l.vrf.NewInterface(&c); err == nil || !strings.Contains(err.Error(), "l3: VRF red: InterfaceConfig."+name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if l.vrf.Interface(30) != nil || l.vrf.Interface(10) != l.i10 || l.vrf.Name() != "red" || l.g.VRF("red") != l.vrf {
		t.Error("what failed has left something, or what is there is not found")
	}
}

// Routing allocates nothing.
func TestRoutedAllocations(t *testing.T) {
	for _, v6 := range []bool{false, true} {
		l := newLab(t, nil)
		l.knows(l.i20, 4, 0)
		in := between(v6, 1, 4).bytes(t)
		f := frame.Make(in)
		if n := testing.AllocsPerRun(100, func() {
			copy(f.Bytes(), in)
			f.VNI = 10
			if v := l.i10.Process(&f, frame.At{}); v != frame.Reenter {
				t.Fatal(v)
			}
		}); n != 0 {
			t.Errorf("IPv6 %v: %v allocations", v6, n)
		}
	}
}

func FuzzGateway(f *testing.F) {
	for _, v6 := range []bool{false, true} {
		for _, edit := range []func(*shape){func(*shape) {}, func(s *shape) { s.ttl = 1 }, func(s *shape) { s.dst = addrOf(v6, 20, 254) }, func(s *shape) { s.dst = addrOf(v6, 99, 9) }, func(s *shape) { s.dst = addrOf(v6, 20, 9) }} {
			s := between(v6, 1, 4)
			edit(&s)
			f.Add(s.bytes(f), uint8(0))
			f.Add(s.bytes(f)[14:], uint8(1))
			f.Add(s.bytes(f), uint8(3))
		}
	}
	f.Fuzz(func(t *testing.T, b []byte, bits uint8) {
		l := newLab(t, nil)
		l.knows(l.i20, 4, 0)
		tun, err := l.vrf.NewInterface(&InterfaceConfig{VNI: 60, Port: frame.NewDest(6, 0), Send: l.send(60)})
		must(t, err)
		g := frame.Make(b)
		if bits&2 != 0 {
			g = frame.Over(bytes.Clone(b), 0, len(b)) // no room
		}
		i := l.i10
		if bits&1 != 0 {
			i = tun
			if g.Kind = frame.IPv4; bits&4 != 0 {
				g.Kind = frame.IPv6
			}
		}
		g.VNI, g.From = i.VNI(), frame.NewDest(1, 0)
		switch v := i.Process(&g, frame.At{}); v.Action() {
		case frame.ActReenter, frame.ActReply:
			first := layers.LayerTypeEthernet
			if g.Kind == frame.IPv4 {
				first = layers.LayerTypeIPv4
			} else if g.Kind == frame.IPv6 {
				first = layers.LayerTypeIPv6
			}
			p := gopacket.NewPacket(g.Bytes(), first, gopacket.Default)
			if ip, ok := p.NetworkLayer().(*layers.IPv4); ok {
				h := ip.Contents
				if sum16(h) != 0xffff {
					t.Errorf("%v: header checksum of % x", v, h)
				}
			} else if _, ok := p.NetworkLayer().(*layers.IPv6); !ok {
				t.Errorf("%v: %v", v, p)
			}
		case frame.ActContinue, frame.ActDrop:
			if !bytes.Equal(g.Bytes(), b) {
				t.Errorf("%v, and changed", v)
			}
		case frame.ActConsume:
		default:
			t.Errorf("%v", v)
		}
		_ = fmt.Sprint(i.Stats())
	})
}
