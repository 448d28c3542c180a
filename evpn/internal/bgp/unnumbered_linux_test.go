package bgp

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// onLink is the configuration of a speaker at the end of a link.
func onLink(h *netns.Host, id byte, as uint32, edit func(*Config)) Config {
	c := Config{AS: as, RouterID: netip.AddrFrom4([4]byte{192, 0, 2, id}), In: h.Do, Listen: []netip.AddrPort{netip.MustParseAddrPort("[::]:179")},
		Peers: []Peer{{Interface: "eth0", AS: External, Retry: 100 * time.Millisecond, Hold: 9 * time.Second}}}
	if edit != nil {
		edit(&c)
	}
	return c
}

// unnumberedPair runs two speakers at the ends of a link without addresses.
func unnumberedPair(t *testing.T, edit func(i int, c *Config)) (us [2]*netns.Host, bs [2]*BGP, hs [2]*heard) {
	n := netns.New(t)
	us = [2]*netns.Host{n.Host("a"), n.Host("b")}
	n.Link(us[0], "", us[1], "")
	for i := range us {
		bs[i], hs[i], _ = start(t, onLink(us[i], byte(i+1), 65001+uint32(i), func(c *Config) {
			if edit != nil {
				edit(i, c)
			}
		}))
		bs[i].Advertise(samples()[i+1])
	}
	return us, bs, hs
}

// linkLocal returns the link-local address of a device, none while it may not be used.
func linkLocal(h *netns.Host, dev string) netip.Addr {
	f := strings.Fields(h.IP("-6", "-o", "addr", "show", "dev", dev, "scope", "link", "-tentative"))
	if len(f) < 4 {
		return netip.Addr{}
	}
	addr, _, _ := strings.Cut(f[3], "/")
	return netip.MustParseAddr(addr)
}

// meet waits until both have the other's route.
func meet(us [2]*netns.Host, bs [2]*BGP, hs [2]*heard) {
	for i := range us {
		us[i].Until("the other's route", func() bool {
			addr := linkLocal(us[1-i], "eth0").WithZone("eth0")
			s := bs[i].Status()[0]
			return s.State == "established" && s.Addr == addr && s.Link == "" && s.AS == bs[1-i].conf.AS &&
				hs[i].get(addr, samples()[2-i].Key).Kind != 0 && hs[i].count() == 1
		})
	}
}

// Two of ours find each other: both try, or one waits; with another AS or the same; with a password, and a hop at most.
func TestUnnumbered(t *testing.T) {
	t.Parallel()
	for name, edit := range map[string]func(i int, c *Config){
		"external": nil,
		"passive":  func(i int, c *Config) { c.Peers[0].Passive = i == 0 },
		"internal": func(_ int, c *Config) { c.AS, c.Peers[0].AS = 65000, Internal },
		"number":   func(i int, c *Config) { c.Peers[0].AS = int64(65002 - i) },
		"password": func(i int, c *Config) { c.Peers[0].Password, c.Peers[0].Hops, c.Peers[0].Passive = "secret", 1, i == 1 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			us, bs, hs := unnumberedPair(t, edit)
			meet(us, bs, hs)
		})
	}
}

// The interface is not there yet, goes down, is renamed, and is another one with other addresses: each time the session is made anew.
func TestUnnumberedInterface(t *testing.T) {
	t.Parallel()
	n := netns.New(t)
	us := [2]*netns.Host{n.Host("a"), n.Host("b")}
	var bs [2]*BGP
	var hs [2]*heard
	for i := range us {
		bs[i], hs[i], _ = start(t, onLink(us[i], byte(i+1), 65001+uint32(i), nil))
		bs[i].Advertise(samples()[i+1])
	}
	says := func(i int, text string) {
		t.Helper()
		us[i].Until(text, func() bool {
			s := bs[i].Status()[0]
			return strings.Contains(s.Link, "eth0: "+text) && !s.Addr.IsValid() && s.State == "idle" && hs[i].count() == 0
		})
	}
	says(0, "there is no such interface")
	n.Link(us[0], "", us[1], "")
	meet(us, bs, hs)

	us[0].IP("link", "set", "eth0", "down")
	says(0, "the interface is down")
	says(1, "the interface is down")
	if err := bs[0].Status()[0].Last; err == nil || !strings.Contains(err.Error(), "eth0: the interface is down") {
		t.Errorf("the session ended with %v", err)
	}
	us[0].SetMAC("eth0", "02:00:00:00:00:77")
	us[0].Up("eth0")
	meet(us, bs, hs)

	since := bs[1].Status()[0].Since
	us[0].Run("sh", "-c", "ip link set eth0 down; ip link set eth0 address 02:00:00:00:00:78; ip link set eth0 up") // for a moment
	us[1].Until("another session", func() bool { return bs[1].Status()[0].Since != since })
	meet(us, bs, hs)

	us[0].IP("link", "set", "eth0", "down")
	us[0].IP("link", "set", "eth0", "name", "other")
	us[0].Up("other")
	says(0, "there is no such interface")
	us[0].IP("link", "set", "other", "down")
	us[0].IP("link", "set", "other", "name", "eth0")
	us[0].Up("eth0")
	meet(us, bs, hs)

	us[0].IP("link", "del", "eth0")
	says(0, "there is no such interface")
	says(1, "there is no such interface")
	us[0].IP("link", "add", "eth0", "type", "veth", "peer", "name", "eth0", "netns", us[1].NS)
	us[0].Up("eth0")
	us[1].Up("eth0")
	meet(us, bs, hs)
}

