package wire

import (
	"math/rand/v2"
	"testing"
)

// reference is RFC 1071 as it stands: word by word, into 32 bits.
func reference(b []byte) uint16 {
	var sum uint32
	for i, c := range b {
		if i%2 == 0 {
			sum += uint32(c) << 8
		} else {
			sum += uint32(c)
		}
		sum = sum>>16 + sum&0xffff
	}
	return ^uint16(sum)
}

// same treats the two zeros of one's complement as one.
func same(a, b uint16) bool { return a == b || a^b == 0xffff && (a == 0 || b == 0) }

func TestSum(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for n := range 600 {
		b := make([]byte, n)
		for _, fill := range []int{0, 1, 0xff} {
			for i := range b {
				b[i] = byte(fill)
				if fill == 1 {
					b[i] = byte(r.Uint32())
				}
			}
			if got, want := Checksum(Sum(b, 0)), reference(b); !same(got, want) {
				t.Fatalf("%d bytes of %#x: %#x, want %#x", n, fill, got, want)
			}
			if k := n / 2 &^ 1; !same(Checksum(Sum(b[k:], Sum(b[:k], 0))), reference(b)) {
				t.Fatalf("%d bytes in two pieces", n)
			}
		}
	}
}

// The carry out of every addition comes back in.
func TestSumCarries(t *testing.T) {
	b := make([]byte, 64)
	for i := range b {
		b[i] = 0xff
	}
	if got := Fold(Sum(b, ^uint64(0))); got != 0xffff {
		t.Errorf("%#x", got)
	}
}

func TestUpdate(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 10000 {
		var h [20]byte
		for i := range h {
			h[i] = byte(r.Uint32())
		}
		h[10], h[11] = 0, 0
		c := Checksum(Sum(h[:], 0))
		old := uint16(h[0])<<8 | uint16(h[1])
		h[0], h[1] = byte(r.Uint32()), byte(r.Uint32())
		if got, want := Update(c, old, uint16(h[0])<<8|uint16(h[1])), reference(h[:]); !same(got, want) {
			t.Fatalf("%#x, want %#x", got, want)
		}
	}
}

func FuzzSum(f *testing.F) {
	f.Add([]byte{1, 2, 3}, uint8(2))
	f.Fuzz(func(t *testing.T, b []byte, cut uint8) {
		k := min(int(cut)&^1, len(b))
		if k != len(b) {
			k &^= 1
		}
		if got, want := Checksum(Sum(b[k:], Sum(b[:k], 0))), reference(b); !same(got, want) {
			t.Errorf("%#x, want %#x", got, want)
		}
	})
}
