package main

import (
	"errors"
	"testing"

	"github.com/vxswitch/vxswitch/frame"
)

// threes reads three frames at a time, and then no more.
type threes struct{ left int }

var errOver = errors.New("over")

func (r *threes) Read(b *frame.Batch) error {
	b.Reset()
	if r.left == 0 {
		return errOver
	}
	for i := range 3 {
		f := b.New(1)
		f.Bytes()[0], f.Kind = byte(3*r.left+i), frame.IPv6
		b.Outer[i].TTL = uint8(i)
	}
	r.left--
	return nil
}

// Each frame comes once, in order, by itself, with all that is known of it.
func TestLoneReader(t *testing.T) {
	r, b := oneByOne([]frame.Reader{&threes{left: 2}})[0], frame.NewBatch(nil)
	for i, want := range []byte{6, 7, 8, 3, 4, 5} {
		must(t, r.Read(b))
		if len(b.Frames) != 1 || len(b.Outer) != 1 {
			t.Fatalf("%d frames", len(b.Frames))
		}
		f := &b.Frames[0]
		if got := f.Bytes(); len(got) != 1 || got[0] != want || f.Kind != frame.IPv6 || f.Headroom() == 0 || b.Outer[0].TTL != uint8(i%3) {
			t.Errorf("frame %d: %v, %v, %+v", i, got, f.Kind, b.Outer[0])
		}
	}
	if err := r.Read(b); !errors.Is(err, errOver) {
		t.Error(err)
	}
}
