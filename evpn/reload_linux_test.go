package evpn

import (
	"context"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/node"
)

// Under traffic settings change, peers and segments come and go: the session stays, and no packet is lost.
func TestReload(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.bridged.Until("bridged", func() bool { return pings(l.bridged, "172.16.0.2") })
	l.routed.Until("routed", func() bool { return pings(l.routed, "172.16.0.2") })
	session := func() PeerStatus { return l.us.speaker.Status().Peers[0] }
	since := session().Since

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	lost := make(chan string, 2)
	go func() {
		out, err := l.bridged.Try(ctx, "ping", "-n", "-i", "0.01", "-c", "400", "-W", "1", "172.16.0.2")
		lost <- out + errText(err)
	}()
	go func() {
		out, err := l.routed.Try(ctx, "ping", "-n", "-i", "0.01", "-c", "400", "-W", "1", "172.16.0.2")
		lost <- out + errText(err)
	}()
	c := l.us.speaker.cfg
	for i := range 10 {
		time.Sleep(300 * time.Millisecond)
		next := c
		if i%2 == 0 {
			next.Peers = append(slices.Clone(c.Peers), Peer{Addr: netip.MustParseAddr("192.0.2.77"), AS: 65001, Passive: true})
			next.Segments = []Segment{{VNI: 200, Export: []string{"65000:200", "65000:999"}}}
			next.VRFs = []VRF{{Name: "red", Accept: []netip.Prefix{netip.MustParsePrefix("172.16.0.0/12")}}}
			check.Must(l.us.node.Segment(300, &node.Segment{Tunnels: []node.SegmentTunnel{{Tunnel: "vx"}}}))(t)
		} else {
			check.OK(t, l.us.node.Update(func(c *node.Config) error {
				c.Segments = slices.DeleteFunc(c.Segments, func(s node.Segment) bool { return s.VNI == 300 })
				return nil
			}))
		}
		check.OK(t, l.us.speaker.Configure(&next))
		want := []string{"65000:200"}
		if i%2 == 0 {
			want = append(want, "65000:999")
		}
		l.us.host.Until("our routes", func() bool {
			return l.us.targets(3, 200, want) && l.us.targets(3, 300, nil) == (i%2 == 1)
		})
		if n := len(l.us.speaker.Status().Peers); n != len(next.Peers) {
			t.Errorf("%d peers, want %d", n, len(next.Peers))
		}
	}
	for range 2 {
		if out := <-lost; !strings.Contains(out, " 0% packet loss") {
			t.Error(out)
		}
	}
	if s := session(); s.Since != since || s.State != "established" {
		t.Errorf("%+v, since %v before", s, since)
	}
	other := c
	other.AS = 65009
	if err := l.us.speaker.Configure(&other); err == nil || err.Error() != "evpn: Config.AS: cannot change while the Speaker runs" || !c.Restarts(&other) {
		t.Error(err)
	}
}

func errText(err error) string {
	if err != nil {
		return err.Error()
	}
	return ""
}

// targets reports whether we say a route of a type for a segment with these route targets; nil: whether we say none.
func (s *site) targets(kind uint8, vni uint32, want []string) bool {
	for r := range s.speaker.Routes() {
		if !r.Peer.IsValid() && r.Type == kind && uint32(r.VNI) == vni {
			return slices.Equal(r.Targets, want)
		}
	}
	return want == nil
}
