package table

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/evpn/internal/route"
	"github.com/vxswitch/vxswitch/frame"
)

// Limits, the distance of routes, and what a VRF says may change at any time.
func TestConfigure(t *testing.T) {
	l := newLab(t, nil)
	c := l.cfg
	for i := range 20 {
		l.Learned(0, peer, macIP(frame.MAC{2, 0, 0, 0, 1, byte(i)}, ""))
	}
	l.Learned(0, peer, prefixRoute("10.9.0.0/24"))
	l.flush()
	c.MaxHosts, c.Distance = 16, 30
	l.Configure(c)
	l.flush()
	if n := l.Left()[leftSegmentLimit]; n != 4 || len(l.list()) != 17 || !slices.ContainsFunc(l.list(), func(x string) bool { return strings.Contains(x, "distance 30") }) {
		t.Errorf("%d left out, %q", n, l.list())
	}
	c.MaxHosts = 0
	l.Configure(c)
	l.flush()
	if len(l.Left()) != 0 || len(l.list()) != 21 {
		t.Errorf("%v, %d rows", l.Left(), len(l.list()))
	}

	l.Connected("red", netip.MustParsePrefix("10.2.0.1/24"), 1)
	l.Static("red", netip.MustParsePrefix("10.7.0.0/24"), 1)
	for _, x := range []VRF{{}, {NoConnected: true}, {NoStatic: true}, {NoConnected: true, NoStatic: true}} {
		x.Name, x.L3VNI, x.RouterMAC, x.VTEP = "red", 500, mac(0xfd), at(ours)
		l.SetVRF(x)
		l.flush()
		said := map[string]bool{}
		for k := range l.told {
			if k.Kind == route.Prefix {
				said[k.IP.String()] = true
			}
		}
		if said["10.2.0.0"] == x.NoConnected || said["10.7.0.0"] == x.NoStatic {
			t.Errorf("%+v: %v", x, said)
		}
	}
}

// What peers may add is bounded, and there is room again when others go.
func TestLimits(t *testing.T) {
	l := newLab(t, func(c *Config) { c.MaxHosts, c.MaxAddrs, c.MaxRoutes = 32, 2, 32 })
	key := func(i int) frame.MAC { return frame.MAC{2, 0, 0, 1, byte(i >> 8), byte(i)} }
	for i := range 50 {
		l.Learned(0, peer, macIP(key(i), ""))
		l.Learned(0, peer, prefixRoute(fmt.Sprintf("10.9.%d.0/24", i)))
	}
	for i := range 50 {
		l.Learned(0, reflector, macIP(key(0), fmt.Sprintf("10.0.0.%d", i+1)))
	}
	l.flush()
	if left := l.Left(); left[leftSegmentLimit] != 18 || left[leftVRFLimit] != 18 || left[leftAddressLimit] != 43 {
		t.Error(left)
	}
	for i := range 8 {
		l.Withdrawn(0, peer, &macIP(key(i), "").Key)
		l.Withdrawn(0, peer, &prefixRoute(fmt.Sprintf("10.9.%d.0/24", i)).Key)
	}
	l.Down(0, reflector)
	l.flush()
	l.flush()
	if left := l.Left(); left[leftSegmentLimit] != 10 || left[leftVRFLimit] != 10 || len(left) != 2 {
		t.Error(left)
	}
	for i := range 50 {
		l.Speaks(100, key(60), netip.AddrFrom4([4]byte{10, 0, 0, byte(i)}), false)
	}
	if n := len(l.segments[100].hosts[key(60)].addrs); n != 2 {
		t.Errorf("%d addresses", n)
	}
	l.Down(0, peer)
	l.Mark(100)
	l.Sweep(0, 100)
	l.want()
	if len(l.segments[100].hosts)+len(l.vrfs["red"].prefixes) != 0 || len(l.said) != 3 {
		t.Errorf("%d hosts, %d prefixes, %d routes are left", len(l.segments[100].hosts), len(l.vrfs["red"].prefixes), len(l.said))
	}
}