// A third router on the link is ignored, and said; it comes when the first has gone.
func TestUnnumberedThird(t *testing.T) {
	t.Parallel()
	n := netns.New(t)
	sw := n.Switch("sw")
	var us [3]*netns.Host
	var bs [3]*BGP
	var hs [3]*heard
	var stop [3]func()
	begin := func(i int) {
		us[i] = n.Host(fmt.Sprintf("us%d", i))
		n.Plug(us[i], "", sw)
		bs[i], hs[i], stop[i] = start(t, onLink(us[i], byte(i+1), 65001+uint32(i), nil))
		bs[i].Advertise(samples()[i+1])
	}
	begin(0)
	begin(1)
	meet([2]*netns.Host(us[:2]), [2]*BGP(bs[:2]), [2]*heard(hs[:2]))
	begin(2)
	us[0].Until("the third is ignored", func() bool {
		s := bs[0].Status()[0]
		return s.State == "established" && s.AS == 65002 && strings.Contains(s.Link, "another router, "+linkLocal(us[2], "eth0").String()+"%eth0, is ignored")
	})
	stop[1]()
	us[0].Until("the third", func() bool {
		s := bs[0].Status()[0]
		return s.State == "established" && s.AS == 65003 && s.Addr == linkLocal(us[2], "eth0").WithZone("eth0") && hs[0].count() == 1
	})
}

// frrOnLink makes a host with network 100 in FRR's hands, whose neighbour is the router of eth0.
func frrOnLink(t *testing.T, n *netns.Net, us *netns.Host) *netns.Host {
	b, host := n.Router("frr"), n.Host("host")
	n.Link(us, "", b, "")
	_, port := n.Link(host, "172.16.0.2/24", b, "")
	b.IP("addr", "add", theirsAddr+"/32", "dev", "lo")
	b.Up("lo")
	b.IP("link", "add", "br100", "type", "bridge")
	b.IP("link", "add", "vx100", "type", "vxlan", "id", "100", "local", theirsAddr, "dstport", "4789", "nolearning")
	b.IP("link", "set", "vx100", "master", "br100")
	b.Up("vx100")
	b.Up("br100")
	b.Join(port, "br100")
	b.IP("addr", "add", "172.16.0.1/24", "dev", "br100")
	host.Ping("172.16.0.1", 1)
	return b
}

const frrUnnumbered = `router bgp 65002
 bgp router-id 192.0.2.2
 no bgp default ipv4-unicast
 no bgp ebgp-requires-policy
 neighbor eth0 interface remote-as external
 neighbor eth0 timers 1 3
 neighbor eth0 timers connect 1
 address-family l2vpn evpn
  neighbor eth0 activate
  advertise-all-vni
`

// FRR's unnumbered neighbour: types 2 and 3 in both directions; the link goes down, and FRR's link-local address is another one.
func TestUnnumberedFRR(t *testing.T) {
	t.Parallel()
	for name, edit := range map[string]func(*Config){
		"active":  func(c *Config) { c.Listen = nil },
		"passive": func(c *Config) { c.Peers[0].Passive = true },
		"both":    nil,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := netns.New(t)
			us := n.Host("us")
			r := frrOnLink(t, n, us)
			f := startFRR(t, r, "interface eth0\n no ipv6 nd suppress-ra\n", frrUnnumbered)
			b, h, _ := start(t, onLink(us, 1, 65001, edit))
			for _, x := range toFRR() {
				b.Advertise(x)
			}
			both := func() {
				t.Helper()
				us.Until("FRR's routes", func() bool {
					got := map[string]bool{}
					addr := linkLocal(r, "eth0").WithZone("eth0")
					h.do(func() {
						for _, x := range h.routes[addr] {
							if x.NextHop == ip(theirsAddr) {
								got[fmt.Sprint(x.Kind, x.IP)] = true
							}
						}
					})
					return b.Status()[0].AS == 65002 && got["3 "+theirsAddr] && got["2 172.16.0.2"]
				})
				for key := range toFRR() {
					if key[1] == '2' || key[1] == '3' {
						us.Until("FRR has "+key, func() bool { return f.HasEVPN(key) })
					}
				}
			}
			both()
			us.IP("link", "set", "eth0", "down")
			us.Until("the end", func() bool { return h.count() == 0 && !b.Status()[0].Addr.IsValid() })
			us.Up("eth0")
			both()
			r.IP("link", "set", "eth0", "down")
			r.SetMAC("eth0", "02:00:00:00:00:99")
			r.Up("eth0")
			both()
		})
	}
}
