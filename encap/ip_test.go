package encap

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/packets"
)

// packet4 and packet6 are as gopacket writes them.
func packet4(t testing.TB, ttl uint8, options, payload int) []byte {
	ip := &layers.IPv4{Version: 4, TTL: ttl, Protocol: 253, SrcIP: []byte{10, 0, 0, 1}, DstIP: []byte{10, 0, 0, 2}}
	for range options {
		ip.Options = append(ip.Options, layers.IPv4Option{OptionType: 1}, layers.IPv4Option{OptionType: 1}, layers.IPv4Option{OptionType: 1}, layers.IPv4Option{OptionType: 1})
	}
	return packets.Of(ip, gopacket.Payload(make([]byte, payload)))
}

func packet6(t testing.TB, limit uint8, payload int) []byte {
	return packets.Of(&layers.IPv6{Version: 6, HopLimit: limit, NextHeader: 59, SrcIP: make([]byte, 16), DstIP: make([]byte, 16)}, gopacket.Payload(make([]byte, payload)))
}

func TestParseIP(t *testing.T) {
	four := func(edit func(b []byte)) []byte { b := packet4(t, 64, 0, 12); edit(b); return b }
	six := func(edit func(b []byte)) []byte { b := packet6(t, 64, 12); edit(b); return b }
	length := func(at int, n uint16) func([]byte) {
		return func(b []byte) { binary.BigEndian.PutUint16(b[at:], n) }
	}
	first := func(x byte) func([]byte) { return func(b []byte) { b[0] = x } }
	for _, c := range []struct {
		name string
		in   []byte
		kind frame.Kind
		n    int
		drop frame.Reason
	}{
		{"IPv4", packet4(t, 64, 0, 12), frame.IPv4, 32, 0},
		{"IPv4 without payload", packet4(t, 1, 0, 0), frame.IPv4, 20, 0},
		{"IPv4 with options", packet4(t, 255, 10, 5), frame.IPv4, 65, 0},
		{"IPv4, padded", append(packet4(t, 64, 0, 12), make([]byte, 9)...), frame.IPv4, 32, 0},
		{"IPv6", packet6(t, 64, 12), frame.IPv6, 52, 0},
		{"IPv6 without payload", packet6(t, 1, 0), frame.IPv6, 40, 0},
		{"IPv6, padded", append(packet6(t, 64, 12), 1), frame.IPv6, 52, 0},

		{"nothing", nil, frame.IPv4, 0, frame.Short},
		{"nothing of IPv6", nil, frame.IPv6, 0, frame.Short},
		{"one byte", []byte{0x45}, frame.IPv4, 0, frame.Short},
		{"19 bytes", packet4(t, 64, 0, 0)[:19], frame.IPv4, 0, frame.Short},
		{"39 bytes", packet6(t, 64, 0)[:39], frame.IPv6, 0, frame.Short},
		{"IPv4 cut short", packet4(t, 64, 0, 12)[:31], frame.IPv4, 0, frame.Short},
		{"IPv4 cut in its options", packet4(t, 64, 2, 0)[:27], frame.IPv4, 0, frame.Short},
		{"IPv6 cut short", packet6(t, 64, 12)[:51], frame.IPv6, 0, frame.Short},

		{"IPv6 as IPv4", packet6(t, 64, 12), frame.IPv4, 0, frame.BadHeader},
		{"IPv4 as IPv6", packet4(t, 64, 0, 40), frame.IPv6, 0, frame.BadHeader},
		{"IPv4 as Ethernet", packet4(t, 64, 0, 40), frame.Ethernet, 0, frame.BadHeader},
		{"version 5", four(first(0x55)), frame.IPv4, 0, frame.BadHeader},
		{"version 0", four(first(0x05)), frame.IPv4, 0, frame.BadHeader},
		{"one byte of another version", []byte{0x60}, frame.IPv4, 0, frame.BadHeader},
		{"header of 16 bytes", four(first(0x44)), frame.IPv4, 0, frame.BadHeader},
		{"header of 0 bytes", four(first(0x40)), frame.IPv4, 0, frame.BadHeader},
		{"header longer than the packet", four(first(0x4f)), frame.IPv4, 0, frame.BadHeader},
		{"length of less than the header", four(length(2, 19)), frame.IPv4, 0, frame.BadHeader},
		{"length 0, as TSO of Linux has it", four(length(2, 0)), frame.IPv4, 0, frame.BadHeader},
		{"IPv6 jumbogram or none: payload of 0", six(length(4, 0)), frame.IPv6, 40, 0},

		{"TTL 0", packet4(t, 0, 0, 12), frame.IPv4, 0, frame.TTL},
		{"hop limit 0", packet6(t, 0, 12), frame.IPv6, 0, frame.TTL},
		{"short before TTL", packet4(t, 0, 0, 12)[:31], frame.IPv4, 0, frame.Short},
		{"version before TTL", packet4(t, 0, 0, 40), frame.IPv6, 0, frame.BadHeader},
	} {
		was := bytes.Clone(c.in)
		n, drop := ParseIP(c.in, c.kind)
		if n != c.n || drop != c.drop {
			t.Errorf("%s: %d, %v, want %d, %v", c.name, n, drop, c.n, c.drop)
		}
		if !bytes.Equal(was, c.in) {
			t.Errorf("%s: written to", c.name)
		}
	}
}

