package l3

import (
	"bytes"
	"fmt"
	"net/netip"
	"testing"

	"github.com/google/gopacket/layers"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/vtep"
)

var _ Tunnel = (*vtep.VTEP)(nil)

// tunnel adds an interface on port 6, a tunnel for IP, with addresses of its own.
func (l *lab) tunnel(addrs ...string) (*Interface, *stubTunnel) {
	l.t.Helper()
	t := newStubTunnel()
	c := InterfaceConfig{VNI: 60, Port: frame.NewDest(6, 0), Tunnel: t, Send: l.send(60)}
	for _, a := range addrs {
		c.Addresses = append(c.Addresses, netip.MustParsePrefix(a))
	}
	i := check.Must(l.vrf.NewInterface(&c))(l.t)
	return i, t
}

// blockOf is a prefix beyond a tunnel, and inBlock a packet to its host n.
func blockOf(v6 bool) netip.Prefix {
	if v6 {
		return netip.MustParsePrefix("fd99::/64")
	}
	return netip.MustParsePrefix("10.244.2.0/24")
}

func inBlock(v6 bool, n byte) shape {
	s := between(v6, 1, 4)
	if s.dst = netip.AddrFrom4([4]byte{10, 244, 2, n}); v6 {
		s.dst = netip.AddrFrom16([16]byte{0xfd, 0x99, 15: n})
	}
	return s
}

// A next hop that is a peer: the packet goes there without its Ethernet header, its TTL one
// less, and comes in from there like any other.
func TestNextHopPeer(t *testing.T) {
	for _, v6 := range []bool{false, true} {
		l := newLab(t, nil)
		tun, _ := l.tunnel()
		check.OK(t, l.vrf.Add(Route{blockOf(v6), []NextHop{{Interface: tun, Peer: 2}}}))
		s := inBlock(v6, 4)
		v, f := l.in(l.i10, s.bytes(t))
		s.ttl, s.noEthernet = 63, true
		kind := frame.IPv4
		if v6 {
			kind = frame.IPv6
		}
		if v != frame.Forward(frame.NewDest(6, 2)) || f.VNI != 60 || f.Kind != kind || f.From != 0 || !bytes.Equal(f.Bytes(), s.bytes(t)) {
			t.Errorf("IPv6 %v: %v, %+v", v6, v, f)
		}
		check.Equal(t, "String", l.vrf.Routes()[0].Via[0].String(), "vni 60 peer 198.51.100.2")
		// From one peer to another, as a node that is on the way does.
		g := bare(t, v6, frame.NewDest(6, 3), func(x *shape) { x.dst = s.dst })
		g.Tunnel = true
		if v := tun.Process(&g, frame.At{}); v != frame.Forward(frame.NewDest(6, 2)) || g.Tunnel {
			t.Errorf("IPv6 %v: %v", v6, v)
		}
	}
	// Flows share the peers, and each keeps to one.
	l := newLab(t, nil)
	tun, _ := l.tunnel()
	check.OK(t, l.vrf.Add(Route{blockOf(false), []NextHop{{Interface: tun, Peer: 1}, {Interface: tun, Peer: 2}, {Interface: tun, Peer: 3}}}))
	count := map[frame.Dest]int{}
	for k := range uint16(900) {
		s := inBlock(false, 4)
		s.sport = k
		v, _ := l.in(l.i10, s.bytes(t))
		again, _ := l.in(l.i10, s.bytes(t))
		check.Need(t, v == again && v.Action() == frame.ActForward, "%v, then %v", v, again)
		count[v.Dest()]++
	}
	for _, peer := range []uint16{1, 2, 3} {
		if n := count[frame.NewDest(6, peer)]; n < 200 || n > 400 {
			t.Errorf("peer %d has %d of 900 flows", peer, n)
		}
	}
}

