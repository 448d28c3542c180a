package shares

import (
	"slices"
	"testing"

	"github.com/vxswitch/vxswitch/frame"
)

// Who has little takes from who has much, and from himself when he has as much.
func TestList(t *testing.T) {
	var l List[string]
	a, b, c := frame.NewDest(1, 0), frame.NewDest(2, 0), frame.NewDest(3, 7)
	want := func(from frame.Dest, n int, x string, ok bool) {
		t.Helper()
		if got, may := l.Oldest(from, n); got != x || may != ok {
			t.Errorf("%d from %v: %q %v, want %q %v", n, from, got, may, x, ok)
		}
	}
	want(a, 1, "", false)
	a1 := l.Add(a, "a1", 2)
	a2 := l.Add(a, "a2", 3)
	b1 := l.Add(b, "b1", 1)
	want(b, 1, "a1", true)
	want(b, 4, "b1", true)
	want(c, 4, "a1", true)
	want(c, 5, "a1", false)
	l.Renew(a1)
	want(c, 1, "a2", true)
	if got := l.All(); !slices.Equal(got, []string{"b1", "a2", "a1"}) {
		t.Error(got)
	}
	l.Grow(b1, 4)
	want(c, 1, "a2", true) // as much as b: the lower number
	l.Remove(b1)
	drop := func(x string) {
		if x != "a2" {
			t.Errorf("%s is dropped", x)
		}
		l.Remove(a2)
	}
	if !l.Room(c, 1, 3, drop) || l.Room(c, 5, 5, drop) || l.Size() != 2 || l.Places() != 1 {
		t.Errorf("%d at %d", l.Size(), l.Places())
	}
}
