package node

import (
	"encoding/hex"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/control"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// A listener is a host's socket in a group; heard counts what came to it.
type listener struct {
	c     *net.UDPConn
	heard atomic.Int64
}

// joined joins a group on a device of a host.
func joined(t *testing.T, h *netns.Host, dev, group string) *listener {
	t.Helper()
	l := &listener{}
	h.Do(func() {
		i, err := net.InterfaceByName(dev)
		must(t, err)
		l.c, err = net.ListenMulticastUDP("udp", i, &net.UDPAddr{IP: net.ParseIP(group), Port: 5000})
		must(t, err)
	})
	t.Cleanup(func() { l.c.Close() })
	go func() {
		for b := make([]byte, 64); ; {
			if _, _, err := l.c.ReadFrom(b); err != nil {
				return
			}
			l.heard.Add(1)
		}
	}()
	return l
}

// say sends a datagram to a group.
func say(t *testing.T, h *netns.Host, dev, group string) {
	t.Helper()
	h.Do(func() {
		to := &net.UDPAddr{IP: net.ParseIP(group), Port: 5000}
		if strings.Contains(group, ":") {
			to.Zone = dev
		}
		c, err := net.DialUDP("udp", nil, to)
		must(t, err)
		_, err = c.Write([]byte("to those who listen"))
		must(t, err)
		c.Close()
	})
}

// frames returns how many frames to a group a device has received.
func frames(t *testing.T, c *netns.Capture) int { t.Helper(); return len(c.Stop()) }

// Linux hosts behind two nodes and behind the kernel's bridge with a vxlan device get the frames of groups they have joined, with
// every version of IGMP and MLD, and no others. The querier is a node's, or the bridge's.
func TestMulticast(t *testing.T) {
	for _, x := range []struct{ name, group, other, sysctl string }{
		{"IGMPv2", "239.1.2.3", "239.1.2.4", "net.ipv4.conf.all.force_igmp_version=2"},
		{"IGMPv3", "239.1.2.3", "239.1.2.4", "net.ipv4.conf.all.force_igmp_version=3"},
		{"MLDv1", "ff05::1:3", "ff05::1:4", "net.ipv6.conf.all.force_mld_version=1"},
		{"MLDv2", "ff05::1:3", "ff05::1:4", "net.ipv6.conf.all.force_mld_version=2"},
	} {
		for _, kernel := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, kernel asks %v", x.name, kernel), func(t *testing.T) {
				testMulticast(t, x.group, x.other, x.sysctl, kernel)
			})
		}
	}
}