func TestNextHopPeerErrors(t *testing.T) {
	l := newLab(t, nil)
	tun, stub := l.tunnel()
	bareTUN, err := l.vrf.NewInterface(&InterfaceConfig{VNI: 61, Port: frame.NewDest(7, 0), Send: l.send(61)})
	check.OK(t, err)
	for _, c := range []struct {
		hop  NextHop
		want string
	}{
		{NextHop{Interface: tun, Peer: 9}, "next hop vni 60: Peer: the tunnel has no peer 9"},
		{NextHop{Interface: tun}, "next hop vni 60: Peer: the tunnel has no peer 0"},
		{NextHop{Interface: bareTUN, Peer: 1}, "next hop vni 61: Peer: 1: must be 0, because the interface is not a tunnel"},
		{NextHop{Interface: l.i20, IP: at4(20, 4), Peer: 1}, "next hop vni 20 via 10.0.20.4: Peer: 1: must be 0, because the interface is not a tunnel"},
		{NextHop{Interface: l.i20, MAC: host(4), Peer: 1}, "next hop vni 20 mac 02:00:00:00:01:04: Peer: 1: must be 0, because the interface is not a tunnel"},
	} {
		err := l.vrf.Add(Route{blockOf(false), []NextHop{{Interface: tun, Peer: 1}, c.hop}})
		if err == nil || err.Error() != "l3: VRF red: route 10.244.2.0/24: "+c.want {
			t.Errorf("%+v: %v, want %s", c.hop.Peer, err, c.want)
		}
	}
	if len(l.vrf.Routes()) != 0 {
		t.Errorf("errors have left %v", l.vrf.Routes())
	}
	// A number that has become one is taken, and the name is what it is called now.
	stub.names[9] = "198.51.100.9"
	check.OK(t, l.vrf.Add(Route{blockOf(false), []NextHop{{Interface: tun, Peer: 9}}}))
	if got := fmt.Sprint(l.vrf.Routes()[0].Via); got != "[vni 60 peer 198.51.100.9]" {
		t.Error(got)
	}
}

// A report that the peer was not reached is told to the next sender, who is quoted the
// packet as it was sent; the packet goes on.
func TestNextHopFailed(t *testing.T) {
	for _, v6 := range []bool{false, true} {
		l := newLab(t, nil)
		tun, stub := l.tunnel()
		check.OK(t, l.vrf.Add(Route{blockOf(v6), []NextHop{{Interface: tun, Peer: 2}}}))
		stub.failed[2], stub.failed[3] = 2, 7
		in := inBlock(v6, 4).bytes(t)
		for k := range 3 {
			v, f := l.in(l.i10, in)
			ttl := f.Bytes()[8]
			if v6 {
				ttl = f.Bytes()[7]
			}
			if v != frame.Forward(frame.NewDest(6, 2)) || ttl != 63 {
				t.Fatalf("packet %d: %v, TTL %d", k, v, ttl)
			}
			check.Need(t, len(l.injected) == min(k+1, 2), "packet %d: told %d times", k, len(l.injected))
		}
		for _, x := range l.injected {
			check.True(t, x.vni == 10 && x.to == 0, "told in VNI %d, to %v", x.vni, x.to)
			checkError(t, x.f.Bytes(), in, v6, 3<<8|1, 1<<8|3, at4(10, 254), at6(10, 254))
		}
		// A sender on an IP port is told there.
		l.injected = nil
		stub.failed[2] = 1
		g := bare(t, v6, frame.NewDest(6, 3), func(s *shape) { s.dst = inBlock(v6, 4).dst })
		was := bytes.Clone(g.Bytes())
		if v := tun.Process(&g, frame.At{}); v != frame.Forward(frame.NewDest(6, 2)) || len(l.injected) != 1 {
			t.Fatalf("%v, told %d times", v, len(l.injected))
		}
		if x := l.injected[0]; x.to != frame.NewDest(6, 3) || x.vni != 60 || x.f.Kind == frame.Ethernet {
			t.Errorf("told %v", x.to)
		}
		checkBareError(t, l.injected[0].f.Bytes(), was, v6, 3<<8|1, 1<<8|3, 0, addrOf(v6, 10, 254), addrOf(v6, 10, 1))
		check.True(t, stub.failed[3] == 7, "of another peer")
		// Nobody is told of an error.
		l.injected = nil
		stub.failed[2] = 1
		s := inBlock(v6, 4)
		if s.proto, s.icmp = layers.IPProtocolICMPv4, 3; v6 {
			s.proto, s.icmp = layers.IPProtocolICMPv6, 1
		}
		if v, _ := l.in(l.i10, s.bytes(t)); v != frame.Forward(frame.NewDest(6, 2)) || len(l.injected) != 0 || stub.failed[2] != 1 {
			t.Errorf("%v, told %d times, %d to tell", v, len(l.injected), stub.failed[2])
		}
		// Nor of a later fragment: the report is kept for one who can be told.
		if !v6 {
			later := bytes.Clone(in)
			later[14+7] = 9
			fixSum(later[14:])
			if v, _ := l.in(l.i10, later); v != frame.Forward(frame.NewDest(6, 2)) || len(l.injected) != 0 || stub.failed[2] != 1 {
				t.Errorf("%v, told %d times, %d to tell", v, len(l.injected), stub.failed[2])
			}
		}
		if v, _ := l.in(l.i10, in); v != frame.Forward(frame.NewDest(6, 2)) || len(l.injected) != 1 || stub.failed[2] != 0 {
			t.Errorf("%v, told %d times, %d to tell", v, len(l.injected), stub.failed[2])
		}
	}
}

