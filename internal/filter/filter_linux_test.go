package filter

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/sys"
	"github.com/vxswitch/vxswitch/internal/wire"
)

// socket returns a function that sends a frame through a filter in the kernel, and reports whether it passes.
func socket(t *testing.T, prog []sys.SockFilter) func([]byte) bool {
	t.Helper()
	s, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_NONBLOCK, 0)
	check.OK(t, err)
	t.Cleanup(func() { unix.Close(s[0]); unix.Close(s[1]) })
	check.OK(t, sys.Attach(s[1], prog))
	into := make([]byte, 2000)
	return func(b []byte) bool {
		check.Must(unix.Write(s[0], b))(t)
		n, err := unix.Read(s[1], into)
		if err != nil && err != unix.EAGAIN || err == nil && !slices.Equal(into[:n], b) {
			t.Fatalf("%d bytes of %d, %v", n, len(b), err)
		}
		return err == nil
	}
}

var (
	mac   = frame.MAC{2, 0, 0, 0, 0, 1}
	other = frame.MAC{2, 0, 0, 0, 0, 2}
	ip4   = wire.Mapped([4]byte{192, 0, 2, 1})
	ip6   = [16]byte{0x20, 1, 0xd, 0xb8, 15: 1}
)

// packet returns a frame with an IP packet: with extension headers over IPv6 of 8 bytes each.
func packet(to frame.MAC, ip [16]byte, proto uint8, port uint16, extensions ...uint8) []byte {
	b := slices.Concat(to[:], other[:])
	body := append(make([]byte, 0, 40), 0xc0, 0, byte(port>>8), byte(port), 0, 20, 0, 0)
	body = append(body, make([]byte, 12)...)
	for i := len(extensions) - 1; i >= 0; i-- {
		body = slices.Concat([]byte{proto, 0, 0, 0, 0, 0, 0, 0}, body)
		proto = extensions[i]
	}
	if (&Address{IP: ip}).is4() {
		h := wire.IPv4Header{TTL: 64, Protocol: proto, TotalLen: uint16(20 + len(body)), Dst: [4]byte(ip[12:])}
		head := make([]byte, 20)
		h.Put(head)
		return slices.Concat(b, []byte{8, 0}, head, body)
	}
	h := wire.IPv6Header{NextHeader: proto, HopLimit: 64, PayloadLen: uint16(len(body)), Dst: ip}
	head := make([]byte, 40)
	h.Put(head)
	return slices.Concat(b, []byte{0x86, 0xdd}, head, body)
}

// edited returns a changed copy.
func edited(b []byte, edit func([]byte)) []byte {
	b = slices.Clone(b)
	edit(b)
	return b
}

// What is for an underlay passes its filter, and nothing else does; the port gets the rest.
func TestFor(t *testing.T) {
	const udp, tcp, icmp6, frag, opts, hop = wire.ProtoUDP, wire.ProtoTCP, wire.ProtoICMPv6, wire.ProtoFragment, wire.ProtoDstOpts, wire.ProtoHopByHop
	offset := func(b []byte) { b[frag4] = 0x20 }
	for _, ip := range [][16]byte{ip4, ip6} {
		is4 := ip == ip4
		far := ip
		far[15]++
		group := wire.Mapped([4]byte{239, 1, 1, 1})
		if !is4 {
			group = [16]byte{0xff, 5, 15: 1}
		}
		type row struct {
			name     string
			b        []byte
			udp, ips bool // for an underlay of UDP port 4789, of IP-in-IP
		}
		rows := []row{
			{"the port", packet(mac, ip, udp, 4789), true, false},
			{"another port", packet(mac, ip, udp, 4790), false, false},
			{"another MAC", packet(other, ip, udp, 4789), false, false},
			{"another address", packet(mac, far, udp, 4789), false, false},
			{"TCP", packet(mac, ip, tcp, 4789), false, false},
			{"protocol 4", packet(mac, ip, 4, 4789), false, true},
			{"protocol 41", packet(mac, ip, 41, 0), false, true},
			{"protocol 4 to another MAC", packet(other, ip, 4, 0), false, false},
			{"protocol 4 to another address", packet(mac, far, 4, 0), false, false},
			{"a group", packet(mac, group, udp, 4789), false, false},
			{"ARP", slices.Concat(mac[:], other[:], []byte{8, 6}, make([]byte, 46)), false, false},
			{"no body", slices.Concat(mac[:], other[:], []byte{8, 0}), false, false},
			{"a cut header", packet(mac, ip, udp, 4789)[:30], false, false},
		}
		if is4 {
			rows = append(rows,
				row{"a fragment", edited(packet(mac, ip, udp, 9), offset), true, false},
				row{"a fragment in IP", edited(packet(mac, ip, 41, 9), offset), false, true},
				row{"a fragment of ICMP", edited(packet(mac, ip, 1, 9), offset), false, false},
				row{"options", edited(packet(mac, ip, udp, 9), func(b []byte) { b[ipAt] = 0x46; b[ipAt+26], b[ipAt+27] = 4789>>8, 4789&0xff }), true, false},
				row{"a wrong length", edited(packet(mac, ip, udp, 9), func(b []byte) { b[ipAt] = 0x41 }), true, false})
		} else {
			for _, e := range []uint8{frag, opts, hop, wire.ProtoRouting} {
				rows = append(rows,
					row{fmt.Sprint("UDP behind ", e), packet(mac, ip, udp, 9, e), true, false},
					row{fmt.Sprint("IP behind ", e), packet(mac, ip, 4, 9, e), false, true},
					row{fmt.Sprint("ICMP behind ", e), packet(mac, ip, icmp6, 9, e), false, false})
			}
		}
		a, b := Address{MAC: mac, IP: ip, Port: 4789}, Address{MAC: mac, IP: ip, Port: 0}
		forUDP, forIP, groups := socket(t, For(a, false)), socket(t, For(b, false)), socket(t, For(a, true))
		notUDP, notIP, neither, all := socket(t, Not([]Address{a})), socket(t, Not([]Address{b})), socket(t, Not([]Address{a, b})), socket(t, Not(nil))
		for _, r := range rows {
			if forUDP(r.b) != r.udp || forIP(r.b) != r.ips || groups(r.b) != (r.udp || r.name == "a group") ||
				notUDP(r.b) == r.udp || notIP(r.b) == r.ips || neither(r.b) == (r.udp || r.ips) || !all(r.b) {
				t.Errorf("IPv4 %v, %s: UDP %v and %v, IP %v and %v, neither %v, groups %v, all %v", is4, r.name,
					forUDP(r.b), notUDP(r.b), forIP(r.b), notIP(r.b), neither(r.b), groups(r.b), all(r.b))
			}
		}
	}
}

