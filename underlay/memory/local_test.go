package memory

import (
	"net/netip"
	"strings"
	"testing"
)

// A local address is one host's.
func TestLocalAddresses(t *testing.T) {
	n := NewNetwork(nil)
	for _, s := range []string{"255.255.255.255", "0.0.0.1", "224.0.0.1", "::ffff:255.255.255.255", "ff02::1"} {
		a := netip.MustParseAddr(s)
		_, err := n.Listen(netip.AddrPortFrom(a, 4789), nil)
		if err == nil || !strings.HasPrefix(err.Error(), "memory: local address "+a.Unmap().String()) || !strings.Contains(err.Error(), "must be the address of one host") {
			t.Errorf("%v: %v", a, err)
		}
	}
}
