package fdb

import (
	"errors"
	"testing"

	"github.com/vxswitch/vxswitch/frame"
)

// An entry for what is not there is an error, and changes nothing.
func TestSetNowhere(t *testing.T) {
	here, gone := frame.NewDest(1, 0), frame.NewDest(2, 3)
	there := map[frame.Dest]bool{here: true}
	x := NewTable(&Config{Has: func(d frame.Dest) bool { return there[d] }})
	a, b := frame.MAC{2}, frame.MAC{2, 5: 1}
	if err := x.Set(a, here, Static); err != nil {
		t.Fatal(err)
	}
	for _, f := range []Flags{Static, Control, Control | Override, Control | Sticky} {
		for _, mac := range []frame.MAC{a, b} {
			if err := x.Set(mac, gone, f); !errors.Is(err, ErrNoDest) || err.Error() != "fdb: there is no such port or peer: 2/3" {
				t.Errorf("%v, flags %v: %v", mac, f, err)
			}
		}
	}
	if d, ok := x.Lookup(a); !ok || d != here || x.Len() != 1 {
		t.Errorf("%v at %v, %d entries", a, d, x.Len())
	}
	// A filter is nowhere.
	for _, d := range []frame.Dest{gone, frame.Filter} {
		if err := x.Set(b, d, Filter); err != nil {
			t.Errorf("filter at %v: %v", d, err)
		}
	}
}