// Of frames with bytes changed at random, each passes exactly one filter.
func TestForAndNot(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	list := []Address{{MAC: mac, IP: ip4, Port: 4789}, {MAC: mac, IP: ip6, Port: 4789}, {MAC: mac, IP: ip4, Port: 0}, {MAC: mac, IP: ip6, Port: 0}}
	var own []func([]byte) bool
	for _, a := range list {
		own = append(own, socket(t, For(a, false)))
	}
	port := socket(t, Not(list))
	values := []byte{0, 1, 4, 17, 41, 43, 44, 58, 60, 0x45, 0x46, 0x4f, 0x50, 4789 >> 8, 4789 & 0xff, 0x20, 0x40, 0xff}
	ours := 0
	for range 20_000 {
		a := list[r.IntN(len(list))]
		b := packet(mac, a.IP, values[r.IntN(len(values))], 4789, []uint8{44, 60, 0, 43}[:r.IntN(3)]...)
		b = append(b, make([]byte, 40)...) // the ports behind the longest header
		for range r.IntN(3) {
			b[r.IntN(80)] = values[r.IntN(len(values))]
		}
		n := 0
		for _, f := range own {
			if f(b) {
				n++
			}
		}
		ours += n
		if p := port(b); n > 1 || p == (n == 1) {
			t.Fatalf("%d underlays, port %v: %x", n, p, b)
		}
	}
	if ours < 1000 {
		t.Errorf("%d frames were for an underlay", ours)
	}
}

// The kernel takes the longest list, and its last address counts.
func TestNotMany(t *testing.T) {
	var list []Address
	for i := range MaxAddresses {
		a := Address{MAC: mac, IP: ip6, Port: 0}
		a.IP[14] = byte(i)
		list = append(list, a)
	}
	f := socket(t, Not(list))
	if f(packet(mac, list[MaxAddresses-1].IP, 41, 0, wire.ProtoDstOpts)) || !f(packet(mac, ip6, wire.ProtoICMPv6, 0)) {
		t.Error("the last address does not count")
	}
}

func TestControl(t *testing.T) {
	arp := func(sender, target byte) []byte {
		b := slices.Concat(mac[:], other[:], []byte{8, 6}, make([]byte, 46))
		copy(b[arpSender:], []byte{192, 0, 2, sender})
		copy(b[arpTarget:], []byte{192, 0, 2, target})
		return b
	}
	four, six := socket(t, Control(ip4, 0)), socket(t, Control(ip6, 0))
	for _, c := range []struct {
		b         []byte
		four, six bool
	}{
		{arp(9, 1), true, false}, {arp(9, 8), false, false}, {arp(9, 9), true, false},
		{packet(mac, ip4, wire.ProtoICMP, 0), true, false}, {packet(mac, ip4, wire.ProtoUDP, 0), false, false},
		{edited(packet(mac, ip4, wire.ProtoICMP, 0), func(b []byte) { b[frag4] = 0x20 }), false, false}, // the first fragment
		{edited(packet(mac, ip4, wire.ProtoICMP, 0), func(b []byte) { b[frag4+1] = 1 }), false, false},
		{packet(mac, ip6, wire.ProtoICMPv6, 0), false, false}, // type 192
		{edited(packet(mac, ip6, wire.ProtoICMPv6, 0), func(b []byte) { b[upper6] = wire.ICMPv6PacketTooBig }), false, true},
		{edited(packet(mac, ip6, wire.ProtoICMPv6, 0), func(b []byte) { b[upper6] = wire.NeighbourAdvert }), false, true},
	} {
		if four(c.b) != c.four || six(c.b) != c.six {
			t.Errorf("%x: %v, %v", c.b, four(c.b), six(c.b))
		}
	}
}
