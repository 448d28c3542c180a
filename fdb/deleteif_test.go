package fdb

import (
	"sync"
	"testing"

	"github.com/vxswitch/vxswitch/frame"
)

// Who removes what it has set never removes what was learned meanwhile.
func TestDeleteIf(t *testing.T) {
	x, mac := NewTable(nil), frame.MAC{2}
	there, here := frame.NewDest(2, 3), frame.NewDest(1, 0)
	control := func(e Entry) bool { return e.Origin == OriginControl }
	for range 2000 {
		if err := x.Set(mac, there, Control|Override); err != nil {
			t.Fatal(err)
		}
		var both sync.WaitGroup
		both.Go(func() {
			for o := Busy; o == Busy; {
				o = x.Learn(mac, here, 1)
			}
		})
		both.Go(func() { x.DeleteIf(mac, control) })
		both.Wait()
		if d, ok := x.Lookup(mac); !ok || d != here {
			t.Fatalf("at %v, %v", d, ok)
		}
	}
	if x.DeleteIf(mac, control) || !x.DeleteIf(mac, func(e Entry) bool { return e.Dest == here }) || x.DeleteIf(mac, func(Entry) bool { return true }) {
		t.Error("one entry")
	}
}
