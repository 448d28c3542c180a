package wire

import (
	"math/rand/v2"
	"testing"
)

// Each field is where the RFC draws it, and setting one touches no other.
func TestViews(t *testing.T) {
	count := func(n int) []byte {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(i)
		}
		return b
	}
	v4 := IPv4(append([]byte{0x47}, count(20)[1:]...))
	v6 := IPv6(append([]byte{0x60}, count(40)[1:]...))
	tcp, udp := TCP(count(20)), UDP(count(8))
	tcp[12] = 0x80
	for name, c := range map[string][2]int{
		"IPv4 header": {v4.HeaderLen(), 28}, "IPv4 length": {v4.TotalLen(), 0x0203},
		"IPv4 id": {int(v4.ID()), 0x0405}, "IPv4 protocol": {int(v4.Protocol()), 9}, "IPv4 checksum": {int(v4.Checksum()), 0x0a0b},
		"IPv6 length": {v6.PayloadLen(), 0x0405}, "IPv6 next": {int(v6.NextHeader()), 6},
		"TCP sequence": {int(tcp.Seq()), 0x04050607}, "TCP header": {tcp.HeaderLen(), 32}, "TCP flags": {int(tcp.Flags()), 13},
		"TCP checksum": {int(tcp.Checksum()), 0x1011}, "UDP length": {udp.Len(), 0x0405}, "UDP checksum": {int(udp.Checksum()), 0x0607},
	} {
		if c[0] != c[1] {
			t.Errorf("%s: %#x, want %#x", name, c[0], c[1])
		}
	}
	for _, c := range []struct {
		word         uint16
		df, fragment bool
	}{{0, false, false}, {0x4000, true, false}, {0x8000, false, false}, {0x2000, false, true}, {1, false, true}, {0x5fff, true, true}} {
		v4[6], v4[7] = byte(c.word>>8), byte(c.word)
		if v4.DF() != c.df || v4.Fragment() != c.fragment {
			t.Errorf("%#x: DF %v, fragment %v", c.word, v4.DF(), v4.Fragment())
		}
	}
	for _, c := range []struct {
		name  string
		b     []byte
		set   func()
		at, n int
	}{
		{"IPv4 length", v4, func() { v4.SetTotalLen(0xa1b2) }, 2, 2},
		{"IPv4 id", v4, func() { v4.SetID(0xa1b2) }, 4, 2},
		{"IPv4 checksum", v4, func() { v4.SetChecksum(0xa1b2) }, 10, 2},
		{"IPv6 length", v6, func() { v6.SetPayloadLen(0xa1b2) }, 4, 2},
		{"TCP sequence", tcp, func() { tcp.SetSeq(0xa1b2c3d4) }, 4, 4},
		{"TCP flags", tcp, func() { tcp.SetFlags(0xa1) }, 13, 1},
		{"TCP checksum", tcp, func() { tcp.SetChecksum(0xa1b2) }, 16, 2},
		{"UDP length", udp, func() { udp.SetLen(0xa1b2) }, 4, 2},
		{"UDP checksum", udp, func() { udp.SetChecksum(0xa1b2) }, 6, 2},
	} {
		want := append([]byte(nil), c.b...)
		copy(want[c.at:], []byte{0xa1, 0xb2, 0xc3, 0xd4}[:c.n])
		if c.set(); string(c.b) != string(want) {
			t.Errorf("%s: % x, want % x", c.name, c.b, want)
		}
	}
}

// A header without options is summed up by itself: carries come back in.
func TestIPv4ChecksumOK(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for n := range 20_000 {
		p := make(IPv4, IPv4Len)
		for i := range p {
			switch n % 3 {
			case 0:
				p[i] = byte(rng.Uint32())
			case 1:
				p[i] = 0xff
			default:
				p[i] = byte(rng.Uint32()) | 0xf0
			}
		}
		p[0] = 0x45
		if got, want := p.ChecksumOK(), reference(p) == 0; got != want {
			t.Fatalf("% x: %v, want %v", p, got, want)
		}
		p.SetChecksum(0)
		p.SetChecksum(reference(p))
		if !p.ChecksumOK() {
			t.Fatalf("% x: not right", p)
		}
	}
}