func testMulticast(t *testing.T, group, other, sysctl string, kernel bool) {
	l := newLab(t)
	config := func(i int) *Config {
		return parse(t, fmt.Sprintf(`{"tunnels": [{"name": "vx", "local": "192.0.2.%d"}],
			"ports": [{"name": "tapa"}, {"name": "tapb"}, {"name": "tapc"}],
			"segments": [{"vni": 100, "tunnel": "vx", "flood": %s, "multicast": {"querier": %v, "interval": "2s"},
				"members": [{"port": "tapa"}, {"port": "tapb"}, {"port": "tapc", "isolated": true}]}]}`, i,
			[]string{"", `["192.0.2.2", "192.0.2.3"]`, `["192.0.2.1", "192.0.2.3"]`}[i], !kernel))
	}
	k := l.plug("k", "192.0.2.3").h
	k.VXLAN("vx", netns.VXLAN{ID: 100, Local: "192.0.2.3", Flood: []string{"192.0.2.1", "192.0.2.2"}})
	k.IP("link", "add", "name", "br0", "type", "bridge", "mcast_snooping", "1", "mcast_querier", fmt.Sprint(map[bool]int{false: 0, true: 1}[kernel]),
		"mcast_query_interval", "400", "mcast_startup_query_interval", "100", "mcast_query_response_interval", "100", "mcast_igmp_version", "3", "mcast_mld_version", "2")
	k.IP("link", "set", "vx", "master", "br0")
	k.Up("br0")
	ks := l.n.Host("kg")
	_, end := l.n.Link(ks, "10.0.0.30/24,2001:db8:1::30/64", k, "")
	k.IP("link", "set", end, "master", "br0")
	kd := "eth0"

	hosts := map[string]*netns.Host{"k": ks}
	devs := map[string]string{"k": kd}
	var sites []*site
	for i := 1; i <= 2; i++ {
		s := l.start(fmt.Sprint("n", i), fmt.Sprint("192.0.2.", i), config(i))
		sites = append(sites, s)
		for n, port := range []string{"a", "b", "c"} {
			name := fmt.Sprint(port, i)
			hosts[name], devs[name] = s.guest("tap"+port, fmt.Sprintf("10.0.0.%d/24,2001:db8:1::%[1]d/64", i*10+n), ""), "tap"+port
		}
	}
	for name, h := range hosts {
		key, value, _ := strings.Cut(sysctl, "=")
		h.Sysctl(key, value)
		h.IP("route", "add", "224.0.0.0/4", "dev", devs[name])
		h.IP("-6", "route", "add", "ff05::/16", "dev", devs[name], "table", "local")
	}
	said := map[string]*listener{}
	for _, name := range []string{"b1", "a2", "k"} {
		said[name] = joined(t, hosts[name], devs[name], group)
	}
	joined(t, hosts["c1"], devs["c1"], other)

	// Until hosts have answered all is flooded; then each listener is where it is.
	dst := "01005e010203"
	if strings.Contains(group, ":") {
		dst = "333300010003"
	}
	mac := frame.MAC{}
	raw, err := hex.DecodeString(dst)
	must(t, err)
	copy(mac[:], raw)
	// To a router all groups go: the kernel's bridge is one when it asks, and keeps its own hosts' answers to itself.
	places := func(s *site, routers bool) map[string]bool {
		names := map[string]bool{}
		for x := range s.Snooper(100).All() {
			if x.Group == netip.MustParseAddr(group) || routers && x.Router.IPv4 {
				names[s.Switch().Name(x.Dest)] = true
			}
		}
		return names
	}
	k.Until("the bridge knows its host, and others if it asks", func() bool {
		known, _ := k.Try(t.Context(), "bridge", "mdb", "show", "dev", "br0")
		return strings.Contains(known, "port "+end+" grp "+group) && (!kernel || strings.Contains(known, "port vx grp "+group))
	})
	for _, s := range sites {
		s.h.Until("hosts have answered, and all listeners are known", func() bool {
			st := s.Snooper(100).Stats()
			return st.IPv4 && st.IPv6 && len(places(s, true)) == 3
		})
	}
	for _, from := range []string{"a1", "b2", "k", "b1"} {
		caps := map[string]*netns.Capture{}
		for _, name := range []string{"a1", "b1", "c1", "a2", "b2", "c2", "k"} {
			if name != from {
				caps[name] = hosts[name].Capture(devs[name], "udp port 5000")
			}
		}
		say(t, hosts[from], devs[from], group)
		for name, l := range said {
			if name != from {
				hosts[name].Until(from+" sends, the group is heard", func() bool { return l.heard.Load() > 0 })
			}
			l.heard.Store(0)
		}
		time.Sleep(50 * time.Millisecond)
		for name, c := range caps {
			want := 0
			if said[name] != nil {
				want = 1
			}
			if got := frames(t, c); got != want {
				t.Errorf("%s sends: %s gets %d copies, want %d", from, name, got, want)
			}
		}
		for _, l := range said {
			l.heard.Store(0)
		}
	}

	// With a row for the group it goes into the tunnel to the VTEP of the row alone, whoever listens elsewhere.
	row := control.Flood{VNI: 100, VTEP: netip.MustParseAddrPort("192.0.2.3:0"), MAC: mac}
	must(t, sites[0].Program("controller", control.Update{Add: []control.Row{row}}))
	a2 := hosts["a2"].Capture(devs["a2"], "udp port 5000")
	say(t, hosts["a1"], devs["a1"], group)
	hosts["k"].Until("the VTEP of the row hears the group, and a host of the node", func() bool {
		return said["k"].heard.Load() > 0 && said["b1"].heard.Load() > 0
	})
	time.Sleep(50 * time.Millisecond)
	if got := frames(t, a2); got != 0 {
		t.Errorf("a VTEP without a row gets %d copies", got)
	}
	said["k"].heard.Store(0)
	must(t, sites[0].Program("controller", control.Update{Snapshot: true}))

	// Who leaves is forgotten, and a group that nobody listens to reaches nobody.
	said["b1"].c.Close()
	said["a2"].c.Close()
	for _, s := range sites {
		s.h.Until("those who have left are forgotten", func() bool {
			left := places(s, false)
			delete(left, "192.0.2.3:4789")
			return len(left) == 0
		})
	}
	b := hosts["b1"].Capture(devs["b1"], "udp port 5000")
	say(t, hosts["a1"], devs["a1"], group)
	hosts["k"].Until("the last listener", func() bool { return said["k"].heard.Load() > 0 })
	for _, s := range sites {
		if r := s.Snooper(100).Stats(); r.Malformed+r.Full != 0 {
			t.Errorf("%s: %+v", s.h.Name, r)
		}
	}
	if got := frames(t, b); got != 0 {
		t.Errorf("%d copies to who has left", got)
	}
}
