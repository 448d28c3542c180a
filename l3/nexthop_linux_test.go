package l3

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/arp"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// The kernel refuses the next hops that Add refuses, as "invalid gateway", "unreachable" or "no route to host". With
// onlink it takes those that Add takes beyond that. Of its own addresses it refuses those of IPv6 alone; it then asks
// for the others in vain.
func TestNextHopsAsKernel(t *testing.T) {
	n := netns.New(t)
	a, b := n.Host("a"), n.Host("b")
	n.Link(a, "10.0.0.1/24,2001:db8::1/64", b, "10.0.0.2/24,2001:db8::2/64")
	a.Run("ip", "addr", "add", "10.7.0.1/32", "dev", "eth0")
	g := check.Must(NewGateway(nil))(t)
	table := check.Must(arp.NewTable(nil))(t)
	responder := check.Must(arp.NewResponder(&arp.Config{Table: table}))(t)
	var addrs []netip.Prefix
	for _, s := range []string{"10.0.0.1/24", "10.7.0.1/32", "2001:db8::1/64"} {
		addrs = append(addrs, netip.MustParsePrefix(s))
	}
	mac := frame.MAC{2, 0, 0, 0, 0, 1}
	i, err := g.VRF("").NewInterface(&InterfaceConfig{
		VNI: 1, MAC: mac, Addresses: addrs, Neighbours: responder, Send: func(frame.Dest, *frame.Frame) bool { return true },
	})
	check.OK(t, err)
	for via, ok := range map[string]bool{
		"10.0.0.2": true, "10.0.0.254": true, "10.0.0.1": false, "10.7.0.1": false, "10.0.0.255": false, "10.0.1.2": false, "192.0.2.9": false,
		"2001:db8::2": true, "2001:db8::1": false, "2001:db8:1::2": false, "fe80::9": true,
	} {
		ip, dst := netip.MustParseAddr(via), netip.MustParsePrefix("10.99.0.0/16")
		if ip.Is6() {
			dst = netip.MustParsePrefix("2001:db8:99::/48")
		}
		_, err := a.Try(t.Context(), "ip", "route", "replace", dst.String(), "via", via, "dev", "eth0")
		if (err == nil) != ok && !(err == nil && slices.ContainsFunc(addrs, func(p netip.Prefix) bool { return ip.Is4() && p.Addr() == ip })) {
			t.Errorf("the kernel, via %s: %v", via, err)
		}
		err = i.vrf.Add(Route{Prefix: dst, Via: []NextHop{{Interface: i, IP: ip}}})
		if (err == nil) != ok || err != nil && !strings.Contains(err.Error(), "IP: "+via+": is ") {
			t.Errorf("via %s: %v", via, err)
		}
	}
	// A host anywhere is its own next hop, which the kernel calls a route to the device.
	host := netip.MustParsePrefix("192.0.2.9/32")
	a.Run("ip", "route", "add", host.String(), "dev", "eth0")
	check.OK(t, i.vrf.Add(Route{Prefix: host, Via: []NextHop{{Interface: i, IP: host.Addr()}}}))
	// Our own link-local address, which is made of the MAC.
	if err := i.cfg.CheckNextHop(netip.MustParsePrefix("::/0"), arp.LinkLocal(mac)); err != errOwnAddress {
		t.Error(err)
	}
	// An interface with single addresses alone has its next hops anywhere.
	c := InterfaceConfig{MAC: mac, Addresses: []netip.Prefix{netip.MustParsePrefix("169.254.1.1/32"), netip.MustParsePrefix("fe80::1/64")}}
	for _, via := range []string{"10.65.1.5", "2001:db8::5", "169.254.1.1"} {
		ip := netip.MustParseAddr(via)
		if err := c.CheckNextHop(netip.PrefixFrom(ip, 8).Masked(), ip); (err == nil) != (via != "169.254.1.1") {
			t.Errorf("via %s: %v", via, err)
		}
	}
}
