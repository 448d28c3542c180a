package bgp

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"github.com/vxswitch/vxswitch/control"
	"github.com/vxswitch/vxswitch/control/controltest"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
)

func newModel() *controltest.Model {
	vnis := []frame.VNI{100, 200, 300}
	return &controltest.Model{VNIs: vnis, VRFs: map[string][]frame.VNI{"v": vnis}}
}

// programmed flushes a table, and returns what a Programmer has then, one line for each row.
func programmed(t *testing.T, x *table, m *controltest.Model) (list []string) {
	t.Helper()
	for more := true; more; {
		var err error
		more, err = x.flush("bgp", m)
		check.OK(t, err)
	}
	for _, r := range m.Rows("bgp") {
		list = append(list, r.String())
	}
	slices.Sort(list)
	return list
}

// Each route becomes the row of its pool, or is refused by name.
func TestImport(t *testing.T) {
	for _, c := range []struct{ prefix, nextHop, want string }{
		{"10.65.2.0/26", "10.0.0.2", "via vni 200 ip 10.0.0.2"},
		{"10.65.2.0/26", "10.1.0.2", "via vni 200 ip 10.0.0.254"}, // in another rack
		{"fd65:2::/122", "fd00::2", "via vni 200 ip fd00::2"},
		{"fd65:2::/122", "fd01::2", "off-link"}, // no router of the family
		{"10.66.2.0/26", "10.0.0.2", "via vni 100 vtep 10.0.0.2:0"},
		{"10.67.2.0/26", "10.0.0.2", "via vni 200 ip 10.0.0.2"},
		{"10.67.2.0/26", "10.1.0.2", "via vni 100 vtep 10.1.0.2:0"},
		{"10.68.2.0/26", "10.0.0.2", "via vni 300 mac 02:00:00:00:00:09 vtep 10.0.0.2:0 tunnel vx"},
		{"10.68.2.0/26", "10.0.0.3", "unknown-node"},
		{"10.66.128.0/26", "10.0.0.2", "via vni 200 ip 10.0.0.2"}, // of two pools the smaller
		{"10.64.0.0/10", "10.0.0.2", "outside-pools"},
		{"192.0.2.64/26", "10.0.0.2", "via vni 200 ip 10.0.0.2"}, // by a rule
		{"192.0.2.64/27", "10.0.0.2", "outside-pools"},           // which this one is too long for
		{"10.65.200.16/28", "10.0.0.2", "filtered"},
		{"10.65.200.0/26", "10.0.0.2", "via vni 200 ip 10.0.0.2"}, // which this one is too short for
		{"0.0.0.0/0", "10.0.0.254", "default-route"},
		{"::/0", "fd00::2", "default-route"},
		{"127.0.0.0/8", "10.0.0.2", "not-routed"},
		{"224.0.0.0/24", "10.0.0.2", "not-routed"},
		{"169.254.1.1/32", "10.0.0.2", "not-routed"},
		{"fe80::/64", "fd00::2", "not-routed"},
		{"255.255.255.255/32", "10.0.0.2", "not-routed"},
		{"10.65.1.0/26", "10.0.0.2", "own-block"},
		{"10.65.1.0/27", "10.0.0.2", "own-block"},
		{"10.65.1.5/32", "10.0.0.2", "own-block"},
		{"10.65.9.9/32", "10.0.0.2", "own-block"},
		{"10.65.0.0/16", "10.0.0.2", "via vni 200 ip 10.0.0.2"}, // less specific than ours
		{"10.0.0.0/24", "10.0.0.2", "underlay"},
		{"10.0.0.7/32", "10.0.0.2", "underlay"},
		{"10.99.0.128/25", "10.0.0.2", "underlay"},
		{"10.65.2.0/26", "0.0.0.0", "next-hop"},
		{"10.65.2.0/26", "127.0.0.1", "next-hop"},
		{"10.65.2.0/26", "224.0.0.1", "next-hop"},
		{"10.65.2.0/26", "169.254.1.1", "next-hop"},
		{"10.65.2.0/26", "fd00::2", "next-hop"},
		{"fd65:2::/122", "fe80::2", "next-hop"},
		{"10.65.2.0/26", "10.0.0.1", "own-next-hop"},
		{"10.65.2.0/26", "10.65.3.1", "overlay-next-hop"},
	} {
		x := newTable(settings())
		x.configure(settings(), gateway)
		x.learned(pathTo(c.prefix, "10.0.0.9", 0, c.nextHop))
		got := "nothing"
		for r := range x.routes() {
			if got = r.Refused.String(); r.Refused == None {
				got = r.Via.String()
			}
		}
		if got != c.want {
			t.Errorf("%s by %s: %s, want %s", c.prefix, c.nextHop, got, c.want)
		}
		row := fmt.Sprintf("prefix %s vrf v %s distance 20", c.prefix, c.want)
		taken := c.want[:4] == "via "
		if rows := programmed(t, x, newModel()); slices.Contains(rows, row) != taken {
			t.Errorf("%s by %s: rows %v", c.prefix, c.nextHop, rows)
		}
	}
}

