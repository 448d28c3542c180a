package encap

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/vxswitch/vxswitch/frame"
)

func TestGoldenHeader(t *testing.T) {
	var b [8]byte
	PutVXLAN(b[:], 4100)
	if want := []byte{8, 0, 0, 0, 0, 0x10, 4, 0}; !bytes.Equal(b[:], want) {
		t.Errorf("VNI 4100 = % x, want % x", b, want)
	}
}

func TestParseVXLAN(t *testing.T) {
	for _, c := range []struct {
		name     string
		in       []byte
		vni      frame.VNI
		reserved VXLAN
		drop     frame.Reason
	}{
		{"golden", []byte{8, 0, 0, 0, 0, 0x10, 4, 0}, 4100, 0, 0},
		{"largest VNI", []byte{8, 0, 0, 0, 0xff, 0xff, 0xff, 0}, frame.MaxVNI, 0, 0},
		{"last octet is never part of the VNI", []byte{8, 0, 0, 0, 0, 0, 1, 0xff}, 1, 0xff, 0},
		{"reserved bits are reported, not refused", []byte{0xff, 1, 2, 3, 0, 0, 1, 0}, 1, 0xf7010203 << 32, 0},
		{"payload follows", []byte{8, 0, 0, 0, 0, 0, 1, 0, 9, 9}, 1, 0, 0},
		{"no I flag", []byte{0xf7, 0, 0, 0, 0, 0, 1, 0}, 1, 0xf7 << 56, frame.NoVNIFlag},
		{"seven bytes", []byte{8, 0, 0, 0, 0, 0, 1}, 0, 0, frame.Short},
		{"empty", nil, 0, 0, frame.Short},
	} {
		h, drop := ParseVXLAN(c.in)
		if drop != c.drop || h.VNI() != c.vni || h.Reserved() != c.reserved {
			t.Errorf("%s: VNI %d reserved %#x %v; want %d %#x %v", c.name, h.VNI(), h.Reserved(), drop, c.vni, c.reserved, c.drop)
		}
	}
	if n := popcount(uint64(ReservedMask)); n != 39 {
		t.Errorf("%d reserved bits, RFC 7348 has 39", n)
	}
}

func popcount(x uint64) (n int) {
	for ; x != 0; x &= x - 1 {
		n++
	}
	return n
}

func FuzzVXLAN(f *testing.F) {
	f.Add([]byte{8, 0, 0, 0, 0, 0x10, 4, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		h, drop := ParseVXLAN(b)
		if (drop == frame.Short) != (len(b) < 8) {
			t.Fatalf("%d bytes: %v", len(b), drop)
		}
		if drop != 0 {
			return
		}
		again := bytes.Repeat([]byte{0xee}, 8)
		PutVXLAN(again, h.VNI())
		g, drop := ParseVXLAN(again)
		if drop != 0 || g.VNI() != h.VNI() || g.Reserved() != 0 {
			t.Fatalf("% x: put and parsed again %#x, %v", b, g, drop)
		}
	})
}

// The MTU left for the overlay: 50 bytes less over IPv4, 70 over IPv6.
func TestOverhead(t *testing.T) {
	for _, c := range []struct{ mtu, inner4, inner6 int }{{1500, 1450, 1430}, {9000, 8950, 8930}} {
		if got := c.mtu - TypeVXLAN.Overhead(false); got != c.inner4 {
			t.Errorf("%d over IPv4: %d, want %d", c.mtu, got, c.inner4)
		}
		if got := c.mtu - TypeVXLAN.Overhead(true); got != c.inner6 {
			t.Errorf("%d over IPv6: %d, want %d", c.mtu, got, c.inner6)
		}
	}
}

func eth(tags []uint32, etherType uint16, payload []byte) []byte {
	b := []byte{2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2}
	for _, t := range tags {
		b = binary.BigEndian.AppendUint32(b, t)
	}
	return append(binary.BigEndian.AppendUint16(b, etherType), payload...)
}

func ip4(proto byte, frag uint16, sport uint16) []byte {
	p := make([]byte, 28)
	p[0], p[9] = 0x45, proto
	binary.BigEndian.PutUint16(p[6:], frag)
	copy(p[12:], []byte{10, 0, 0, 1, 10, 0, 0, 2})
	binary.BigEndian.PutUint16(p[20:], sport)
	return p
}

func ip6(next byte, sport uint16) []byte {
	p := make([]byte, 48)
	p[0], p[6], p[23], p[39] = 0x60, next, 1, 2
	binary.BigEndian.PutUint16(p[40:], sport)
	return p
}