// Whatever comes, n is the length of a packet that gopacket reads too, and lies in b.
func FuzzParseIP(f *testing.F) {
	f.Add(packet4(f, 64, 1, 12), uint8(frame.IPv4))
	f.Add(packet6(f, 64, 12), uint8(frame.IPv6))
	f.Add(packet4(f, 0, 0, 0), uint8(frame.IPv4))
	f.Add([]byte{0x4f, 0, 0, 60}, uint8(frame.IPv4))
	f.Fuzz(func(t *testing.T, b []byte, k uint8) {
		kind := frame.Kind(k)
		n, drop := ParseIP(b, kind)
		switch drop {
		case frame.NotDropped:
		case frame.Short, frame.BadHeader, frame.TTL:
			if n != 0 {
				t.Fatalf("%v, and %d bytes", drop, n)
			}
			return
		default:
			t.Fatalf("reason %v", drop)
		}
		if n > len(b) || kind == frame.IPv4 && n < 20 || kind == frame.IPv6 && n < 40 || kind != frame.IPv4 && kind != frame.IPv6 {
			t.Fatalf("kind %d: %d of %d bytes", kind, n, len(b))
		}
		if again, drop := ParseIP(b[:n], kind); again != n || drop != 0 {
			t.Fatalf("without what follows: %d, %v", again, drop)
		}
		if n > ipv4Len {
			if _, drop := ParseIP(b[:n-1], kind); drop != frame.Short {
				t.Fatalf("a byte less: %v", drop)
			}
		}
		if kind == frame.IPv4 {
			var ip layers.IPv4
			if b[0]&0xf == 5 { // it is strict about options
				if err := ip.DecodeFromBytes(b[:n], gopacket.NilDecodeFeedback); err != nil || int(ip.Length) != n {
					t.Fatalf("gopacket: %v, length %d, not %d", err, ip.Length, n)
				}
			}
		}
	})
}

// FlowHashIP looks at what FlowHash does of the packet in a frame.
func TestFlowHashIP(t *testing.T) {
	const seed = 42
	other := func(b []byte, at int) []byte { c := bytes.Clone(b); c[at] ^= 1; return c }
	for _, c := range []struct {
		name  string
		a, b  []byte
		equal bool
	}{
		{"payload", ip4(protoUDP, 0, 1), other(ip4(protoUDP, 0, 1), 26), true},
		{"TTL", ip4(protoUDP, 0, 1), other(ip4(protoUDP, 0, 1), 8), true},
		{"identification", ip4(protoUDP, 0, 1), other(ip4(protoUDP, 0, 1), 4), true},
		{"checksum", ip4(protoUDP, 0, 1), other(ip4(protoUDP, 0, 1), 10), true},
		{"source", ip4(protoUDP, 0, 1), other(ip4(protoUDP, 0, 1), 15), false},
		{"destination", ip4(protoUDP, 0, 1), other(ip4(protoUDP, 0, 1), 19), false},
		{"protocol", ip4(protoUDP, 0, 1), other(ip4(protoUDP, 0, 1), 9), false},
		{"source port", ip4(protoUDP, 0, 1), ip4(protoUDP, 0, 2), false},
		{"destination port", ip4(protoTCP, 0, 1), other(ip4(protoTCP, 0, 1), 23), false},
		{"port of a first fragment", ip4(protoUDP, 0x2000, 1), ip4(protoUDP, 0x2000, 2), true},
		{"first and later fragment", ip4(protoUDP, 0x2000, 1), ip4(protoUDP, 0x00b9, 2), true},
		{"port with DF", ip4(protoUDP, 0x4000, 1), ip4(protoUDP, 0x4000, 2), false},
		{"ICMP", ip4(1, 0, 1), ip4(1, 0, 2), true},
		{"IPv6 source", ip6(protoTCP, 1), other(ip6(protoTCP, 1), 23), false},
		{"IPv6 destination", ip6(protoTCP, 1), other(ip6(protoTCP, 1), 39), false},
		{"IPv6 port", ip6(protoTCP, 1), ip6(protoTCP, 2), false},
		{"IPv6 fragment header", ip6(44, 1), ip6(44, 2), true},
		{"IPv6 hop limit", ip6(protoTCP, 1), other(ip6(protoTCP, 1), 7), true},
		{"IPv4 cut short", ip4(protoUDP, 0, 1)[:19], other(ip4(protoUDP, 0, 1), 15)[:19], true},
		{"IPv6 cut short", ip6(protoUDP, 1)[:39], other(ip6(protoUDP, 1), 23)[:39], true},
		{"no IP", make([]byte, 40), other(make([]byte, 40), 15), true},
	} {
		if got := FlowHashIP(c.a, seed) == FlowHashIP(c.b, seed); got != c.equal {
			t.Errorf("%s: equal = %v", c.name, got)
		}
		// Two packets that differ to one differ to the other, where it is a packet of the type.
		typ := uint16(typeIPv4)
		if c.a[0]>>4 == 6 {
			typ = typeIPv6
		}
		if got := FlowHash(eth(nil, typ, c.a), seed) == FlowHash(eth(nil, typ, c.b), seed); got != c.equal {
			t.Errorf("%s: in a frame, equal = %v", c.name, got)
		}
	}
	if b := ip4(protoUDP, 0, 1); FlowHashIP(b, seed) == FlowHashIP(b, seed+1) {
		t.Error("the seed changes nothing")
	}
}

