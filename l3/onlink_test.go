package l3

import (
	"net/netip"
	"testing"

	"github.com/vxswitch/vxswitch/arp"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// TestCheckNextHop: a next hop is another host on the link, or the host that the route is for; all addresses that the gateway makes of
// its MACs are its own.
func TestCheckNextHop(t *testing.T) {
	c := InterfaceConfig{MAC: gate(10), VTEPMAC: own}
	for _, s := range []string{"10.0.10.254/24", "2001:db8:10::fe/64", "fe80::fe/64"} {
		c.Addresses = append(c.Addresses, netip.MustParsePrefix(s))
	}
	only := InterfaceConfig{MAC: gate(10), Addresses: c.Addresses[2:]}
	for _, x := range []struct {
		c       *InterfaceConfig
		to, via string
		ok      bool
	}{
		{&c, "0.0.0.0/0", "10.0.10.1", true},
		{&c, "0.0.0.0/0", "10.0.11.1", false},
		{&c, "0.0.0.0/0", "10.0.10.254", false},
		{&c, "192.0.2.9/32", "192.0.2.9", true},
		{&c, "192.0.2.8/32", "192.0.2.9", false},
		{&c, "192.0.2.8/29", "192.0.2.8", false},
		{&c, "::/0", "2001:db8:11::1", false},
		{&c, "::/0", "fe80::1", true},
		{&c, "::/0", "fe80::fe", false},
		{&c, "::/0", arp.LinkLocal(gate(10)).String(), false},
		{&c, "::/0", arp.LinkLocal(own).String(), false},
		{&only, "::/0", arp.LinkLocal(own).String(), true},
		{&only, "::/0", arp.LinkLocal(frame.MAC{}).String(), true}, // there is no VTEPMAC
		{&only, "::/0", "2001:db8:11::1", true},                    // no network but the link-local one
		{&only, "0.0.0.0/0", "10.0.10.1", true},
	} {
		err := x.c.CheckNextHop(netip.MustParsePrefix(x.to), netip.MustParseAddr(x.via))
		check.True(t, (err == nil) == x.ok, "%v via %v: %v", x.to, x.via, err)
	}
}
