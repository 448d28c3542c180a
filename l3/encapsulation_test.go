package l3

import (
	"net/netip"
	"testing"

	"github.com/vxswitch/vxswitch/internal/lab/check"
)

func TestEncapsulationNames(t *testing.T) {
	for e, name := range map[Encapsulation]string{Always: "always", CrossSubnet: "cross-subnet", Never: "never", 3: "invalid", 255: "invalid"} {
		check.True(t, e.String() == name, "%d: %q", e, e)
	}
}

func TestEncapsulationDirect(t *testing.T) {
	subnets := []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("2001:db8::/64")}
	for addr, here := range map[string]bool{"192.0.2.7": true, "192.0.3.7": false, "2001:db8::7": true, "2001:db8:1::7": false} {
		a := netip.MustParseAddr(addr)
		check.True(t, !Always.Direct(a, subnets) && CrossSubnet.Direct(a, subnets) == here && Never.Direct(a, subnets), "%v", a)
		check.True(t, !CrossSubnet.Direct(a, nil), "%v without subnets", a)
	}
}
