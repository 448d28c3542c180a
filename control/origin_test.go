package control_test

import (
	"slices"
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
