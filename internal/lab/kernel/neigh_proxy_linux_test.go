package kernel

import (
	"bytes"
	"net/netip"
	"slices"
	"testing"

	"github.com/vxswitch/vxswitch/arp"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/node"
)

// proxyMAC is that of the segment's gateway, the same at every site.
var proxyMAC = frame.MAC{2, 0, 0, 0, 0xfe, 0xfe}

// newProxyLab makes two sites of ours with one anycast gateway.
func newProxyLab(t *testing.T, v6 bool) (l *neighLab, a, b *neighSite, gateway netip.Addr) {
	t.Helper()
	l = newNeighLab(t, v6, "uu")
	prefix := netip.MustParsePrefix("192.168.7.254/24")
	if v6 {
		prefix = netip.MustParsePrefix("fd07::fe/64")
	}
	for _, s := range l.sites {
		s.must(s.ourNode.Update(func(c *node.Config) error { c.VRFs = []node.VRF{{Name: "red"}}; return nil }))
		s.configure(func(c *node.Segment) {
			c.Neighbours.Mode = arp.Proxy
			s.hides = true
			c.Gateway = &node.SegmentGateway{VRF: "red", Gateway: node.Gateway{
				Addresses: []netip.Prefix{prefix}, MAC: proxyMAC, VTEPMAC: s.own(), Anycast: true,
			}}
		})
	}
	return l, l.sites[0], l.sites[1], prefix.Addr()
}

// exposes has the MACs of hosts leave the site.
func (s *neighSite) exposes() {
	s.l.t.Helper()
	s.configure(func(c *node.Segment) { c.Neighbours.ExposeMACs = true })
	s.hides = false
}

// Announcements, multicast, DHCP and what has no known destination stay at the site of a host, unless it exposes MACs.
func TestNeighProxyHides(t *testing.T) {
	neighFamilies(t, func(t *testing.T, v6 bool) {
		l, a, b, _ := newProxyLab(t, v6)
		h1, h2 := a.guest("h1", 1), a.guest("h2", 2)
		b.guest("h3", 3)
		mac, _ := frame.ParseMAC(h1.mac)
		for _, exposed := range []bool{false, true} {
			if exposed {
				a.exposes()
			}
			x := l.begin()
			for _, to := range []string{"ff:ff:ff:ff:ff:ff", "01:00:5e:00:00:fb", "33:33:00:00:00:16", "02:00:00:00:99:99"} {
				h1.Inject(h1.dev, append(ethernet(to, h1.mac, 0x88b6), "for everybody"...))
			}
			h1.announce(1, h1.mac)
			l.settle()
			n := 0
			for _, p := range a.wire.Seen()[x.since[a.wire]:] {
				if p.Out && bytes.Contains(p.Data, mac[:]) {
					n++
				}
			}
			check.True(t, (n >= 5) == exposed && (n > 0) == exposed, "exposed %v: the MAC is in %d datagrams", exposed, n)
			local := 0
			for _, p := range h2.link.Seen()[x.since[h2.link]:] {
				if !p.Out && bytes.Equal(p.Data[6:12], mac[:]) {
					local++
				}
			}
			check.True(t, local >= 5, "exposed %v: the host beside it has heard %d", exposed, local)
		}
	})
}

