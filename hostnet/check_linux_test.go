package hostnet

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/internal/lab/check"
)

func TestCheck(t *testing.T) {
	t.Parallel()
	a := newAlone(t)
	cfg := leg()
	cfg.Forward, cfg.Metric = true, 50
	h := a.open(cfg)
	check.OK(t, h.SetRoutes(to("10.65.2.0/26"), to("fd65:2::/64"), Route{Prefix: netip.MustParsePrefix("10.65.3.0/26"), Table: 300}))
	a.IP("route", "add", "10.65.2.0/26", "via", "10.0.0.2", "proto", "bird", "metric", "20")
	for _, s := range []string{"ipv4.conf.all.rp_filter", "ipv4.conf.vxhost0.rp_filter"} {
		a.Sysctl("net."+s, "1")
	}
	for _, s := range []string{"ipv4.ip_forward", "ipv6.conf.all.forwarding"} {
		a.Sysctl("net."+s, "0")
	}
	var got []string
	for _, err := range h.Check() {
		got = append(got, err.Error())
		check.True(t, !strings.Contains(err.Error(), "\n"), "%q has several lines", err)
	}
	check.Slice(t, "wrong", got, []string{
		"hostnet: packets of other hosts are not forwarded: sysctl -w net.ipv4.ip_forward=1, or net.ipv4.conf.vxhost0.forwarding=1 and that of the other devices",
		"hostnet: strict rp_filter drops packets from addresses without a route into vxhost0: sysctl -w net.ipv4.conf.vxhost0.rp_filter=2",
		"hostnet: packets of other hosts are not forwarded: sysctl -w net.ipv6.conf.all.forwarding=1 (accept_ra=2 on devices that need router advertisements)",
		"hostnet: no rule leads to table 300: ip rule add lookup 300",
		"hostnet: route 10.65.2.0/26 src 10.65.1.60 metric 50: 10.65.2.0/26 via 10.0.0.2 dev eth0 proto bird metric 20 comes first, its metric is lower",
	})
	a.Sysctl("net.ipv4.conf.vxhost0.rp_filter", "2")
	a.Sysctl("net.ipv4.ip_forward", "1")
	a.Sysctl("net.ipv6.conf.all.forwarding", "1")
	a.IP("route", "del", "10.65.2.0/26", "proto", "bird")
	a.IP("rule", "add", "lookup", "300")
	check.Slice(t, "wrong", h.Check(), nil)
	a.Sysctl("net.ipv6.conf.vxhost0.disable_ipv6", "1")
	text := fmt.Sprint(h.Check())
	check.True(t, strings.Contains(text, "IPv6 is off: sysctl -w net.ipv6.conf.vxhost0.disable_ipv6=0"), "wrong: %s", text)
	_, err := Open(&Config{Device: dev, Namespace: a.NS, Protocol: 119, Addresses: []netip.Prefix{netip.MustParsePrefix("fd65:9::1/128")}})
	check.ErrorHas(t, err, "hostnet: address fd65:9::1/128 of vxhost0: IPv6 is off on vxhost0 (disable_ipv6=1)")
}
