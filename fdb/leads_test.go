package fdb

import (
	"testing"

	"github.com/vxswitch/vxswitch/frame"
)

// What one number stands for may send from a MAC that is behind it, and nobody else may.
func TestLeads(t *testing.T) {
	group, member, stranger, port := frame.NewDest(1, 9), frame.NewDest(1, 2), frame.NewDest(1, 3), frame.NewDest(1, 0)
	x := NewTable(&Config{Leads: func(to, peer frame.Dest) bool { return to == group && peer == member }})
	mac := frame.MAC{2}
	for _, f := range []Flags{Static, Control | Sticky} {
		if err := x.Set(mac, group, f|Override); err != nil {
			t.Fatal(err)
		}
		for d, want := range map[frame.Dest]Outcome{member: Kept, stranger: Refused, port: Refused, frame.NewDest(2, 2): Refused} {
			if o, c := x.Learn(mac, d, 5), x.Check(mac, d); o != want || c != want {
				t.Errorf("flags %v, at %v: %v, Check says %v, want %v", f, d, o, c, want)
			}
			if got := x.Pinned(mac, d); got != (want == Kept) {
				t.Errorf("flags %v, at %v: Pinned says %v", f, d, got)
			}
		}
		if d, ok := x.Lookup(mac); !ok || d != group {
			t.Errorf("it is at %v now", d)
		}
	}
	if n := x.Stats().Refused; n != 6 {
		t.Errorf("%d refused, want 6", n)
	}
}
