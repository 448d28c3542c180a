package kernel

import (
	"errors"
	"fmt"
	"net/netip"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/arp"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// The first question for a host behind a tunnel is flooded to all sites; the next is
// answered at home with the host's own MAC, and no datagram leaves.
func TestNeighSuppress(t *testing.T) {
	neighFamilies(t, func(t *testing.T, v6 bool) {
		l := newNeighLab(t, v6, "uuk")
		a, b, k := l.sites[0], l.sites[1], l.sites[2]
		h1, h2, h3, hk := a.guest("h1", 1), a.guest("h2", 2), b.guest("h3", 3), k.guest("hk", 4)
		for _, far := range []struct {
			g    *guest
			site *neighSite
		}{{h3, b}, {hk, k}} {
			what := "for " + far.g.Name
			before := a.counts()
			x := l.begin()
			h1.told(far.g.ip, far.g.mac)
			x.wantTunnelled(what+", first", 3) // to two sites, and the answer
			a.wantOutcome(what, before, arp.UnknownIP, 1)
			a.wantOutcome(what, before, arp.Answered, 0)
			a.wantEntry(what, h1.speaks, h1.mac, "h1")
			a.wantEntry(what, far.g.ip, far.g.mac, far.site.name)
			b.wantEntry(what, h1.speaks, h1.mac, a.name)

			for i, asker := range []*guest{h2, h1} {
				x := l.begin()
				asker.told(far.g.ip, far.g.mac)
				x.wantTunnelled(what+", again", 0)
				got := append(x.heard(h3), x.heard(hk)...)
				check.True(t, len(got) == 0, "%s: the hosts behind tunnels have heard %+v", what, got)
				// As if the host itself had said it: the frame is from its MAC too.
				want := saying{"is-at", far.g.mac, asker.mac, far.g.ip.String(), far.g.mac, asker.speaks.String()}
				got = x.heard(asker)
				check.True(t, len(got) == 1 && got[0] == want, "%s: %s hears %+v, want %+v", what, asker.Name, got, want)
				a.wantOutcome(what, before, arp.Answered, uint64(i+1))
			}
			h2.Ping(far.g.ip.String(), 1) // where the answer leads
		}
		// The other way: b has only heard the question.
		x := l.begin()
		h3.told(h1.speaks, h1.mac)
		x.wantTunnelled("back", 0)
		// One that is on the same switch answers for itself, and no tunnel hears of it.
		x = l.begin()
		before := a.counts()
		h2.told(h1.speaks, h1.mac)
		x.wantTunnelled("local", 0)
		a.wantOutcome("local", before, arp.Local, 1)
		n := len(questions(x.heard(h1), h1.speaks))
		check.True(t, n == 1, "h1 has been asked %d times, want once", n)
	})
}

// A host that moves to another site, or changes its MAC, announces that: all tables and
// FDBs follow, the kernel's too, and who asks afterwards is answered at home, and right.
func TestNeighMoves(t *testing.T) {
	neighFamilies(t, func(t *testing.T, v6 bool) {
		l := newNeighLab(t, v6, "uuk")
		a, b, k := l.sites[0], l.sites[1], l.sites[2]
		p, q, hk := a.guest("p", 1), b.guest("q", 2), k.guest("hk", 3)
		// One host with a device to each site: the MAC and the address are where it is.
		left := a.bare("left", 9)
		right := &guest{Host: left.Host, number: 9}
		right.away = true
		b.plug(right, "right")
		left.IP("link", "set", "left", "down")
		right.IP("link", "set", "right", "down")
		left.away = true

		at, other := left, right
		mac := left.mac
		for i, move := range []string{"comes", "moves to the other site", "moves back", "changes its MAC"} {
			switch i {
			case 1, 2:
				at, other = other, at
				fallthrough
			case 0:
				other.IP("addr", "flush", "dev", other.dev)
				other.IP("link", "set", other.dev, "down")
				other.away, at.away = true, false
				at.Up(at.dev)
				at.address()
			case 3:
				mac = "02:00:00:00:07:99"
			}
			x := l.begin()
			at.announce(i, mac)
			at.Until(at.dev+" announces itself", func() bool {
				return slices.ContainsFunc(x.sent(at), func(s saying) bool {
					return s.src == mac && s.sender == at.ip.String() && s.senderMAC == mac
				})
			})
			here, away := a, b
			if at == right {
				here, away = b, a
			}
			said := x.tunnelled()
			n := len(said)
			check.True(t, n >= 2, "%s: %d datagrams, want one to each site: %+v", move, n, said)
			here.wantEntry(move, at.ip, mac, at.dev)
			away.wantEntry(move, at.ip, mac, here.name)
			e := k.host.FDB("vx0")
			check.True(t, slices.ContainsFunc(e, func(e netns.FDBEntry) bool { return e.MAC == mac && e.Master == "br0" }),
				"%s: the kernel's bridge does not have %s behind the tunnel: %+v", move, mac, e)
			got := k.host.Peers("vx0", mac)
			check.True(t, len(got) == 1 && netip.MustParseAddr(got[0]) == netip.MustParseAddrPort(here.name).Addr(),
				"%s: the kernel's VTEP has %s at %v, want %s", move, mac, got, here.name)
			// Who asks afterwards is told where it is now: at the other site by the switch, at
			// its own by the host itself.
			before := away.counts()
			for _, asker := range []*guest{p, q} {
				x := l.begin()
				asker.told(at.ip, mac)
				x.wantTunnelled(move+", asked by "+asker.Name, 0)
			}
			away.wantOutcome(move, before, arp.Answered, 1)
			hk.told(at.ip, mac)
			for _, asker := range []*guest{p, q, hk} {
				// Tables are what this is about; a lost packet on a busy machine is not.
				asker.Until(asker.Name+" reaches it", func() bool {
					_, err := asker.Try(t.Context(), "ping", "-n", "-c", "1", "-W", "1", at.ip.String())
					return err == nil
				})
			}
		}
		for _, s := range []*neighSite{a, b} {
			n := s.r.Stats().Table.Moved
			check.True(t, n == 1, "site %s counts %d moves to another MAC, want 1", s.host.Name, n)
		}
	})
}

// announce has a host say where it is. The ways take turns: as a request and as a reply
// over IPv4, and over IPv6 when its device comes up and when that has another MAC.
func (g *guest) announce(i int, mac string) {
	g.l.t.Helper()
	if !g.l.v6 {
		g.SetMAC(g.dev, mac)
		spoken := func() (n int) {
			for _, s := range said(g.link, 0, true) {
				if s.target == g.ip.String() {
					n++
				}
			}
			return n
		}
		before := spoken()
		// It waits for an answer when it has spoken, which nobody needs.
		g.Start("arping", []string{"-U", "-A"}[i%2], "-c", "1", "-w", "3", "-I", g.dev, g.ip.String())
		g.Until("it has spoken", func() bool { return spoken() > before })
		return
	}
	g.Sysctl("net.ipv6.conf."+g.dev+".ndisc_notify", "1")
	g.Sysctl("net.ipv6.conf."+g.dev+".keep_addr_on_down", "1")
	if mac != g.mac {
		g.SetMAC(g.dev, mac)
		return
	}
	g.IP("link", "set", g.dev, "down")
	g.Up(g.dev)
}

// A probe is never answered for somebody else: the owner behind the tunnel says that the
// address is taken, and one whose owner has gone is free, whatever the tables have.
func TestNeighDuplicates(t *testing.T) {
	neighFamilies(t, func(t *testing.T, v6 bool) {
		l := newNeighLab(t, v6, "uuk")
		a, b, k := l.sites[0], l.sites[1], l.sites[2]
		prober, other := a.guest("prober", 1), a.guest("other", 2)
		ours, kernels := b.guest("ours", 3), k.guest("kernels", 4)
		prober.neighbourSysctl("retrans_time_ms", "300")
		free := netip.MustParseAddr("192.168.7.99")
		if v6 {
			free = netip.MustParseAddr("fd07::99")
		}
		probe := func(what string, ip netip.Addr, taken bool) {
			t.Helper()
			before, x := a.counts(), l.begin()
			got := prober.isTaken(ip)
			check.True(t, got == taken, "%s: taken %v, want %v", what, got, taken)
			x.l.settle()
			for _, far := range []*guest{ours, kernels} {
				if !far.away && len(questions(x.heard(far), ip)) == 0 {
					t.Errorf("%s: %s has not been asked", what, far.Name)
				}
			}
			check.True(t, a.counts()[arp.Probe] != before[arp.Probe], "%s: no message is counted as a probe", what)
			a.wantOutcome(what, before, arp.Answered, 0)
		}
		probe("nobody's", free, false)
		for _, far := range []*guest{ours, kernels} {
			probe(far.Name+", not known yet", far.ip, true)
			other.told(far.ip, far.mac)
			probe(far.Name+", known", far.ip, true)
			far.IP("link", "set", far.dev, "down")
			far.away = true
			before := a.counts()
			other.told(far.ip, far.mac) // or the next shows nothing
			a.wantOutcome(far.Name+", gone", before, arp.Answered, 1)
			probe(far.Name+", gone", far.ip, false)
		}
	})
}

// isTaken has a host find out whether an address is in use: with arping -D, or by the
// kernel's duplicate address detection.
func (g *guest) isTaken(ip netip.Addr) (taken bool) {
	g.l.t.Helper()
	if !g.l.v6 {
		_, err := g.Try(g.l.t.Context(), "arping", "-D", "-c", "2", "-w", "1", "-I", g.dev, ip.String())
		if exit := (*exec.ExitError)(nil); err != nil && (!errors.As(err, &exit) || exit.ExitCode() != 1) {
			g.l.t.Fatal(err)
		}
		return err != nil
	}
	g.Sysctl("net.ipv6.conf."+g.dev+".accept_dad", "1")
	g.Sysctl("net.ipv6.conf."+g.dev+".router_solicitation_delay", "0") // it also delays the probe
	g.IP("addr", "add", ip.String()+"/128", "dev", g.dev)
	var state string
	g.Until(fmt.Sprintf("the kernel knows whether %v is taken", ip), func() bool {
		state = g.IP("addr", "show", "dev", g.dev, "to", ip.String())
		return strings.Contains(state, "dadfailed") || !strings.Contains(state, "tentative")
	})
	g.IP("addr", "del", ip.String()+"/128", "dev", g.dev)
	return strings.Contains(state, "dadfailed")
}

// A host that checks whether a neighbour is still there asks it alone, and hears from
// nobody but the neighbour: one that has gone is found gone.
func TestNeighReachability(t *testing.T) {
	neighFamilies(t, func(t *testing.T, v6 bool) {
		l := newNeighLab(t, v6, "uuk")
		a, b, k := l.sites[0], l.sites[1], l.sites[2]
		asker := a.guest("asker", 1)
		ours, kernels := b.guest("ours", 3), k.guest("kernels", 4)
		asker.neighbourSysctl("retrans_time_ms", "300")
		for _, far := range []*guest{ours, kernels} {
			asker.told(far.ip, far.mac)
			before, x := a.counts(), l.begin()
			asker.check(far.ip, far.mac)
			x.wantTunnelled(far.Name, 2) // there and back
			got := questions(x.heard(far), far.ip)
			check.True(t, len(got) == 1 && got[0].dst == far.mac && got[0].src == asker.mac,
				"%s has heard %+v, want one question for it alone", far.Name, got)
			a.wantOutcome(far.Name, before, arp.Unicast, 1)
			a.wantOutcome(far.Name, before, arp.Answered, 0)

			far.IP("link", "set", far.dev, "down")
			far.away = true
			before, x = a.counts(), l.begin()
			asker.doubt(far.ip, far.mac)
			asker.Until(far.Name+" is found gone", func() bool {
				s := asker.knows(far.ip).State
				return !slices.Contains(s, "PROBE") && !slices.Contains(s, "REACHABLE")
			})
			if got := asker.knows(far.ip); got.MAC != "" || len(got.State) != 0 && !slices.Contains(got.State, "FAILED") {
				t.Errorf("%s has gone, and the asker has %+v", far.Name, got)
			}
			a.wantOutcome(far.Name+", gone", before, arp.Answered, 0)
			// Three is the kernel's ucast_solicit. All have gone out, and none to another site.
			got = questions(x.tunnelled(), far.ip)
			check.True(t, len(got) == 3, "%s, gone: %d questions in the tunnels, want 3: %+v", far.Name, len(got), got)
		}
	})
}
