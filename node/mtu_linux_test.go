package node

import (
	"strconv"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// The MTU of the underlay's interface is followed down and up: by the tunnel, the TAP of a host, and what the gateway advertises, also
// to a host behind the kernel's vxlan. Packets of full size pass before, between and after; longer ones get an error. A gateway that
// advertises itself no longer is no host's router.
func TestFollowMTU(t *testing.T) {
	l := newLab(t)
	far := l.plug("far", "192.0.2.2").h
	config := func(ra string) *Config {
		return parse(t, `{"tunnels": [{"name": "vx", "local": "192.0.2.1"}], "ports": [{"name": "tap10"}], "vrfs": [{"name": "v"}],
		  "segments": [{"vni": 10, "tunnel": "vx", "flood": ["192.0.2.2"], "members": [{"port": "tap10"}],
		    "gateway": {"vrf": "v", "addresses": ["fd10::1/64"], "mac": "02:00:00:00:10:01"`+ra+`}}]}`)
	}
	s := l.start("node", "192.0.2.1", config(`, "routerAdvertisements": {"interval": "30m"}`))
	near := l.n.Host("near")
	s.h.IP("link", "set", "tap10", "netns", near.NS)
	for h, dev := range map[*netns.Host]string{near: "tap10", far: "vx0"} {
		if h == far {
			far.VXLAN("vx0", netns.VXLAN{ID: 10, Local: "192.0.2.2", Remote: "192.0.2.1", Dev: "eth0"})
		}
		h.Sysctl("net.ipv6.conf."+dev+".accept_ra", "1")
		h.Up(dev)
	}
	near.Addr("tap10", "10.0.10.1/24,fd10::11/64")
	far.Addr("vx0", "10.0.10.2/24,fd10::12/64")
	var gone []string
	for _, mtu := range []int{1500, 1400, 1460} {
		inner := strconv.Itoa(mtu - 50)
		s.h.IP("link", "set", "eth0", "mtu", strconv.Itoa(mtu))
		if mtu != 1460 { // which it sees by itself
			s.followMTU(map[string]string{})
		}
		for h, dev := range map[*netns.Host]string{near: "tap10", far: "vx0"} {
			h.Until("the gateway advertises "+inner, func() bool {
				return strings.TrimSpace(h.Run("sysctl", "-n", "net.ipv6.conf."+dev+".mtu")) == inner
			})
		}
		near.Until("the TAP has "+inner, func() bool { return strings.Contains(near.IP("link", "show", "tap10"), "mtu "+inner+" ") })
		for _, h := range []string{"10.0.10.2", "fd10::12"} {
			size := mtu - 50 - 28
			if strings.Contains(h, ":") {
				size -= 20
			}
			near.Until("a packet of full size passes", func() bool {
				_, err := near.Try(t.Context(), "ping", "-n", "-c", "1", "-W", "1", "-M", "do", "-s", strconv.Itoa(size), h)
				return err == nil
			})
			if out, err := near.Try(t.Context(), "ping", "-n", "-c", "1", "-W", "0.2", "-M", "do", "-s", strconv.Itoa(size+1), h); err == nil {
				gone = append(gone, h+" "+out)
			}
		}
	}
	s.h.IP("addr", "del", "192.0.2.1/24", "dev", "eth0") // nobody knows the MTU now
	s.followMTU(map[string]string{})
	if !strings.Contains(near.IP("link", "show", "tap10"), "mtu 1410 ") {
		t.Errorf("without the address: %s", near.IP("link", "show", "tap10"))
	}
	s.h.Addr("eth0", "192.0.2.1/24")
	if len(gone) > 0 {
		t.Errorf("longer packets passed: %q", gone)
	}
	for _, h := range []*netns.Host{near, far} {
		if r := h.IP("-6", "route", "show", "default"); !strings.Contains(r, "via fe80::") {
			t.Errorf("%s: default route %q", h.Name, r)
		}
	}
	s.must(config(""))
	for _, h := range []*netns.Host{near, far} {
		h.Until("no router", func() bool { return h.IP("-6", "route", "show", "default") == "" })
	}
}

// What changes the room that encapsulation takes, while hosts talk: the address family of the tunnel, VLANs inside. TAP and
// advertisements follow at once, and full-size TCP passes both ways.
func TestEncapsulationChangesMTU(t *testing.T) {
	l := newLab(t)
	far := l.plug("far", "192.0.2.2").h
	config := func(family, more string) *Config {
		local, peer := "192.0.2.1", "192.0.2.2"
		if family == "6" {
			local, peer = "2001:db8::1", "2001:db8::2"
		}
		return parse(t, `{"tunnels": [{"name": "vx", "local": "`+local+`"}], "ports": [{"name": "tap10"}], "vrfs": [{"name": "v"}],
		  "segments": [{"vni": 10, "tunnel": "vx", "flood": ["`+peer+`"], "members": [{"port": "tap10"}]`+more+`,
		    "gateway": {"vrf": "v", "addresses": ["fd10::1/64"], "mac": "02:00:00:00:10:01", "routerAdvertisements": {"interval": "30m"}}}]}`)
	}
	s := l.start("node", "192.0.2.1", config("4", ""))
	near := l.n.Host("near")
	s.h.IP("link", "set", "tap10", "netns", near.NS)
	near.Sysctl("net.ipv6.conf.tap10.accept_ra", "1")
	near.Up("tap10")
	near.Addr("tap10", "10.0.10.1/24,fd10::11/64")
	for _, c := range []struct {
		family, more string
		inner        int
	}{{"4", "", 1450}, {"6", "", 1430}, {"4", `, "innerVLAN": "pass"`, 1446}, {"6", `, "innerVLAN": "pass"`, 1426}, {"4", "", 1450}} {
		s.must(config(c.family, c.more))
		v := netns.VXLAN{ID: 10, Local: "192.0.2.2", Remote: "192.0.2.1", Dev: "eth0", Addr: "10.0.10.2/24,fd10::12/64"}
		if c.family == "6" {
			v.Local, v.Remote = "2001:db8::2", "2001:db8::1"
		}
		far.Try(t.Context(), "ip", "link", "delete", "vx0")
		far.VXLAN("vx0", v)
		far.SetMAC("vx0", "02:00:00:00:00:02") // as before
		far.Sysctl("net.ipv6.conf.vx0.accept_ra", "1")
		inner := strconv.Itoa(c.inner)
		if got := near.IP("link", "show", "tap10"); !strings.Contains(got, "mtu "+inner+" ") {
			t.Errorf("%+v: %s", c, got)
		}
		near.Until("the gateway advertises "+inner, func() bool {
			return strings.TrimSpace(near.Run("sysctl", "-n", "net.ipv6.conf.tap10.mtu")) == inner
		})
		for _, to := range []string{"10.0.10.2", "fd10::12"} {
			near.Until("the tunnel works", func() bool {
				_, err := near.Try(t.Context(), "ping", "-n", "-c", "1", "-W", "0.3", to)
				return err == nil
			})
			near.IPerf(far, to, "-n", "4M")
			near.IPerf(far, to, "-n", "4M", "-R")
		}
	}
}

// A tunnel that moves to an address on another interface has the MTU of that at once, and so have TAP and advertisements.
func TestMovedTunnelMTU(t *testing.T) {
	l := newLab(t)
	s := l.plug("node", "192.0.2.1")
	l.n.Link(s.h, "198.51.100.1/24", l.n.Host("other"), "198.51.100.2/24")
	s.h.IP("link", "set", "eth1", "mtu", "1400")
	config := func(local string) *Config {
		return parse(t, `{"tunnels": [{"name": "vx", "local": "`+local+`"}], "ports": [{"name": "tap10"}], "vrfs": [{"name": "v"}],
		  "segments": [{"vni": 10, "tunnel": "vx", "members": [{"port": "tap10"}],
		    "gateway": {"vrf": "v", "addresses": ["fd10::1/64"], "mac": "02:00:00:00:10:01", "routerAdvertisements": {"interval": "30m"}}}]}`)
	}
	s.run(config("192.0.2.1"))
	vx := s.Tunnels()["vx"]
	near := l.n.Host("near")
	s.h.IP("link", "set", "tap10", "netns", near.NS)
	near.Sysctl("net.ipv6.conf.tap10.accept_ra", "1")
	near.Up("tap10")
	for _, c := range []struct{ local, inner string }{{"192.0.2.1", "1450"}, {"198.51.100.1", "1350"}, {"192.0.2.1", "1450"}} {
		s.must(config(c.local))
		if got := near.IP("link", "show", "tap10"); !strings.Contains(got, "mtu "+c.inner+" ") {
			t.Errorf("%+v: %s", c, got)
		}
		near.Until("the gateway advertises "+c.inner, func() bool {
			return strings.TrimSpace(near.Run("sysctl", "-n", "net.ipv6.conf.tap10.mtu")) == c.inner
		})
	}
	if s.Tunnels()["vx"] != vx {
		t.Error("the tunnel was made anew")
	}
}
