package model

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"
)

// bytesSource makes the choices that the input says, and those of its seed when the input is
// at its end. A choice costs a byte or, where it is among more than a handful, two.
type bytesSource struct {
	in   []byte
	then rand.Source
}

func (s *bytesSource) Uint64() uint64 {
	if len(s.in) == 0 {
		return s.then.Uint64()
	}
	var b [2]byte
	n := copy(b[:], s.in)
	s.in = s.in[n:]
	x := uint64(binary.BigEndian.Uint16(b[:]))
	return x<<48 | x<<16 | x // IntN looks at the highest bits, and where n is a power of two at the lowest
}

// FuzzModel is TestModel with operations that the input chooses, so that those which lead
// somewhere new are found by coverage: a fabric of VTEPs against maps and lists.
func FuzzModel(f *testing.F) {
	for seed := range uint64(6) {
		r := rand.New(rand.NewPCG(seed, 4))
		in := make([]byte, 120)
		for i := range in {
			in[i] = byte(r.Uint32())
		}
		f.Add(seed, in)
	}
	f.Fuzz(func(t *testing.T, seed uint64, in []byte) {
		const most = 40 // operations
		top := plan(seed % 1000)
		src := &bytesSource{in, rand.NewPCG(seed, 5)}
		choices := rand.New(src)
		s := tell(t, top, func(w *world, k int, _ *rand.Rand) (op, bool) {
			if k == most || len(src.in) == 0 {
				return op{}, false
			}
			return w.draw(choices, k), true
		})
		if s.err != nil {
			for k, o := range s.ops {
				t.Logf("%4d  %s", k, o.words)
			}
			t.Errorf("%v%v", top, s.err)
		}
	})
}
