package evpn

import (
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/internal/lab/frr"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// targetLab is a leaf of FRR in AS 65003 with L3VNI 500, and a site of ours with hosts.
func targetLab(t *testing.T, c Config, lines ...string) (s *site, f *frr.FRR, theirs, bridged, routed *netns.Host) {
	n := netns.New(t)
	us, b := n.Host("us"), n.Router("frr")
	theirs = n.Host("theirs")
	n.Link(us, oursAddr+"/24", b, theirsAddr+"/24")
	kernelLeaf(n, b, theirsAddr, theirs, "100", "500")
	b.IP("addr", "add", "172.16.0.1/24", "dev", "br100")
	theirs.IP("route", "add", "default", "via", "172.16.0.1")
	us.Ready()
	f = frr.Start(t, b, frr.Daemon{Name: "zebra", Config: "vni 500\n"}, leafConfig(65003, theirsAddr, oursAddr, 65000, lines...))
	c.Peers = []Peer{peering(theirsAddr, 65003)}
	s = newSite(t, us, oursAddr, c)
	bridged, routed = s.hosts(n)
	return s, f, theirs, bridged, routed
}

// FRR derives route targets as RFC 8365 says, with a mark beside the VNI. Ours imports them by the VNI, and says the same, each with its
// own AS.
func TestTargetsRFC8365(t *testing.T) {
	t.Parallel()
	s, f, theirs, bridged, routed := targetLab(t, Config{RFC8365Targets: true}, "  autort rfc8365-compatible")
	bridged.Until("bridged", func() bool { return pings(bridged, "172.16.0.2") })
	routed.Until("routed", func() bool { return pings(routed, "172.16.0.2") && pings(theirs, "172.18.1.2") })
	shows(t, f, "RT:65003:268435556", "RT:65003:268435956", "RT:65000:268435556", "RT:65000:268435956")
	s.healthy("as-loop")
}

// Explicit route targets count whole: with others nothing passes, whatever their VNI. FRR's are changed to those that we want.
func TestTargetsExplicit(t *testing.T) {
	t.Parallel()
	s, f, theirs, bridged, routed := targetLab(t, Config{
		Segments: []Segment{{VNI: 100, RD: "192.0.2.1:7", Import: []string{"65003:888", "192.0.2.2:5"}, Export: []string{"65000:777"}}},
		VRFs:     []VRF{{Name: "red", RD: "65000:9", Import: []string{"65003:5888"}, Export: []string{"192.0.2.1:5777"}}},
	})
	imported := func() (all int) { return s.floods(100) + s.routes("172.16.0.0/24") + s.routes("172.16.0.2/32") }
	s.host.Until("FRR's routes", func() bool { return s.speaker.Status().LeftOut["target"] >= 4 })
	if bridged.Ready(); imported() > 0 || pings(bridged, "172.16.0.2") {
		t.Error("routes with the wrong targets are imported")
	}
	for _, c := range [][]string{
		{"vni 100", "route-target import 65000:777", "route-target export 192.0.2.2:5"},
		{"route-target import 192.0.2.1:5777", "route-target export 65003:5888"},
	} {
		f.Do(append([]string{"configure terminal", "router bgp 65003", "address-family l2vpn evpn"}, c...)...)
	}
	bridged.Until("bridged", func() bool { return pings(bridged, "172.16.0.2") })
	routed.Until("routed", func() bool { return pings(routed, "172.16.0.2") && pings(theirs, "172.18.1.2") })
	shows(t, f, "Route Distinguisher: 192.0.2.1:7\n", "Route Distinguisher: 65000:9\n",
		"RT:65000:777 ET:8", "RT:192.0.2.1:5777 ET:8", "ET:8 RT:192.0.2.2:5 RT:65003:5888")
	s.healthy("as-loop")
}

// shows waits until FRR's routes are shown with texts.
func shows(t *testing.T, f *frr.FRR, texts ...string) {
	t.Helper()
	for _, x := range texts {
		f.Host.Until("FRR to show "+x, func() bool { return strings.Contains(f.Do("show bgp l2vpn evpn"), x) })
	}
}
