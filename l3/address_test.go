package l3

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/arp"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// Addresses of the gateway and of next hops are those of hosts, and not those that the prefix has
// for itself and for broadcasts.
func TestGatewayAddresses(t *testing.T) {
	send := func(frame.Dest, *frame.Frame) bool { return true }
	for _, c := range []struct {
		addr string
		ok   bool
	}{
		{"10.0.0.1/24", true}, {"10.0.0.0/31", true}, {"10.0.0.1/31", true}, {"10.0.0.0/32", true}, {"10.0.0.255/23", true},
		{"fd00::1/64", true}, {"fd00::/127", true}, {"fd00::/128", true}, {"fd00::ffff:ffff:ffff:ffff/64", true}, {"fe80::1/64", true},
		{"10.0.0.0/24", false}, {"10.0.0.255/24", false}, {"10.0.0.3/30", false}, {"0.0.0.1/8", false}, {"255.255.255.255/32", false},
		{"127.0.0.1/8", false}, {"224.0.0.1/4", false}, {"240.0.0.1/24", false},
		{"fd00::/64", false}, {"fe80::/64", false}, {"ff02::1/64", false}, {"::/0", false}, {"::1/128", false},
	} {
		g, err := NewGateway(nil)
		check.OK(t, err)
		table, err := arp.NewTable(nil)
		check.OK(t, err)
		n, err := arp.NewResponder(&arp.Config{Table: table})
		check.OK(t, err)
		p := netip.MustParsePrefix(c.addr)
		_, err = g.VRF("").NewInterface(&InterfaceConfig{VNI: 1, MAC: frame.MAC{2, 0, 0, 0, 0, 1}, Addresses: []netip.Prefix{p}, Neighbours: n, Send: send})
		if (err == nil) != c.ok || err != nil && (!strings.Contains(err.Error(), "InterfaceConfig.Addresses[0]: "+c.addr+": is ") || !strings.Contains(err.Error(), "must be the address of one host")) {
			t.Errorf("%s: %v", c.addr, err)
		}
	}

	g, _ := NewGateway(nil)
	table, _ := arp.NewTable(nil)
	n, _ := arp.NewResponder(&arp.Config{Table: table})
	v := g.VRF("")
	i, err := v.NewInterface(&InterfaceConfig{
		VNI: 1, MAC: frame.MAC{2, 0, 0, 0, 0, 1}, Addresses: []netip.Prefix{netip.MustParsePrefix("10.0.0.1/24"), netip.MustParsePrefix("fd00::1/64")}, Neighbours: n, Send: send,
	})
	check.OK(t, err)
	for s, ok := range map[string]bool{
		"10.0.0.2": true, "10.9.0.255": true, "10.0.0.255": false, "10.0.0.0": false, "255.255.255.255": false, "0.0.0.1": false, "224.0.0.1": false, "127.0.0.1": false,
		"fd00::2": true, "fd00::": false, "ff02::1": false, "::": false, "::1": false, "fe80::1": true,
	} {
		ip := netip.MustParseAddr(s)
		to := netip.MustParsePrefix("192.0.2.0/24")
		if ip.Is6() {
			to = netip.MustParsePrefix("2001:db8::/32")
		}
		err := v.Add(Route{Prefix: to, Via: []NextHop{{Interface: i, IP: ip}}})
		if (err == nil) != ok || err != nil && (!strings.Contains(err.Error(), s+": is ") || !strings.Contains(err.Error(), "must be the address of one host")) {
			t.Errorf("next hop %s: %v", s, err)
		}
	}
}
