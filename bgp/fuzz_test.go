package bgp

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/vxswitch/vxswitch/bgp/internal/engine"
	"github.com/vxswitch/vxswitch/control"
	"github.com/vxswitch/vxswitch/internal/hostaddr"
	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// Paths with any prefix and next hop: no row is one that package control refuses, or leads where a peer must not lead us.
func FuzzImport(f *testing.F) {
	for _, seed := range []string{"", "\x00\x01\x02\x03", "\x01\x0a\x41\x02\x00\x1a\x0a\x00\x00\x02\x00", "\x00\x0a\x41\x01\x05\x20\x0a\x00\x00\x02\x01", "\x02\xfd\x65\x00\x02\x40\xfd\x00\x02\x02"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		d := (*check.Draw)(&b)
		n := func() byte { return byte(d.N(256)) }
		address := func(kind byte) netip.Addr {
			if kind%2 == 0 {
				return netip.AddrFrom16([16]byte{n(), n(), 14: n(), 15: n()})
			}
			return netip.AddrFrom4([4]byte{n(), n(), n(), n()})
		}
		x, m := newTable(settings()), newModel()
		x.configure(settings(), gateway)
		for len(b) > 0 {
			kind := n()
			e := anyPath(d.N)
			if kind%4 != 0 {
				a := address(kind)
				e.Prefix = netip.PrefixFrom(a, int(n())%(a.BitLen()+1))
				e.NextHop = address(n())
			}
			if kind%8 == 7 {
				x.withdrawn(e)
			} else {
				x.learned(e)
			}
			want(t, x, e)
		}
		programmed(t, x, m)
	})
}

// want looks at the rows of a path's prefix.
func want(t *testing.T, x *table, e engine.Path) {
	t.Helper()
	for _, r := range x.rows(e.Prefix.Masked()) {
		if r.Via == (control.Via{}) {
			continue // our own block
		}
		to := r.Via.IP
		if r.Via.VTEP.IsValid() {
			to = r.Via.VTEP.Addr()
		}
		switch {
		case hostaddr.Neighbour(to) != nil || to == addr("10.0.0.1") || to == addr("fd00::1"):
			t.Errorf("%v: leads to %v", r, to)
		case prefix("10.65.1.0/26").Overlaps(r.Prefix) && r.Prefix.Bits() >= 26:
			t.Errorf("%v: takes addresses of ours", r)
		case r.Prefix.Bits() == 0:
			t.Errorf("%v: a default route", r)
		}
		if s := fmt.Sprint(r.Prefix.Addr().Is4(), to.Is4()); s != "true true" && s != "false false" {
			t.Errorf("%v: families", r)
		}
	}
}