// The walk that arp/proxy.go draws, on every link it passes: no MAC of a host is on the
// underlay, nor in the tables of the other site.
func TestNeighProxyWalk(t *testing.T) {
	neighFamilies(t, func(t *testing.T, v6 bool) {
		l, a, b, _ := newProxyLab(t, v6)
		h1, h2, h3 := a.guest("h1", 1), a.guest("h2", 2), b.guest("h3", 3)
		ownA, ownB, gw := a.own().String(), b.own().String(), proxyMAC.String()
		everybody := "ff:ff:ff:ff:ff:ff"
		if v6 {
			everybody = "33:33:ff:00:00:03" // the solicited-node group of host 3
		}
		x := l.begin()
		h1.told(h3.ip, gw)
		l.settle()
		who := func(src string) saying {
			return saying{"who-has", src, everybody, h1.speaks.String(), src, h3.ip.String()}
		}
		at := func(src, dst string) saying {
			return saying{"is-at", src, dst, h3.ip.String(), src, h1.speaks.String()}
		}
		for _, step := range []struct {
			name string
			got  []saying
			want []saying
		}{
			{"host 1 asks", x.sent(h1), []saying{who(h1.mac)}},
			{"host 2, beside it, is asked by A", x.heard(h2), []saying{who(ownA)}},
			{"A asks B with its own MAC", said(a.wire, x.since[a.wire], true), []saying{who(ownA)}},
			{"B hears that", said(b.wire, x.since[b.wire], false), []saying{who(ownA)}},
			{"B asks host 3 with the gateway's MAC", x.heard(h3), []saying{who(gw)}},
			{"host 3 answers the gateway", x.sent(h3), []saying{at(h3.mac, gw)}},
			{"B answers A with its own MAC", said(b.wire, x.since[b.wire], true), []saying{at(ownB, ownA)}},
			{"A hears that", said(a.wire, x.since[a.wire], false), []saying{at(ownB, ownA)}},
			{"A answers host 1 with the gateway's MAC", x.heard(h1), []saying{at(gw, h1.mac)}},
		} {
			check.True(t, slices.Equal(step.got, step.want), "%s:\n got %+v,\nwant %+v", step.name, step.got, step.want)
		}
		// What is stored: at each site its own host at its MAC, the other at the other VTEP's.
		a.wantEntry("after the walk", h1.speaks, h1.mac, "h1")
		a.wantEntry("after the walk", h3.ip, ownB, b.name)
		b.wantEntry("after the walk", h1.speaks, ownA, a.name)
		b.wantEntry("after the walk", h3.ip, h3.mac, "h3")
		for _, s := range []*neighSite{a, b} {
			for _, g := range []*guest{h1, h2, h3} {
				mac, _ := frame.ParseMAC(g.mac)
				if d, ok := s.vsi.FDB().Lookup(mac); ok && s.Switch().Name(d) != g.dev {
					t.Errorf("site %s has the MAC of %s at %s", s.host.Name, g.Name, s.Switch().Name(d))
				}
			}
			d, ok := s.vsi.FDB().Lookup(proxyMAC)
			check.True(t, ok && d == 0, "site %s has the gateway's MAC at %s", s.host.Name, s.Switch().Name(d))
		}
		e := h3.knows(h1.speaks)
		check.True(t, e.MAC == gw, "host 3 has host 1 at %+v, want the gateway's MAC", e)
		// From now on A answers for host 3, and B for host 1.
		for _, again := range []struct {
			from *guest
			to   netip.Addr
			site *neighSite
		}{{h2, h3.ip, a}, {h1, h3.ip, a}, {h3, h1.speaks, b}} {
			before, x := again.site.counts(), l.begin()
			again.from.told(again.to, gw)
			x.wantTunnelled(again.from.Name+" asks", 0)
			again.site.wantOutcome(again.from.Name+" asks", before, arp.Answered, 1)
			// Still there? The gateway's MAC is asked alone, and answers from its table.
			before, x = again.site.counts(), l.begin()
			again.from.check(again.to, gw)
			x.wantTunnelled(again.from.Name+" checks", 0)
			again.site.wantOutcome(again.from.Name+" checks", before, arp.Answered, 1)
		}
	})
}

// A host that asks for its neighbour at the same site, of whom nothing is known yet, is told
// the gateway's MAC as well, and can keep to that; the next time its neighbour answers.
func TestNeighProxyLocal(t *testing.T) {
	neighFamilies(t, func(t *testing.T, v6 bool) {
		l, a, b, _ := newProxyLab(t, v6)
		h1, h2 := a.guest("h1", 1), a.guest("h2", 2)
		b.guest("h3", 3)
		h1.neighbourSysctl("retrans_time_ms", "300")
		gw := proxyMAC.String()
		h1.told(h2.ip, gw)
		a.wantEntry("asked for", h2.ip, h2.mac, "h2")
		x := l.begin()
		h1.check(h2.ip, gw)
		x.wantTunnelled("checked", 0)
		h1.told(h2.ip, h2.mac)
		x.wantTunnelled("asked again", 0)
	})
}

// Each site has the gateway's addresses itself: no question for them is in a tunnel, from
// whatever side, and nobody may take one.
func TestNeighProxyGateway(t *testing.T) {
	neighFamilies(t, func(t *testing.T, v6 bool) {
		l, a, b, gateway := newProxyLab(t, v6)
		h1, h3 := a.guest("h1", 1), b.guest("h3", 3)
		h1.neighbourSysctl("retrans_time_ms", "300")
		for _, at := range []struct {
			g *guest
			s *neighSite
		}{{h1, a}, {h3, b}} {
			before, x := at.s.counts(), l.begin()
			at.g.told(gateway, proxyMAC.String())
			// Still there? Asked alone, it answers too.
			at.g.check(gateway, proxyMAC.String())
			check.True(t, at.g.isTaken(gateway), "%s: the gateway's address is free", at.g.Name)
			x.wantTunnelled(at.g.Name, 0)
			at.s.wantOutcome(at.g.Name, before, arp.AnsweredGateway, 3)
		}
		// One that comes through a tunnel all the same, from a site without this gateway, is
		// not answered.
		a.exposes()
		check.OK(t, a.r.SetGateway(&arp.Gateway{MAC: proxyMAC}))
		before := b.counts()
		check.True(t, !h1.isTaken(gateway), "the gateway of the other site has answered")
		l.settle()
		check.True(t, b.counts()[arp.RemoteAnycast] != before[arp.RemoteAnycast],
			"no question for the gateway has come through the tunnel")
		b.wantOutcome("asked through a tunnel", before, arp.AnsweredGateway, 0)
	})
}
