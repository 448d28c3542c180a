package netns

import (
	"slices"
	"testing"

	"github.com/vxswitch/vxswitch/internal/lab/check"
)

func TestSwitchFloodsAndLearns(t *testing.T) {
	t.Parallel()
	n := New(t)
	a, b, sw := n.Host("a"), n.Host("b"), n.Switch("sw")
	_, ap := n.Plug(a, "10.0.0.1/24", sw)
	n.Plug(b, "10.0.0.2/24", sw)
	a.Ping("10.0.0.2", 1)
	mac := a.MAC("eth0")
	if es := sw.FDB(ap); !slices.ContainsFunc(es, func(e FDBEntry) bool { return e.MAC == mac && e.State == "" }) {
		t.Errorf("no learned %s in %+v", mac, es)
	}
	if ns := a.Neighbours("eth0"); len(ns) != 1 || ns[0].Addr.String() != "10.0.0.2" || ns[0].MAC != b.MAC("eth0") || !slices.Contains(ns[0].State, "REACHABLE") {
		t.Errorf("neighbours %+v", ns)
	}
}

func TestRouterForwardsBothFamilies(t *testing.T) {
	t.Parallel()
	n := New(t)
	a, r, b := n.Host("a"), n.Router("r"), n.Host("b")
	n.Link(a, "10.0.1.2/24,fd01::2/64", r, "10.0.1.1/24,fd01::1/64")
	n.Link(r, "10.0.2.1/24,fd02::1/64", b, "10.0.2.2/24,fd02::2/64")
	for _, gw := range []string{"10.0.1.1", "fd01::1"} {
		a.Route("default", "via", gw)
	}
	for _, gw := range []string{"10.0.2.1", "fd02::1"} {
		b.Route("default", "via", gw)
	}
	for _, h := range []*Host{a, r, b} {
		h.Ready()
	}
	a.Ping("10.0.2.2", 1)
	a.Ping("fd02::2", 1)
}

func TestVXLANPeersAndFixedAddresses(t *testing.T) {
	t.Parallel()
	n := New(t)
	a, b := n.Host("a"), n.Host("b")
	n.Link(a, "10.0.0.1/24", b, "10.0.0.2/24")
	a.SetMAC("eth0", "02:00:00:00:00:0a")
	b.Neighbour("eth0", "10.0.0.1", "02:00:00:00:00:0a")
	if ns := b.Neighbours("eth0"); len(ns) != 1 || ns[0].MAC != "02:00:00:00:00:0a" || !slices.Contains(ns[0].State, "PERMANENT") {
		t.Errorf("neighbours %+v", ns)
	}
	a.VXLAN("vx0", VXLAN{ID: 100, Local: "10.0.0.1", Flood: []string{"10.0.0.2", "10.0.0.3"}})
	check.Slice(t, "flood list", a.Peers("vx0", "00:00:00:00:00:00"), []string{"10.0.0.2", "10.0.0.3"})
}

func TestNstatCounts(t *testing.T) {
	t.Parallel()
	n := New(t)
	a, b := n.Host("a"), n.Host("b")
	n.Link(a, "10.0.0.1/24", b, "10.0.0.2/24")
	before := b.Nstat()
	a.Ping("10.0.0.2", 2)
	after := b.Nstat()
	check.Equal(t, "IcmpInEchos rose by", after["IcmpInEchos"]-before["IcmpInEchos"], 2)
	if _, ok := after["UdpInCsumErrors"]; !ok {
		t.Error("no UdpInCsumErrors")
	}
}

func TestIPerfMeasures(t *testing.T) {
	t.Parallel()
	n := New(t)
	a, b := n.Host("a"), n.Host("b")
	n.Link(a, "10.0.0.1/24", b, "10.0.0.2/24")
	// Slowly: what the server has not read when the client ends is not counted.
	slow := []string{"-n", "1M", "-b", "20M", "-l", "50K"}
	for _, args := range [][]string{slow, append(slow, "-R")} {
		if r := a.IPerf(b, "10.0.0.2", args...); r.Bytes < 1<<16 || r.BitsPerSecond <= 0 || r.Packets != 0 {
			t.Errorf("TCP %v: %+v", args, r)
		}
	}
	if r := a.IPerf(b, "10.0.0.2", "-u", "-b", "200K", "-l", "1000", "-k", "20"); r.Packets < 10 || r.Lost != 0 || r.Bytes < 1000 {
		t.Errorf("UDP: %+v", r)
	}
}