func FuzzFlowHashIP(f *testing.F) {
	f.Add(ip4(protoUDP, 0, 1))
	f.Add(ip6(protoTCP, 1))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		if FlowHashIP(b, 1) == 0 {
			t.Fatal("0 means not computed")
		}
	})
}

// IP flows spread over 16 source ports for every seed, as those of frames do.
func TestFlowHashIPSpreads(t *testing.T) {
	for name, flow := range map[string]func(i uint16) []byte{
		"IPv4": func(i uint16) []byte { return ip4(protoUDP, 0, i) },
		"IPv6": func(i uint16) []byte { return ip6(protoTCP, i) },
	} {
		bad := 0
		for seed := range uint64(500) {
			var bucket [16]int
			for i := range uint16(512) {
				bucket[uint16(FlowHashIP(flow(i), seed*0x9e3779b97f4a7c15))>>12]++
			}
			chi := 0.0
			for _, n := range bucket {
				d := float64(n - 32)
				chi += d * d / 32
			}
			if chi > 50 { // 15 degrees of freedom: one in 80,000
				bad++
			}
		}
		if bad > 1 {
			t.Errorf("%s: uneven for %d of 500 seeds", name, bad)
		}
	}
}

// What is left for the inner IP packet, by encapsulation and family of the underlay.
func TestOuterTable(t *testing.T) {
	for _, c := range []struct {
		typ          Type
		ethernet     bool
		over4, over6 [2]int // of 1500 and 9000
	}{
		{TypeVXLAN, true, [2]int{1450, 8950}, [2]int{1430, 8930}},
		{TypeGPE, true, [2]int{1450, 8950}, [2]int{1430, 8930}},
		{TypeGPE, false, [2]int{1464, 8964}, [2]int{1444, 8944}},
		{TypeIPIP, false, [2]int{1480, 8980}, [2]int{1460, 8960}},
		{TypeFOU, false, [2]int{1472, 8972}, [2]int{1452, 8952}},
		{TypeIPIP, true, [2]int{1480, 8980}, [2]int{1460, 8960}}, // there is no Ethernet in it
	} {
		cost := c.typ.Outer
		if c.ethernet {
			cost = c.typ.Overhead
		}
		for k, mtu := range []int{1500, 9000} {
			if a, b := mtu-cost(false), mtu-cost(true); a != c.over4[k] || b != c.over6[k] {
				t.Errorf("%v, Ethernet %v, %d: %d and %d, want %d and %d", c.typ, c.ethernet, mtu, a, b, c.over4[k], c.over6[k])
			}
		}
	}
	for typ, n := range map[Type]int{TypeVXLAN: 8, TypeGPE: 8, TypeIPIP: 0, TypeFOU: 0} {
		if typ.Header() != n {
			t.Errorf("%v: a header of %d bytes", typ, typ.Header())
		}
	}
}

func TestTypeNames(t *testing.T) {
	for typ, name := range map[Type]string{TypeVXLAN: "vxlan", TypeGPE: "gpe", TypeIPIP: "ipip", TypeFOU: "fou", 4: "invalid", 254: "invalid"} {
		if typ.String() != name || typ.Valid() != (name != "invalid") {
			t.Errorf("%d: %q, valid %v", typ, typ, typ.Valid())
		}
	}
}

func TestIPAllocations(t *testing.T) {
	var hdr [8]byte
	four, six := packet4(t, 64, 0, 40), packet6(t, 64, 40)
	if n := testing.AllocsPerRun(100, func() {
		PutGPE(hdr[:], 77, frame.IPv4, true)
		if h, drop := ParseGPE(hdr[:]); drop != 0 || h.VNI() != 77 {
			t.Fatal(drop)
		}
		ParseIP(four, frame.IPv4)
		ParseIP(six, frame.IPv6)
		ParseIP(six, frame.IPv4)
		FlowHashIP(four, 1)
		FlowHashIP(six, 1)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