// An IP port with addresses of the gateway's own: it is asked there, speaks from there, and
// nobody else lives there.
func TestAddressesOfAnIPPort(t *testing.T) {
	own4, own6 := netip.MustParseAddr("10.244.1.1"), netip.MustParseAddr("fd98::1")
	for _, v6 := range []bool{false, true} {
		l := newLab(t, nil)
		tun, _ := l.tunnel("10.244.1.1/32", "fd98::1/128")
		own, proto, ask, reply := own4, layers.IPProtocolICMPv4, uint8(8), uint8(0)
		if v6 {
			own, proto, ask, reply = own6, layers.IPProtocolICMPv6, 128, 129
		}
		from := frame.NewDest(6, 3)
		echo := func(s *shape) { s.dst, s.ttl, s.proto, s.icmp = own, 1, proto, ask }
		f := bare(t, v6, from, echo)
		answer := bare(t, v6, from, func(s *shape) { s.src, s.dst, s.proto, s.icmp = own, s.src, proto, reply })
		if v := tun.Process(&f, frame.At{}); v != frame.Reply || f.Kind == frame.Ethernet || !bytes.Equal(f.Bytes(), answer.Bytes()) {
			t.Errorf("IPv6 %v: %v\n% x, want\n% x", v6, v, f.Bytes(), answer.Bytes())
		}
		// From a segment too.
		s := between(v6, 1, 4)
		echo(&s)
		check.Equal(t, fmt.Sprintf("IPv6 %v", v6), l.verdict(l.i10, s.bytes(t)), frame.Reply)
		for _, c := range []struct {
			name       string
			edit       func(s *shape)
			typ4, typ6 uint16
		}{
			{"TTL", func(s *shape) { s.ttl = 1 }, 11 << 8, 3 << 8},
			{"no route", func(s *shape) { s.dst = addrOf(v6, 99, 1) }, 3 << 8, 1 << 8},
			{"a service", func(s *shape) { s.dst = own }, 3<<8 | 3, 1<<8 | 4},
		} {
			f := bare(t, v6, from, c.edit)
			was := bytes.Clone(f.Bytes())
			if v := tun.Process(&f, frame.At{}); v != frame.Reply {
				t.Fatalf("%s, IPv6 %v: %v", c.name, v6, v)
			}
			checkBareError(t, f.Bytes(), was, v6, c.typ4, c.typ6, 0, own, addrOf(v6, 10, 1))
		}
		// Whoever claims to be us is not believed; neighbours of the address are not there.
		f = bare(t, v6, from, func(s *shape) { s.src = own })
		if v := tun.Process(&f, frame.At{}); v != frame.Drop(frame.Martian) {
			t.Errorf("IPv6 %v: from ourselves: %v", v6, v)
		}
		f = bare(t, v6, from, func(s *shape) { s.dst = own.Next() })
		if v := tun.Process(&f, frame.At{}); v != frame.Reply {
			t.Errorf("IPv6 %v: the address beside ours: %v", v6, v)
		}
		if len(l.injected) != 0 || len(l.vrf.Routes()) != 0 {
			t.Errorf("%d sent, routes %v", len(l.injected), l.vrf.Routes())
		}
		check.OK(t, tun.Close())
		s.ttl = 9 // closed: no longer an address of ours
		_, g := l.in(l.i10, s.bytes(t))
		checkError(t, g.Bytes(), s.bytes(t), v6, 3<<8, 1<<8, at4(10, 254), at6(10, 254))
	}
}

// Packets from an IP port that has no address are told of by the interface with the lowest
// VNI that has one.
func TestIPPortWithoutAddress(t *testing.T) {
	for _, v6 := range []bool{false, true} {
		l := newLab(t, nil)
		tun, _ := l.tunnel()
		f := bare(t, v6, frame.NewDest(6, 3), func(s *shape) { s.ttl = 1 })
		was := bytes.Clone(f.Bytes())
		if v := tun.Process(&f, frame.At{}); v != frame.Reply {
			t.Fatal(v)
		}
		checkBareError(t, f.Bytes(), was, v6, 11<<8, 3<<8, 0, addrOf(v6, 10, 254), addrOf(v6, 10, 1))
	}
}

