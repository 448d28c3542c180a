package node

import (
	"bytes"
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// Where a node has a multicast router, a group's frames and the reports of hosts come as they do to a port with mcast_router 2 of the
// kernel's bridge, also through the tunnel between the two, and to nobody else.
func TestMulticastRouterBesideKernel(t *testing.T) {
	for _, x := range []struct{ name, group, asked, reports string }{
		{"IPv4", "239.1.2.3", "239.9.9.9", "igmp[0] == 0x16"},
		{"IPv6", "ff05::1:3", "ff05::9:9", "ip6[6] == 0 and ip6[48] == 131"},
	} {
		t.Run(x.name, func(t *testing.T) { testMulticastRouter(t, x.group, x.asked, x.reports) })
	}
}

func testMulticastRouter(t *testing.T, group, asked, reports string) {
	l := newLab(t)
	config := func(routers string) *Config {
		return parse(t, fmt.Sprintf(`{"tunnels": [{"name": "vx", "local": "192.0.2.1"}],
			"ports": [{"name": "taph"}, {"name": "tapr"}, {"name": "tapx"}],
			"segments": [{"vni": 100, "tunnel": "vx", "flood": ["192.0.2.3"], "multicast": {"querier": true, "interval": "2s"}, "multicastRouters": [%s],
				"members": [{"port": "taph"}, {"port": "tapr"}, {"port": "tapx"}]}]}`, routers))
	}
	k := l.plug("k", "192.0.2.3").h
	k.VXLAN("vx", netns.VXLAN{ID: 100, Local: "192.0.2.3", Flood: []string{"192.0.2.1"}})
	k.IP("link", "add", "name", "br0", "type", "bridge", "mcast_snooping", "1")
	k.IP("link", "set", "vx", "master", "br0")
	k.Up("br0")
	hosts, ports := map[string]*netns.Host{}, map[string]string{}
	for i, name := range []string{"kh", "kr", "kx"} {
		hosts[name] = l.n.Host(name)
		_, ports[name] = l.n.Link(hosts[name], fmt.Sprintf("10.0.0.%d/24,2001:db8:1::%[1]d/64", 30+i), k, "")
		k.IP("link", "set", ports[name], "master", "br0")
	}
	kernel := func(mode string) {
		for _, dev := range []string{ports["kr"], "vx"} {
			k.Run("bridge", "link", "set", "dev", dev, "mcast_router", mode)
		}
	}
	kernel("2")
	s := l.start("n", "192.0.2.1", config(`"tapr", "vx"`))
	devs := map[string]string{"kh": "eth0", "kr": "eth0", "kx": "eth0"}
	for i, name := range []string{"h", "r", "x"} {
		hosts[name], devs[name] = s.guest("tap"+name, fmt.Sprintf("10.0.0.%d/24,2001:db8:1::%[1]d/64", 10+i), ""), "tap"+name
	}
	for name, h := range hosts { // of IGMPv3 and MLDv2 the bridge floods reports
		h.Sysctl("net.ipv4.conf.all.force_igmp_version", "2")
		h.Sysctl("net.ipv6.conf.all.force_mld_version", "1")
		h.IP("route", "add", "224.0.0.0/4", "dev", devs[name])
		h.IP("-6", "route", "add", "ff05::/16", "dev", devs[name], "table", "local")
	}
	s.h.Until("hosts have answered", func() bool { st := s.Snooper(100).Stats(); return st.IPv4 && st.IPv6 })
	hosts["kh"].Until("the bridge has heard a querier", func() bool { return reached(t, hosts, devs, "kh", group)["kx"] == 0 })

	// reach has each host send, and says who must get it.
	reach := func(what string, routers ...string) {
		t.Helper()
		for _, from := range []string{"h", "x", "kh", "kx"} {
			for name, got := range reached(t, hosts, devs, from, group) {
				if want := slices.Contains(routers, name); (got == 1) != want || got > 1 {
					t.Errorf("%s: %s sends: %s gets %d copies, want %v", what, from, name, got, want)
				}
			}
		}
	}
	reach("named", "r", "kr")
	for _, from := range []string{"h", "kh"} {
		caps := map[string]*netns.Capture{}
		for name, h := range hosts {
			if name != from {
				caps[name] = h.Capture(devs[name], reports)
			}
		}
		c := joined(t, hosts[from], devs[from], asked)
		time.Sleep(300 * time.Millisecond)
		c.c.Close()
		for name, c := range caps {
			got := slices.ContainsFunc(c.Stop(), func(p netns.Packet) bool {
				return !p.Out && bytes.Contains(p.Data, netip.MustParseAddr(asked).AsSlice())
			})
			if want := name == "r" || name == "kr"; got != want {
				t.Errorf("%s reports: %s hears it %v, want %v", from, name, got, want)
			}
		}
	}

	// Without the setting they are hosts like others.
	must(t, s.Apply(config("")))
	kernel("0")
	reach("no more")
}

// reached has a host send to a group, and returns how many copies others get.
func reached(t *testing.T, hosts map[string]*netns.Host, devs map[string]string, from, group string) map[string]int {
	t.Helper()
	caps, got := map[string]*netns.Capture{}, map[string]int{}
	for name, h := range hosts {
		if name != from {
			caps[name] = h.Capture(devs[name], "udp port 5000")
		}
	}
	say(t, hosts[from], devs[from], group)
	time.Sleep(100 * time.Millisecond)
	for name, c := range caps {
		got[name] = frames(t, c)
	}
	return got
}
