package l3

import (
	"bytes"
	"fmt"
	"net/netip"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	vswitch "github.com/vxswitch/vxswitch/switch"
)

var _ vswitch.Housekeeper = (*Interface)(nil)

// A packet between two segments: MACs rewritten, TTL one less, nothing else changed.
func TestRouted(t *testing.T) {
	for _, v6 := range []bool{false, true} {
		for _, peer := range []uint16{0, 7} {
			l := newLab(t, nil)
			l.knows(l.i20, 4, peer)
			s := between(v6, 1, 4)
			in := s.bytes(t)
			v, f := l.in(l.i10, in)
			check.Need(t, v == frame.Reenter && f.VNI == 20 && f.Kind == frame.Ethernet, "%v, VNI %d", v, f.VNI)
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
	check.OK(t, l.vrf.Add(Route{Prefix: netip.MustParsePrefix("10.9.0.0/16")}))
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
	check.Equal(t, "frames injected", len(l.injected), 0)
	// Options other than source routes pass.
	in := edit(func(s *shape) {
		s.options = []layers.IPv4Option{{OptionType: 1}, {OptionType: 1}, {OptionType: 1}, {OptionType: 0}}
	})
	check.Equal(t, "options", l.verdict(l.i10, in), frame.Reenter)
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
			check.Need(t, v == frame.Reply, "IPv6 %v: %v", v6, v)
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
			check.Equal(t, fmt.Sprintf("IPv6 %v", v6), l.verdict(l.i10, bad), frame.Drop(frame.BadChecksum))
		}
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
		check.ErrorHas(t, check.Err(NewGateway(&c.cfg)), "l3: ", "GatewayConfig."+c.name+": ")
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
		check.ErrorHas(t, check.Err(l.vrf.NewInterface(&c)), "l3: VRF red: InterfaceConfig."+name)
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
		tun := check.Must(l.vrf.NewInterface(&InterfaceConfig{VNI: 60, Port: frame.NewDest(6, 0), Send: l.send(60)}))(t)
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
				check.True(t, sum16(h) == 0xffff, "%v: header checksum of % x", v, h)
			} else if _, ok := p.NetworkLayer().(*layers.IPv6); !ok {
				t.Errorf("%v: %v", v, p)
			}
		case frame.ActContinue, frame.ActDrop:
			check.True(t, bytes.Equal(g.Bytes(), b), "%v, and changed", v)
		case frame.ActConsume:
		default:
			t.Errorf("%v", v)
		}
		_ = fmt.Sprint(i.Stats())
	})
}