func TestFlowHash(t *testing.T) {
	const seed = 42
	hash := func(b []byte) uint32 { return FlowHash(b, seed) }
	other := func(b []byte, at int) []byte { c := bytes.Clone(b); c[at] ^= 1; return c }
	udp := eth(nil, typeIPv4, ip4(protoUDP, 0, 1000))
	tagged := eth([]uint32{0x81000007}, typeIPv4, ip4(protoUDP, 0, 1000))
	double := eth([]uint32{0x88a80007, 0x81000008}, typeIPv6, ip6(protoTCP, 1000))
	arp := eth(nil, 0x0806, make([]byte, 28))

	for _, c := range []struct {
		name  string
		a, b  []byte
		equal bool
	}{
		{"payload does not matter", udp, other(udp, 14+26), true},
		{"TTL does not matter", udp, other(udp, 14+8), true},
		{"identification does not matter", udp, other(udp, 14+4), true},
		{"destination MAC", udp, other(udp, 5), false},
		{"source MAC", udp, other(udp, 11), false},
		{"source address", udp, other(udp, 14+15), false},
		{"destination address", udp, other(udp, 14+19), false},
		{"protocol", udp, other(udp, 14+9), false},
		{"source port", udp, other(udp, 14+21), false},
		{"destination port", udp, other(udp, 14+23), false},
		{"VLAN id", tagged, other(tagged, 15), false},
		{"ports behind a tag", tagged, other(tagged, 18+21), false},
		{"ports behind two tags", double, other(double, 22+41), false},
		{"IPv6 source", double, other(double, 22+23), false},
		{"IPv6 destination", double, other(double, 22+39), false},
		{"IPv6 hop limit does not matter", double, other(double, 22+7), true},
		{"first fragment has no ports", eth(nil, typeIPv4, ip4(protoUDP, 0x2000, 1)), eth(nil, typeIPv4, ip4(protoUDP, 0x2000, 2)), true},
		{"first and later fragment agree", eth(nil, typeIPv4, ip4(protoUDP, 0x2000, 1)), eth(nil, typeIPv4, ip4(protoUDP, 0x00b9, 2)), true},
		{"DF is no fragment", eth(nil, typeIPv4, ip4(protoUDP, 0x4000, 1)), eth(nil, typeIPv4, ip4(protoUDP, 0x4000, 2)), false},
		{"IPv6 fragment header hides the ports", eth(nil, typeIPv6, ip6(44, 1)), eth(nil, typeIPv6, ip6(44, 2)), true},
		{"ICMP has no ports", eth(nil, typeIPv4, ip4(1, 0, 1)), eth(nil, typeIPv4, ip4(1, 0, 2)), true},
		{"ARP is MACs and EtherType", arp, other(arp, 20), true},
	} {
		if got := hash(c.a) == hash(c.b); got != c.equal {
			t.Errorf("%s: equal = %v", c.name, got)
		}
	}
	if hash(udp) == FlowHash(udp, seed+1) {
		t.Error("the seed changes nothing")
	}
}

// 10,000 flows that differ in one port spread evenly over 16 source ports.
func TestFlowHashSpreads(t *testing.T) {
	var bucket [16]int
	for i := range 10_000 {
		bucket[FlowHash(eth(nil, typeIPv4, ip4(protoTCP, 0, uint16(i))), 7)>>16&15]++
	}
	for i, n := range bucket {
		if n < 500 || n > 750 {
			t.Errorf("bucket %d has %d of 10000", i, n)
		}
	}
}

func FuzzFlowHash(f *testing.F) {
	f.Add(eth(nil, typeIPv4, ip4(protoUDP, 0, 1)))
	f.Add(eth([]uint32{0x81000001, 0x81000002}, typeIPv6, ip6(protoTCP, 1)))
	f.Fuzz(func(t *testing.T, b []byte) {
		if h := FlowHash(b, 1); h != flowHash(b, 1) {
			t.Errorf("% x: the short way has another hash", b)
		} else if h == 0 {
			t.Fatal("0 means not computed")
		}
	})
}

func TestAllocations(t *testing.T) {
	b := eth(nil, typeIPv4, ip4(protoUDP, 0, 1))
	var hdr [8]byte
	if n := testing.AllocsPerRun(100, func() {
		PutVXLAN(hdr[:], 1)
		ParseVXLAN(hdr[:])
		FlowHash(b, 1)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