// Default routes and host routes into our own blocks are taken where the settings say so.
func TestImportAllowed(t *testing.T) {
	c := settings()
	c.DefaultRoute, c.Borrowed = true, true
	x := newTable(c)
	x.configure(c, gateway)
	for _, p := range []string{"0.0.0.0/0", "10.65.1.5/32", "10.65.1.0/27", "10.65.9.9/32"} {
		x.learned(pathTo(p, "10.0.0.9", 0, "10.0.0.2"))
	}
	check.Equal(t, "taken", x.peers[addr("10.0.0.9")][None], 2)
	check.Equal(t, "of our own", x.peers[addr("10.0.0.9")][OwnBlock], 2)
	c.Lent = prefixes("10.65.1.6/32")
	x.configure(c, gateway)
	check.Equal(t, "of our own, none of which is lent", x.peers[addr("10.0.0.9")][OwnBlock], 3)
	c.Lent = prefixes("10.65.1.5/32")
	x.configure(c, gateway)
	check.Equal(t, "of our own, one of which is lent", x.peers[addr("10.0.0.9")][OwnBlock], 2)
}

// Equal paths become next hops, by peer and by number of add-path; our blocks end here.
func TestTable(t *testing.T) {
	c := settings()
	c.MaxPaths, c.Distance, c.Announce = 2, 30, prefixes("10.65.1.0/26", "10.65.9.9/32")
	x, m := newTable(c), newModel()
	x.configure(c, gateway)
	const block = "prefix 10.65.1.0/26 vrf v blackhole distance 255"
	hop := func(last int) string {
		return fmt.Sprintf("prefix 10.65.2.0/26 vrf v via vni 200 ip 10.0.0.%d distance 30", last)
	}
	want := func(what string, rows ...string) {
		t.Helper()
		check.Equal(t, what, fmt.Sprint(programmed(t, x, m)), fmt.Sprint(append([]string{block}, rows...)))
	}
	want("nothing learned")
	x.learned(pathTo("10.65.2.0/26", "10.0.0.9", 1, "10.0.0.2"))
	x.learned(pathTo("10.65.2.0/26", "10.0.0.9", 2, "10.0.0.3"))
	x.learned(pathTo("10.65.2.0/26", "10.0.0.8", 0, "10.0.0.2"))
	want("two next hops", hop(2), hop(3))
	x.learned(pathTo("10.65.2.0/26", "10.0.0.8", 0, "10.0.0.4"))
	want("the lowest two", hop(2), hop(3))
	x.withdrawn(pathTo("10.65.2.0/26", "10.0.0.9", 1, "10.0.0.2"))
	want("one withdrawn", hop(3), hop(4))
	x.down(addr("10.0.0.9"))
	want("a peer lost", hop(4))
	c2 := *c
	c2.Announce = prefixes("10.65.2.0/26")
	x.configure(&c2, gateway)
	check.Equal(t, "it is ours now", fmt.Sprint(programmed(t, x, m)), "[prefix 10.65.2.0/26 vrf v blackhole distance 255]")
	c3 := *c
	c3.Pools = []Pool{{Prefix: prefix("10.65.0.0/16"), Encapsulation: IPIP, Segment: 100}}
	x.configure(&c3, gateway)
	want("by another pool", "prefix 10.65.2.0/26 vrf v via vni 100 vtep 10.0.0.4:0 distance 30")
	x.forget(addr("10.0.0.8"))
	want("no peer")
	check.Equal(t, "paths", x.n, 0)
}

// What is beyond the limit is left out and counted, and is asked for when there is room.
func TestLimit(t *testing.T) {
	c := settings()
	c.MaxRoutes = 8
	x := newTable(c)
	p := func(i int) string { return fmt.Sprintf("10.65.2.%d/32", i) }
	for i := range 10 {
		x.learned(pathTo(p(i), "10.0.0.9", 0, "10.0.0.2"))
	}
	x.learned(pathTo(p(0), "10.0.0.9", 0, "10.0.0.3")) // replaces one
	check.Equal(t, "left out", x.peers[addr("10.0.0.9")][TooMany], 2)
	check.Equal(t, "kept", x.n, 8)
	check.Equal(t, "room", x.hungry(), false)
	x.withdrawn(pathTo(p(9), "10.0.0.9", 0, "10.0.0.2")) // is not there
	check.Equal(t, "room for what is not there", x.hungry(), false)
	x.withdrawn(pathTo(p(0), "10.0.0.9", 0, "10.0.0.2"))
	check.Equal(t, "room again", x.hungry(), true)
	check.Equal(t, "said once", x.hungry(), false)
}

// The rows of a Distance, next hops of both families and mapped addresses are clean.
func TestMapped(t *testing.T) {
	x := newTable(settings())
	x.configure(settings(), gateway)
	e := pathTo("10.65.2.0/26", "10.0.0.9", 0, "10.0.0.2")
	e.NextHop = netip.AddrFrom16(e.NextHop.As16())
	e.Prefix = netip.PrefixFrom(addr("10.65.2.1"), 26)
	x.learned(e)
	rows := x.rows(prefix("10.65.2.0/26"))
	want := control.Prefix{VRF: "v", Prefix: prefix("10.65.2.0/26"), Via: control.Via{VNI: 200, IP: addr("10.0.0.2")}, Distance: 20}
	if len(rows) != 1 || rows[0] != want {
		t.Errorf("%v, want %v", rows, want)
	}
}
