package kernel

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/arp"
	"github.com/vxswitch/vxswitch/fdb"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/node"
)

// A Linux host as Calico sets up a pod: an address of its own, and a gateway that is on
// the link and nowhere. Whatever it asks for is at the gateway's MAC, and nothing it asks
// or announces is heard by anybody: not in a tunnel, not by the pod beside it, and not by
// an ordinary host on the same segment.
func TestNeighAccess(t *testing.T) {
	neighFamilies(t, func(t *testing.T, v6 bool) {
		l := newNeighLab(t, v6, "uu")
		a, b := l.sites[0], l.sites[1]
		pod, pod2 := a.bare("pod", 1), a.bare("pod2", 2)
		host, far := a.guest("host", 3), b.guest("far", 4)
		a.confine(pod, pod2)
		gateway, all, elsewhere := netip.MustParseAddr("169.254.1.1"), "0.0.0.0/0", "198.51.100.7:9"
		if v6 {
			gateway, all, elsewhere = netip.MustParseAddr("fe80::ecee:eeff:feee:eeee"), "::/0", "[2001:db8::7]:9"
		}
		for _, p := range []*guest{pod, pod2} {
			p.Addr(p.dev, fmt.Sprintf("%v/%d", p.ip, p.ip.BitLen()))
			if v6 {
				p.Addr(p.dev, p.speaks.String()+"/64")
			}
			p.Route(netip.PrefixFrom(gateway, gateway.BitLen()).String(), "dev", p.dev, "scope", "link")
			p.Route(all, "via", gateway.String(), "dev", p.dev)
			p.neighbourSysctl("retrans_time_ms", "300")
		}
		const mac = "ee:ee:ee:ee:ee:ee"
		others := []*guest{pod2, host, far}
		quiet := func(what string, x stretch) {
			t.Helper()
			x.wantTunnelled(what, 0)
			for _, g := range others {
				got := x.heard(g)
				check.True(t, len(got) == 0, "%s: %s has heard %+v", what, g.Name, got)
			}
		}

		// Traffic to anywhere resolves the gateway; the packet itself gets as far as routing.
		before, x := a.counts(), l.begin()
		routed := a.drops(frame.NoRoute)
		var err error
		pod.Do(func() {
			var c net.Conn
			if c, err = net.Dial("udp", elsewhere); err == nil {
				_, err = c.Write([]byte("out"))
				c.Close()
			}
		})
		check.OK(t, err)
		pod.Until("the gateway is resolved", func() bool { return slices.Contains(pod.knows(gateway).State, "REACHABLE") })
		got := pod.knows(gateway)
		check.True(t, got.MAC == mac, "the gateway is at %+v, want %s", got, mac)
		want := saying{"is-at", mac, pod.mac, gateway.String(), mac, pod.ip.String()}
		heard := x.heard(pod)
		check.True(t, slices.Equal(heard, []saying{want}), "the pod has heard %+v, want %+v", heard, want)
		quiet("traffic", x)
		a.wantOutcome("traffic", before, arp.Answered, 1)
		pod.Until("the packet has come to routing", func() bool { return a.drops(frame.NoRoute) == routed+1 })

		// Any other address is there too: a pod's, a host's, one behind the tunnel, nobody's.
		nobody := netip.MustParseAddr("192.168.7.99")
		if v6 {
			nobody = netip.MustParseAddr("fd07::99")
		}
		for _, ip := range []netip.Addr{pod2.ip, host.ip, far.ip, nobody} {
			x := l.begin()
			out := ""
			if v6 {
				out = pod.Run("ndisc6", "-q", "-1", "-r", "1", "-s", pod.ip.String(), ip.String(), pod.dev)
			} else {
				out = pod.Run("arping", "-f", "-c", "1", "-w", "2", "-I", pod.dev, ip.String())
			}
			check.True(t, strings.Contains(strings.ToLower(out), mac), "%v is not at %s:\n%s", ip, mac, out)
			quiet("asked for "+ip.String(), x)
		}

		// Still there? Asked alone, the gateway answers.
		x = l.begin()
		pod.check(gateway, mac)
		quiet("a probe of the gateway", x)

		// Is my address free? It is: nobody is asked, and nobody says no.
		before, x = a.counts(), l.begin()
		check.True(t, !pod.isTaken(nobody), "an address is taken that is nobody's")
		quiet("a probe", x)
		check.True(t, a.counts()[arp.Probe] != before[arp.Probe], "no probe has been made")

		// Here I am: the table knows it, nobody else needs to.
		x = l.begin()
		pod.announce(1, pod.mac)
		pod.Until("the pod announces itself", func() bool {
			return slices.ContainsFunc(x.sent(pod), func(s saying) bool { return s.op == "is-at" && s.sender == pod.ip.String() })
		})
		quiet("an announcement", x)
		a.wantEntry("announced", pod.ip, pod.mac, "pod")
	})
}

// confine has guests reach the gateway alone, beside others of the segment that are as they were.
func (s *neighSite) confine(guests ...*guest) {
	s.l.t.Helper()
	s.must(s.vsi.FDB().Set(arp.DefaultAccessMAC, 0, fdb.Static))
	for _, g := range guests {
		g.confined = s
		s.configure(func(c *node.Segment) {
			i := slices.IndexFunc(c.Members, func(m node.Member) bool { return m.Port == g.dev })
			c.Members[i].NeighbourMode = new(arp.Access)
		})
	}
}

// drops returns how many frames have been dropped for a reason.
func (s *neighSite) drops(why frame.Reason) (n uint64) {
	for _, v := range s.Switch().Stats().VSIs {
		n += v.Drops[why]
	}
	return n
}
