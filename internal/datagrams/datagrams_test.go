package datagrams

import (
	"errors"
	"testing"
)

// A Cursor passes each byte once, whatever the pieces are, and empty ones not at all.
func TestCursor(t *testing.T) {
	parts := [][]byte{nil, []byte("ab"), {}, []byte("cdefg"), nil}
	for skip := range 8 {
		for most := 1; most < 8; most++ {
			c, got := At(parts, skip), ""
			for p := c.Next(most); p != nil; p = c.Next(most) {
				if len(p) > most {
					t.Fatalf("%d bytes of at most %d", len(p), most)
				}
				got += string(p)
			}
			if got != "abcdefg"[min(skip, 7):] {
				t.Errorf("after %d, by %d: %q", skip, most, got)
			}
		}
	}
}

type even int

func (n even) Check() error {
	if n%2 != 0 {
		return errors.New("odd")
	}
	return nil
}

func TestSets(t *testing.T) {
	var sets Sets[even, even]
	double := func(n even) *even { n *= 2; return &n }
	for i := range even(MaxSets) {
		for range 2 {
			if n, err := sets.Number(2*i, double); err != nil || n != uint8(i) || *sets.Get(n) != 4*i {
				t.Fatalf("%d: %d, %v", i, n, err)
			}
		}
	}
	for _, n := range []even{1, 2 * MaxSets} {
		if _, err := sets.Number(n, double); err == nil {
			t.Errorf("%d is taken", n)
		}
	}
	n := 0
	sets.All(func(*even) { n++ })
	if n != MaxSets || sets.Get(MaxSets) != nil || sets.Own() != 0 {
		t.Errorf("%d sets", n)
	}
}
