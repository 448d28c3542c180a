package control_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/control"
	"github.com/vxswitch/vxswitch/frame"
)

// An entry that gave way to a host is not its owner's any more, and a flood list is that of a tunnel.
func TestOrigin(t *testing.T) {
	l := newLeaf(t, control.Config{Owners: owners()})
	l.add("bgp", control.MAC{VNI: red, MAC: mac(1), VTEP: at(2)}, control.Flood{VNI: red, VTEP: at(2)})
	l.add("other", control.Flood{VNI: red, VTEP: at(2)}, control.Flood{VNI: red, VTEP: at(3)})
	want := func(key control.Row, owners ...string) {
		t.Helper()
		if got := l.Origin(key); !slices.Equal(got, owners) {
			t.Errorf("%v is of %q, want %q", key, got, owners)
		}
	}
	host := control.MAC{VNI: red, MAC: mac(1)}
	want(host, "bgp")
	want(control.Flood{VNI: red, VTEP: at(2)}, "bgp", "other")
	want(control.Flood{VNI: red, VTEP: at(3), Tunnel: l.vtep.Name()}, "other")
	want(control.Flood{VNI: red, VTEP: at(3), Tunnel: "none"})
	want(control.Flood{VNI: red, VTEP: at(9)})
	want(control.Prefix{VRF: "red"})
	want(nil)
	l.segment(red).FDB().Learn(mac(1), l.local.Dest(0), 0)
	l.Handle(frame.Event{Kind: frame.EventMACMoved, VNI: red, MAC: mac(1), Dest: l.local.Dest(0), Pinned: true})
	want(host)
	l.segment(red).FDB().Delete(mac(1))
	l.Handle(frame.Event{Kind: frame.EventMACDeleted, VNI: red, MAC: mac(1), Dest: l.local.Dest(0)})
	want(host, "bgp")
}

// The last refused rows are kept, of each owner by itself, until it is forgotten.
func TestRefusals(t *testing.T) {
	l := newLeaf(t, control.Config{Owners: owners()})
	l.Program("other", control.Update{Add: []control.Row{nil}})
	for i := range byte(50) {
		l.Program("bgp", control.Update{Add: []control.Row{control.MAC{VNI: 7, MAC: mac(i), VTEP: at(2)}, control.MAC{VNI: red, MAC: mac(1), VTEP: at(2)}}})
	}
	list := l.Refusals("bgp")
	if len(list) != 16 || list[15].Row != (control.MAC{VNI: 7, MAC: mac(49), VTEP: at(2)}) || !strings.Contains(list[0].Error(), "no such segment") || list[0].Time.IsZero() {
		t.Errorf("%d: %v", len(list), list)
	}
	if o := l.Refusals("other"); len(o) != 1 || !slices.Equal(l.Refused(), []string{"bgp", "other"}) || l.Stats().Refused != 51 {
		t.Errorf("%v, %v, %+v", o, l.Refused(), l.Stats())
	}
	l.Forget("bgp")
	if len(l.Refusals("bgp")) != 0 || !slices.Equal(l.Refused(), []string{"other"}) {
		t.Errorf("%v", l.Refused())
	}
}
