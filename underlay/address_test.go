package underlay

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/internal/datagrams"
)

// A local address is one host's, or the wildcard address.
func TestLocalAddresses(t *testing.T) {
	for _, s := range []string{"255.255.255.255", "0.0.0.1", "224.0.0.1", "::ffff:255.255.255.255", "ff02::1"} {
		a := netip.MustParseAddr(s)
		ap := netip.AddrPortFrom(a, 4789)
		_, udp := ListenUDP(ap, nil)
		_, ip := ListenIP(a, nil)
		for what, err := range map[string]error{"ListenUDP": udp, "ListenIP": ip} {
			if err == nil || !strings.HasPrefix(err.Error(), "underlay: local address "+a.Unmap().String()) || !strings.Contains(err.Error(), "must be the address of one host") {
				t.Errorf("%s %v: %v", what, a, err)
			}
		}
	}
	for _, s := range []string{"0.0.0.0:0", "[::]:0"} {
		if _, err := datagrams.Local("underlay", netip.MustParseAddrPort(s)); err != nil {
			t.Errorf("%s: %v", s, err)
		}
	}
}
