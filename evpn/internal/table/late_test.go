package table

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/vxswitch/vxswitch/evpn/internal/route"
)

// What had no room at a host, a prefix or a VTEP comes in when others go there. One that is said anew keeps its room.
func TestLatecomers(t *testing.T) {
	const n = maxPaths + 44
	l := newLab(t, func(c *Config) { c.MaxAddrs = maxPaths / 4 })
	numbered := func(i int, r *route.Route) *route.Route { r.RD[5], r.RD[6] = byte(i>>8), byte(i); return r }
	routes := func(i int) []*route.Route {
		return []*route.Route{numbered(i, macIP(mac(1), "")), numbered(i, prefixRoute("10.9.0.0/16")), numbered(i, multicast())}
	}
	for i := range n {
		for _, r := range routes(i) {
			l.Learned(0, reflector, r)
		}
	}
	want := func(left int) {
		t.Helper()
		l.flush()
		got := l.Left()
		for _, why := range []string{leftAddressLimit, leftVRFLimit, leftFloodLimit} {
			if got[why] != left {
				t.Errorf("%d are left out for %s, want %d", got[why], why, left)
			}
		}
		if left == 0 && len(got) > 0 {
			t.Error(got)
		}
	}
	want(44)
	for i := range n {
		for _, r := range routes(i) {
			r.Communities += route.Join(route.NDFlags(false, true)) // which nobody reads
			was := l.peers[reflector][r.Key].left
			l.Learned(0, reflector, r)
			if is := l.peers[reflector][r.Key].left; is != was {
				t.Fatalf("%v: said anew, it is left out for %q, and was for %q", r.Key, is, was)
			}
		}
	}
	want(44)
	for i := range 10 {
		for _, r := range routes(i) {
			l.Withdrawn(0, reflector, &r.Key)
		}
	}
	if l.anew {
		t.Error("all is imported anew")
	}
	want(34)
	for i := 10; i < n; i += 2 { // some that wait, too
		for _, r := range routes(i) {
			l.Withdrawn(0, reflector, &r.Key)
		}
	}
	want(0)
	l.Down(0, reflector)
	l.want()
}

// A prefix that we have ourselves makes room when the last route of peers to it goes, too.
func TestRoomBesideOurs(t *testing.T) {
	l := newLab(t, func(c *Config) { c.MaxRoutes = 32 })
	p := func(i int) string { return fmt.Sprintf("10.9.%d.0/24", i) }
	for i := range 33 {
		l.Learned(0, peer, prefixRoute(p(i)))
		l.Static("red", netip.MustParsePrefix(p(i)), 1)
	}
	l.flush()
	if left := l.Left(); left[leftVRFLimit] != 1 {
		t.Error(left)
	}
	for i := range 8 {
		l.Withdrawn(0, peer, &prefixRoute(p(i)).Key)
	}
	l.flush()
	l.flush()
	if left := l.Left(); len(left) > 0 {
		t.Error(left)
	}
}
