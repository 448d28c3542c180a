package optional

import (
	"net/netip"
	"testing"
)

type mover interface{ SetLocal(netip.Addr) error }

type grouper interface {
	Join(group netip.Addr) error
	Leave(group netip.Addr) error
}

type restless struct{ at *netip.Addr }

func (m restless) SetLocal(a netip.Addr) error { *m.at = a; return nil }

type cover struct{ in any }

func (w cover) Unwrap() any { return w.in }

// What an underlay has is found through what is around it, and nothing else is.
func TestOptional(t *testing.T) {
	var at netip.Addr
	for _, u := range []any{restless{&at}, cover{restless{&at}}, cover{cover{restless{&at}}}} {
		at = netip.Addr{}
		m, ok := Of[mover](u)
		if !ok || m.SetLocal(netip.IPv6Loopback()) != nil || at != netip.IPv6Loopback() {
			t.Errorf("%T: SetLocal is not found", u)
		}
		if _, ok := Of[grouper](u); ok {
			t.Errorf("%T: Join is found", u)
		}
	}
}
