package capture

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// The ring against a plain list: packets of any size, in pieces, round the end.
func TestCaptureRing(t *testing.T) {
	r, rng := newRing(40*blockLen), rand.New(rand.NewPCG(1, 2))
	type stored struct {
		data   []byte
		length int32
		time   int64
	}
	var model []stored
	used, refused := uint64(0), 0
	var scratch, data []byte
	for i := range int64(20000) {
		if c, _ := r.first(); c != nil && rng.IntN(5) < 2 {
			want := model[0]
			data, scratch = r.bytes(c, scratch)
			if !bytes.Equal(data, want.data) || c.length != want.length || c.time != want.time {
				t.Fatalf("packet of step %d: %d bytes of %d, want %d of %d", c.time, len(data), c.length, len(want.data), want.length)
			}
			used -= blocks(c.kept)
			r.drop(c)
			model = model[1:]
			continue
		} else if (c != nil) != (len(model) > 0) {
			t.Fatalf("step %d: %d packets wait, the first is there: %v", i, len(model), c != nil)
		}
		p := make([]byte, rng.IntN(3000))
		for k := range p {
			p[k] = byte(rng.Uint32())
		}
		x, y := rng.IntN(len(p)+1), rng.IntN(len(p)+1)
		parts := [][]byte{p[:min(x, y)], p[min(x, y):max(x, y)], p[max(x, y):]}
		kept := min(len(p), 1+rng.IntN(3000))
		room := used+blocks(int32(kept)) <= 40
		if got := r.put(&packet{time: i, length: int32(len(p)), kept: int32(kept)}, parts); got != room {
			t.Fatalf("step %d: put of %d bytes beside %d blocks: %v", i, kept, used, got)
		}
		if !room {
			refused++
			continue
		}
		used += blocks(int32(kept))
		model = append(model, stored{p[:kept], int32(len(p)), i})
	}
	if refused < 100 || r.tail.Load() < 400 {
		t.Errorf("%d refused, %d blocks: the ring was not tried", refused, r.tail.Load())
	}

	r.close()
	if r.put(&packet{}, nil) {
		t.Error("a closed ring takes a packet")
	}
	for range model {
		c, over := r.first()
		if c == nil || over {
			t.Fatal("a closed ring forgets")
		}
		r.drop(c)
	}
	if c, over := r.first(); c != nil || !over {
		t.Error("a closed and empty ring does not say so")
	}
}
