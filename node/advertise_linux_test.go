package node

import (
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// Linux hosts without any configuration get addresses, router and MTU from the gateway, one of them behind the kernel's vxlan, and
// reach each other through it; rdisc6 reads what the kernel does not heed. Nobody can take the gateway's address.
func TestRouterAdvertisements(t *testing.T) {
	l := newLab(t)
	netns.Tool(t, "rdisc6")
	far := l.plug("far", "192.0.2.2").h
	guests := []*netns.Host{far, l.n.Host("near"), l.n.Host("other")}
	dev := []string{"vx0", "tap10", "tap20"}
	s := l.start("node", "192.0.2.1", parse(t, `{
	  "tunnels": [{"name": "vx", "local": "192.0.2.1"}],
	  "ports": [{"name": "tap10", "type": "tap", "mtu": 1500}, {"name": "tap20", "type": "tap"}],
	  "vrfs": [{"name": "v"}],
	  "segments": [
	    {"vni": 10, "tunnel": "vx", "flood": ["192.0.2.2"], "members": [{"port": "tap10"}],
	      "gateway": {"vrf": "v", "addresses": ["fd10::1/64", "10.0.10.1/24"], "mac": "02:00:00:00:10:01", "routerAdvertisements": {"interval": "4s", "dns": ["fd10::53"]}}},
	    {"vni": 20, "members": [{"port": "tap20"}],
	      "gateway": {"vrf": "v", "addresses": ["fd20::1/64"], "mac": "02:00:00:00:20:01", "routerAdvertisements": {"managed": true}}}]}`))
	far.VXLAN("vx0", netns.VXLAN{ID: 10, Local: "192.0.2.2", Remote: "192.0.2.1", Dev: "eth0"})
	var addr []string
	for i, h := range guests {
		if h != far {
			s.h.IP("link", "set", dev[i], "netns", h.NS)
		}
		for _, x := range []string{"accept_ra", "autoconf"} {
			h.Sysctl("net.ipv6.conf."+dev[i]+"."+x, "1")
		}
		h.Up(dev[i])
		prefix := "fd10:"
		if h == guests[2] {
			prefix = "fd20:"
		}
		found := ""
		h.Until("an address of its own", func() bool {
			for f := range strings.FieldsSeq(h.IP("-6", "addr", "show", "dev", dev[i], "scope", "global", "-tentative")) {
				if strings.HasPrefix(f, prefix) {
					found, _, _ = strings.Cut(f, "/")
				}
			}
			return found != ""
		})
		addr = append(addr, found)
		if r := h.IP("-6", "route", "show", "default"); !strings.Contains(r, "via fe80::") || !strings.Contains(r, "dev "+dev[i]) {
			t.Errorf("%s: default route %q", h.Name, r)
		}
	}
	if got := strings.TrimSpace(guests[1].Run("sysctl", "-n", "net.ipv6.conf.tap10.mtu")); got != "1450" {
		t.Errorf("MTU %s, the tunnel has 1450", got)
	}
	for _, h := range guests[:2] {
		h.Until("the other segment answers", func() bool {
			_, err := h.Try(t.Context(), "ping", "-n", "-c", "1", "-W", "1", addr[2])
			return err == nil
		})
	}
	out := guests[1].Run("rdisc6", "-1", "-q", "tap10") + guests[1].Run("rdisc6", "-1", "tap10")
	for _, want := range []string{"fd10::/64", "fd10::53", "1450"} {
		if !strings.Contains(out, want) {
			t.Errorf("rdisc6 does not find %s:\n%s", want, out)
		}
	}
	if out := guests[2].Run("rdisc6", "-1", "tap20"); !strings.Contains(strings.Join(strings.Fields(out), " "), "Stateful address conf. : Yes") {
		t.Errorf("rdisc6 does not find the flag M:\n%s", out)
	}
	guests[1].Sysctl("net.ipv6.conf.tap10.accept_dad", "1")
	guests[1].IP("addr", "add", "fd10::1/64", "dev", "tap10")
	guests[1].Until("the gateway's address is taken", func() bool { return strings.Contains(guests[1].IP("-6", "addr", "show", "dev", "tap10"), "dadfailed") })
}