func TestIPPortConfig(t *testing.T) {
	l := newLab(t, nil)
	l.tunnel("10.244.1.1/32")
	send := l.send(61)
	p := func(s string) []netip.Prefix { return []netip.Prefix{netip.MustParsePrefix(s)} }
	for _, c := range []struct {
		want string
		cfg  InterfaceConfig
	}{
		{"Addresses[0]: 10.244.1.9/24: must be a /32", InterfaceConfig{VNI: 61, Port: frame.NewDest(7, 0), Send: send, Addresses: p("10.244.1.9/24")}},
		{"Addresses[0]: fd98::9/64: must be a /32", InterfaceConfig{VNI: 61, Port: frame.NewDest(7, 0), Send: send, Addresses: p("fd98::9/64")}},
		{"Addresses[0]: 224.0.0.1/32: is a multicast group; must be the address of one host", InterfaceConfig{VNI: 61, Port: frame.NewDest(7, 0), Send: send, Addresses: p("224.0.0.1/32")}},
		{"Addresses: 10.244.1.1/32 is on VNI 60", InterfaceConfig{VNI: 61, Port: frame.NewDest(7, 0), Send: send, Addresses: p("10.244.1.1/32")}},
		{"Port: an IP port has neither neighbours nor", InterfaceConfig{VNI: 61, Port: frame.NewDest(7, 0), Send: send, MAC: gate(61)}},
		{"Port: an IP port has neither neighbours nor", InterfaceConfig{VNI: 61, Port: frame.NewDest(7, 0), Send: send, Neighbours: l.i10.cfg.Neighbours}},
		{"Tunnel: requires Port", InterfaceConfig{VNI: 61, MAC: gate(61), Send: send, Tunnel: newStubTunnel()}},
		{"Send: required", InterfaceConfig{VNI: 61, Port: frame.NewDest(7, 0)}},
		{"VNI: 60 has an interface", InterfaceConfig{VNI: 60, Port: frame.NewDest(7, 0), Send: send}},
		{"VNI: 16777216: must be 0 to 16777215", InterfaceConfig{VNI: 1 << 24, Port: frame.NewDest(7, 0), Send: send}},
	} {
		check.ErrorHas(t, check.Err(l.vrf.NewInterface(&c.cfg)), "l3: VRF red: InterfaceConfig."+c.want)
	}
	check.True(t, l.vrf.Interface(61) == nil, "what failed has left an interface")
}

// Routing into a tunnel, out of it and through allocates nothing.
func TestTunnelAllocations(t *testing.T) {
	for _, v6 := range []bool{false, true} {
		l := newLab(t, nil)
		tun, _ := l.tunnel()
		l.knows(l.i20, 4, 0)
		check.OK(t, l.vrf.Add(Route{blockOf(v6), []NextHop{{Interface: tun, Peer: 1}, {Interface: tun, Peer: 2}}}))
		in := inBlock(v6, 4).bytes(t)
		f := frame.Make(in)
		g := bare(t, v6, frame.NewDest(6, 1), nil)
		through := bare(t, v6, frame.NewDest(6, 1), func(s *shape) { s.dst = inBlock(v6, 4).dst })
		kind, out, way := g.Kind, bytes.Clone(g.Bytes()), bytes.Clone(through.Bytes())
		if n := testing.AllocsPerRun(100, func() {
			copy(f.Bytes(), in)
			f.Kind, f.VNI, f.From = frame.Ethernet, 10, frame.NewDest(1, 0)
			if v := l.i10.Process(&f, frame.At{}); v.Action() != frame.ActForward {
				t.Fatal(v)
			}
			f.Push(14)
			copy(g.Bytes(), out)
			g.Kind, g.VNI, g.From = kind, 60, frame.NewDest(6, 1)
			if v := tun.Process(&g, frame.At{}); v != frame.Reenter {
				t.Fatal(v)
			}
			g.Pull(14)
			copy(through.Bytes(), way)
			through.From = frame.NewDest(6, 1)
			if v := tun.Process(&through, frame.At{}); v.Action() != frame.ActForward {
				t.Fatal(v)
			}
		}); n != 0 {
			t.Errorf("IPv6 %v: %v allocations", v6, n)
		}
	}
}
