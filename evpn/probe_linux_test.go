package evpn

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/evpn/internal/bgp"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/frr"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// With BFD a path that carries nothing any more is found long before the hold time, and the session comes back with the path.
func TestBFD(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.bridged.Until("ping", func() bool { return pings(l.bridged, "172.16.0.2") })
	l.frr.Start(t, frr.Daemon{Name: "bfdd"})
	l.frr.Do("configure terminal", "router bgp 65000", "neighbor "+oursAddr+" bfd 5 300 300", "neighbor "+oursAddr+" timers 30 90")

	c := l.us.speaker.cfg
	c.Peers = slices.Clone(c.Peers)
	p := &c.Peers[0]
	p.BFD, p.Local, p.Hold = &BFD{Multiplier: 5}, netip.MustParseAddr(oursAddr), 90*time.Second
	check.OK(t, l.us.speaker.Configure(&c))
	peer := func() PeerStatus { return l.us.speaker.Status().Peers[0] }
	up := func() {
		t.Helper()
		l.us.host.Until("BFD and the session", func() bool {
			s := peer()
			return s.BFD == "alive" && s.State == "established" && s.Hold == 90*time.Second && l.us.floods(100) == 1 &&
				strings.Contains(l.frr.Do("show bfd peers json"), `"status":"up"`)
		})
	}
	up()
	since := peer().Since
	time.Sleep(time.Second)
	if s := peer(); s.Since != since || s.BFD != "alive" {
		t.Errorf("%+v, since %v before", s, since)
	}

	begun := time.Now()
	l.leaf.Run("nft", "table inet t { chain c { type filter hook input priority 0; iifname eth0 drop; }; chain d { type filter hook output priority 0; oifname eth0 drop; }; }")
	l.us.host.Until("the path to be dead", func() bool { return l.us.floods(100) == 0 })
	if took := time.Since(begun); took > 20*time.Second {
		t.Errorf("it took %v, and five packets are 1.5 s", took)
	}
	l.us.host.Until("the session's end", func() bool { return peer().State != "established" })
	s := peer()
	if n, ok := errors.AsType[*bgp.Notification](s.Err); !ok || n.Code != 6 || n.Subcode != 10 || s.BFD != "dead" {
		t.Errorf("%+v", s)
	}
	l.leaf.Run("nft", "delete table inet t")
	up()
	l.bridged.Until("ping again", func() bool { return pings(l.bridged, "172.16.0.2") })
}

// BFD that is taken away, and comes again with other settings, ends no session.
func TestBFDChanges(t *testing.T) {
	t.Parallel()
	n := netns.New(t)
	hosts := [2]*netns.Host{n.Host("a"), n.Host("b")}
	n.Link(hosts[0], "192.0.2.1/24", hosts[1], "192.0.2.2/24")
	var sites [2]*site
	for i, h := range hosts {
		h.Ready()
		p := peering(fmt.Sprintf("192.0.2.%d", 2-i), 65000)
		p.Local, p.BFD = netip.AddrFrom4([4]byte{192, 0, 2, byte(i + 1)}), &BFD{Multihop: true, Multiplier: 10}
		sites[i] = newSite(t, h, p.Local.String(), Config{Peers: []Peer{p}})
	}
	are := func(a, b string) {
		t.Helper()
		hosts[0].Until("BFD "+a+" and "+b, func() bool {
			x, y := sites[0].speaker.Status().Peers[0], sites[1].speaker.Status().Peers[0]
			return x.BFD == a && y.BFD == b && x.State == "established" && y.State == "established"
		})
	}
	are("alive", "alive")
	since := sites[0].speaker.Status().Peers[0].Since
	with := func(b *BFD) {
		t.Helper()
		c := sites[0].speaker.cfg
		c.Peers = slices.Clone(c.Peers)
		c.Peers[0].BFD = b
		check.OK(t, sites[0].speaker.Configure(&c))
	}
	with(nil)
	are("", "unknown")
	with(&BFD{Multihop: true, Interval: 200 * time.Millisecond, Multiplier: 10})
	are("alive", "alive")
	with(&BFD{Multihop: true, Interval: 400 * time.Millisecond, Multiplier: 5})
	are("alive", "alive")
	if s := sites[0].speaker.Status().Peers[0]; s.Since != since {
		t.Errorf("%+v, since %v before", s, since)
	}
}

func TestBFDSettings(t *testing.T) {
	good := Config{AS: 1, RouterID: netip.MustParseAddr("192.0.2.1"), Peers: []Peer{{Addr: netip.MustParseAddr("192.0.2.2"), AS: 1, Local: netip.MustParseAddr("192.0.2.1"), BFD: &BFD{}}}}
	check.OK(t, good.Check())
	for want, edit := range map[string]func(*Peer){
		"evpn: Config.Peers[0].Local: an address of the node is required with bfd": func(p *Peer) { p.Local = netip.Addr{} },
		"evpn: Config.Peers[0].BFD.Interval: 1ms: must be ":                        func(p *Peer) { p.BFD.Interval = time.Millisecond },
		"evpn: Config.Peers[0].BFD.Multiplier: 256: must be ":                      func(p *Peer) { p.BFD.Multiplier = 256 },
	} {
		c := good
		c.Peers = slices.Clone(c.Peers)
		c.Peers[0].BFD = &BFD{}
		edit(&c.Peers[0])
		if err := c.Check(); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
