package arp

import (
	"sync"
	"testing"
)

// Who sets and removes entries of its own never replaces nor removes what was learned meanwhile.
func TestIf(t *testing.T) {
	l := newLab(t, nil, Config{})
	ip := ip4(1)
	control := func(e Entry) bool { return e.Origin == Control }
	for range 2000 {
		must(t, l.table.Set(ip, mac(1), Control, 0))
		var all sync.WaitGroup
		all.Go(func() {
			c := claim(ip, mac(1), port1)
			for o := Busy; o == Busy; {
				o = l.table.Learn(c, 1)
			}
		})
		all.Go(func() { l.table.DeleteIf(ip, control) })
		all.Go(func() {
			if _, err := l.table.SetIf(ip, mac(1), Control, 0, control); err != nil {
				t.Error(err)
			}
		})
		all.Wait()
		if e, ok := l.table.Lookup(ip); !ok || e.Origin != Snooped {
			t.Fatalf("%+v, %v", e, ok)
		}
		l.table.Delete(ip)
	}
	set, err := l.table.SetIf(ip, mac(2), Control, 0, func(Entry) bool { return false })
	if !set || err != nil {
		t.Errorf("none is there: %v, %v", set, err)
	}
	set, err = l.table.SetIf(ip, mac(3), Control, 0, func(e Entry) bool { return e.MAC != mac(2) })
	if e, _ := l.table.Lookup(ip); set || err != nil || e.MAC != mac(2) {
		t.Errorf("%v, %v: %+v", set, err, e)
	}
	if l.table.DeleteIf(ip, func(e Entry) bool { return e.MAC == mac(3) }) || !l.table.DeleteIf(ip, control) || l.table.DeleteIf(ip, control) {
		t.Error("one entry")
	}
}
