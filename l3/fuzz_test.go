package l3

import (
	"math/rand/v2"
	"testing"
)

// bytesSource makes the choices that the input says, and those of a fixed sequence when it is
// at its end.
type bytesSource struct {
	in   []byte
	then rand.Source
}

func (s *bytesSource) Uint64() uint64 {
	if len(s.in) == 0 {
		return s.then.Uint64()
	}
	x := uint64(s.in[0])
	s.in = s.in[1:]
	return x<<56 | x<<24 | x // IntN looks at the highest bits, and where n is a power of two at the lowest
}

// FuzzRoutes is TestGolden with choices out of the input: routes and neighbours against a list
// and a map.
func FuzzRoutes(f *testing.F) {
	for seed := range uint64(4) {
		r := rand.New(rand.NewPCG(seed, 1))
		in := make([]byte, 200)
		for i := range in {
			in[i] = byte(r.Uint32())
		}
		f.Add(in, seed&1 != 0)
	}
	f.Fuzz(func(t *testing.T, in []byte, v6 bool) {
		n := 0
		if v6 {
			n = 1
		}
		goldenTable(t, rand.New(&bytesSource{in, rand.NewPCG(1, 1)}), n)
	})
}
