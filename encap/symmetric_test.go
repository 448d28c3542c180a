package encap

import (
	"bytes"
	"testing"
)

// back returns the frame of the other direction: MACs, addresses and ports exchanged. n is the length of the tags.
func back(b []byte, n int) []byte {
	c := bytes.Clone(b)
	copy(c, b[6:12])
	copy(c[6:], b[:6])
	at, size, ports := EthernetLen+n+12, 4, EthernetLen+n+20
	if b[EthernetLen+n]>>4 == 6 {
		at, size, ports = EthernetLen+n+8, 16, EthernetLen+n+40
	}
	copy(c[at:], b[at+size:at+2*size])
	copy(c[at+size:], b[at:at+size])
	copy(c[ports:], b[ports+2:ports+4])
	copy(c[ports+2:], b[ports:ports+2])
	return c
}

func TestSymmetricHash(t *testing.T) {
	const seed = 42
	hash := func(b []byte) uint32 { return SymmetricHash(b, seed) }
	other := func(b []byte, at int) []byte { c := bytes.Clone(b); c[at] ^= 1; return c }
	swapped := func(b []byte, at, size int) []byte {
		c := bytes.Clone(b)
		copy(c[at:], b[at+size:at+2*size])
		copy(c[at+size:], b[at:at+size])
		return c
	}
	four := eth(nil, typeIPv4, ip4(protoTCP, 0, 1000))
	six := eth(nil, typeIPv6, ip6(protoUDP, 1000))
	tagged := eth([]uint32{0x81000007}, typeIPv4, ip4(protoUDP, 0, 1000))
	double := eth([]uint32{0x88a80007, 0x81000008}, typeIPv6, ip6(protoTCP, 1000))
	icmp := eth(nil, typeIPv4, ip4(1, 0, 1))
	fragment := eth(nil, typeIPv4, ip4(protoUDP, 0x2000, 1))
	raw := eth(nil, 0x88b5, make([]byte, 46))
	self := bytes.Clone(four) // one address on both ends
	copy(self[14+16:], self[14+12:14+16])
	lite := bytes.Clone(tagged) // with the ports of another protocol
	lite[18+9] = protoUDPLite
	low := bytes.Clone(six) // an address whose high half is 0
	clear(low[14+8 : 14+16])

	for _, c := range []struct {
		name  string
		a, b  []byte
		equal bool
	}{
		{"IPv4 there and back", four, back(four, 0), true},
		{"IPv6 there and back", six, back(six, 0), true},
		{"one address, there and back", self, back(self, 0), true},
		{"there and back behind a tag", tagged, back(tagged, 4), true},
		{"there and back behind two tags", double, back(double, 8), true},
		{"other frames there and back", raw, swapped(raw, 0, 6), true},
		{"a router changes the source MAC", four, other(four, 11), true},
		{"a router changes the destination MAC", four, other(four, 5), true},
		{"VLAN id", tagged, other(tagged, 15), true},
		{"ports alone exchanged", four, swapped(four, 14+20, 2), false},
		{"addresses alone exchanged", four, swapped(four, 14+12, 4), false},
		{"source address", four, other(four, 14+15), false},
		{"destination address", four, other(four, 14+19), false},
		{"protocol", four, other(four, 14+9), false},
		{"protocol, same ports", tagged, lite, false},
		{"port behind two tags", double, other(double, 22+41), false},
		{"high half of an IPv6 address, the other's is 0", low, other(low, 14+24), false},
		{"source port", four, other(four, 14+21), false},
		{"destination port", four, other(four, 14+23), false},
		{"high half of an IPv6 address", six, other(six, 14+8), false},
		{"low half of an IPv6 address", six, other(six, 14+39), false},
		{"first fragment has no ports", fragment, other(fragment, 14+21), true},
		{"ICMP has no ports", icmp, other(icmp, 14+21), true},
		{"MAC of other frames", raw, other(raw, 5), false},
		{"EtherType of other frames", raw, other(raw, 13), false},
	} {
		if got := hash(c.a) == hash(c.b); got != c.equal {
			t.Errorf("%s: equal = %v", c.name, got)
		}
	}
	if hash(four) == SymmetricHash(four, seed+1) {
		t.Error("the seed changes nothing")
	}
	if hash(four) != SymmetricHashIP(four[EthernetLen:], seed) || hash(six) != SymmetricHashIP(six[EthernetLen:], seed) {
		t.Error("an IP packet has another hash without Ethernet")
	}
	if n := testing.AllocsPerRun(100, func() { SymmetricHash(double, 1) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// Flows that differ in one port spread evenly over 16 source ports.
func TestSymmetricHashSpreads(t *testing.T) {
	for name, flow := range map[string]func(i int) []byte{
		"IPv4": func(i int) []byte { return eth(nil, typeIPv4, ip4(protoTCP, 0, uint16(i))) },
		"IPv6": func(i int) []byte { return eth(nil, typeIPv6, ip6(protoTCP, uint16(i))) },
	} {
		var bucket [16]int
		for i := range 10_000 {
			bucket[uint16(SymmetricHash(flow(i), 7))>>12]++
		}
		for i, n := range bucket {
			if n < 500 || n > 750 {
				t.Errorf("%s: bucket %d has %d of 10000", name, i, n)
			}
		}
	}
}

func FuzzSymmetricHash(f *testing.F) {
	f.Add(eth(nil, typeIPv4, ip4(protoUDP, 0, 1)))
	f.Add(eth([]uint32{0x81000001, 0x81000002}, typeIPv6, ip6(protoTCP, 1)))
	f.Fuzz(func(t *testing.T, b []byte) {
		if SymmetricHash(b, 1) == 0 || SymmetricHashIP(b, 1) == 0 {
			t.Fatal("0 means not computed")
		}
	})
}
