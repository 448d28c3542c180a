package evpn

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/fake"
	"github.com/vxswitch/vxswitch/node"
)

// A host that never moves, of ours and of FRR: the other has it as one, and believes nobody else.
func TestSticky(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.bridged.Until("ping", func() bool { return pings(l.bridged, "172.16.0.2") })
	ours, theirs := frame.MAC{2, 0, 0, 0, 7, 1}, frame.MAC{2, 0, 0, 0, 7, 2}
	says := func(mac frame.MAC) []byte {
		return fake.GratuitousARP(mac, netip.MustParseAddr("172.16.0.70"))
	}
	seg := check.Must(l.us.node.Segment(100, nil))(t)
	check.OK(t, seg.Update(func(s *node.Segment) error {
		s.FDB = append(s.FDB, node.FDB{MAC: ours, Port: s.Members[0].Port})
		return nil
	}))
	sticky := func(mac frame.MAC) bool {
		_, after, ok := strings.Cut(l.frr.Do("show bgp l2vpn evpn route type 2"), "["+mac.String()+"]\n")
		return ok && strings.Contains(after[:min(250, len(after))], "sticky MAC")
	}
	l.us.host.Until("ours in FRR", func() bool { return sticky(ours) && l.kernel("vx100", ours.String(), oursAddr) })
	l.leaf.Run("bridge", "fdb", "replace", theirs.String(), "dev", "eth1", "master", "static", "sticky")
	l.us.host.Until("FRR's here", func() bool { return sticky(theirs) && l.us.at(theirs) == theirsAddr+":4789" })

	for range 3 {
		l.theirs.Inject("eth0", says(ours))
		l.bridged.Inject("tap1", says(theirs))
		time.Sleep(100 * time.Millisecond)
	}
	if at := l.us.at(theirs); at != theirsAddr+":4789" || !sticky(theirs) {
		t.Errorf("FRR's host has moved to %q", at)
	}
	if x := l.mac(ours); !l.kernel("vx100", ours.String(), oursAddr) || !sticky(ours) || x.Local != 0 || x.Remote != 0 {
		t.Errorf("our host has moved: %+v", x)
	}
	check.OK(t, seg.Update(func(s *node.Segment) error { s.FDB = nil; return nil }))
	l.us.host.Until("ours to go", func() bool { return !l.has("[2]:[0]:[48]:["+ours.String()+"]") || !sticky(ours) })
}

// What changes in the configuration changes for FRR too, and the session stays.
func TestChanges(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.all("to begin with")
	since := l.us.speaker.Status().Peers[0].Since
	update := func(edit func(c *node.Config)) {
		t.Helper()
		check.OK(t, l.us.node.Update(func(c *node.Config) error { edit(c); return nil }))
	}
	segment := func(c *node.Config, vni frame.VNI) *node.Segment {
		return &c.Segments[slices.IndexFunc(c.Segments, func(s node.Segment) bool { return s.VNI == vni })]
	}
	const prefix, hostRoute = "[5]:[0]:[24]:[172.18.1.0]", "[2]:[0]:[48]:[02:00:00:00:01:02]:[32]:[172.18.1.2]"
	was := l.us.node.Config()
	for _, c := range []struct {
		name  string
		edit  func(c *node.Config)
		after func() bool
	}{
		{"no segment 100", func(c *node.Config) {
			c.Segments = slices.DeleteFunc(c.Segments, func(s node.Segment) bool { return s.VNI == 100 })
		}, func() bool {
			return !l.kernel("vx100", "00:00:00:00:00:00", oursAddr) && !l.kernel("vx100", "02:00:00:00:01:01", oursAddr) && l.us.floods(100) == 0
		}},
		{"no gateway", func(c *node.Config) { segment(c, 200).Gateway = nil }, func() bool { return !l.has(prefix) }},
		{"no L3VNI", func(c *node.Config) {
			c.Segments = slices.DeleteFunc(c.Segments, func(s node.Segment) bool { return s.VNI == 500 })
		}, func() bool { return !l.has(prefix) && l.has(hostRoute) && l.us.routes("172.16.0.0/24") == 0 }},
		{"a static route", func(c *node.Config) {
			c.VRFs[0].Routes = []node.Route{{Prefix: netip.MustParsePrefix("198.18.0.0/16"), Via: []node.Hop{{Segment: 200, IP: netip.MustParseAddr("172.18.1.2")}}}}
		}, func() bool { return l.has("[5]:[0]:[16]:[198.18.0.0]") }},
	} {
		l.us.host.Do(func() { update(c.edit) })
		l.us.host.Until(c.name, c.after)
		l.us.host.Do(func() { update(func(x *node.Config) { *x = *was }) })
		l.all("after " + c.name)
	}
	l.us.host.Until("no static route", func() bool { return !l.has("[5]:[0]:[16]:[198.18.0.0]") })
	// FRR 8 loses the MAC of a router whose VTEP gets another address: what is bridged goes on.
	l.us.host.Addr("eth0", "192.0.2.11/24")
	l.us.host.Do(func() { update(func(c *node.Config) { c.Tunnels[0].Local = netip.MustParseAddr("192.0.2.11") }) })
	l.us.host.Until("another VTEP", func() bool {
		return l.kernel("vx100", "00:00:00:00:00:00", "192.0.2.11") && !l.kernel("vx100", "00:00:00:00:00:00", oursAddr) &&
			l.kernel("vx100", "02:00:00:00:01:01", "192.0.2.11")
	})
	_, after, _ := strings.Cut(l.frr.Do("show bgp l2vpn evpn"), prefix+"\n")
	if hop, _, _ := strings.Cut(strings.TrimSpace(after), " "); hop != "192.0.2.11" {
		t.Errorf("next hop %q", hop)
	}
	l.bridged.Until("another VTEP: bridged", func() bool { return pings(l.bridged, "172.16.0.2") })
	if p := l.us.speaker.Status().Peers[0]; p.Since != since {
		t.Errorf("the session was lost: %+v", p)
	}
}
