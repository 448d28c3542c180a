package wire

import (
	"math/rand/v2"
	"testing"
)

// The payload of a full-sized TCP segment, and a short header.
func BenchmarkSum(b *testing.B) {
	buf := make([]byte, 1448)
	r := rand.New(rand.NewPCG(5, 6))
	for i := range buf {
		buf[i] = byte(r.Uint32())
	}
	for _, c := range []struct {
		name string
		n    int
		sum  func(b []byte) uint16
	}{
		{"fast/1448", 1448, func(b []byte) uint16 { return Checksum(Sum(b, 0)) }},
		{"plain/1448", 1448, reference},
		{"fast/20", 20, func(b []byte) uint16 { return Checksum(Sum(b, 0)) }},
		{"plain/20", 20, reference},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(int64(c.n))
			for b.Loop() {
				sink = c.sum(buf[:c.n])
			}
		})
	}
}

var sink uint16
