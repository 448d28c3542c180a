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
		_, packet := ListenPacket(ap, &PacketConfig{Device: "lo"})
		for what, err := range map[string]error{"ListenUDP": udp, "ListenIP": ip, "ListenPacket": packet} {
			if err == nil || !strings.HasPrefix(err.Error(), "underlay: local address "+a.Unmap().String()) || !strings.Contains(err.Error(), "; allowed are ") {
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

// Where the prefix of the link is configured, its own address and that for broadcasts are nobody's.
func TestPacketAddressesInPrefix(t *testing.T) {
	local := netip.MustParseAddr
	for _, c := range []struct {
		local, prefix, gateway string
		want                   string // "" = fine
	}{
		{"10.0.0.1", "10.0.0.0/24", "10.0.0.254", ""},
		{"10.0.0.0", "10.0.0.0/31", "10.0.0.1", ""},
		{"10.0.0.255", "10.0.0.0/24", "10.0.0.1", "PacketConfig.Prefix: "},
		{"10.0.0.0", "10.0.0.0/24", "10.0.0.1", "PacketConfig.Prefix: "},
		{"10.0.0.1", "10.0.0.0/24", "10.0.0.255", "PacketConfig.Gateway: "},
		{"10.0.0.1", "10.0.0.0/24", "10.0.0.0", "PacketConfig.Gateway: "},
		{"10.0.0.1", "", "255.255.255.255", "PacketConfig.Gateway: "},
		{"10.0.0.1", "", "0.0.0.1", "PacketConfig.Gateway: "},
		{"2001:db8::1", "2001:db8::/64", "2001:db8::", "PacketConfig.Gateway: "},
		{"2001:db8::", "2001:db8::/64", "fe80::1", "PacketConfig.Prefix: "},
	} {
		cfg := &PacketConfig{Device: "x", Gateway: local(c.gateway)}
		if c.prefix != "" {
			cfg.Prefix = netip.MustParsePrefix(c.prefix)
		}
		_, err := cfg.withDefaults(local(c.local))
		if (err == nil) != (c.want == "") || err != nil && (!strings.HasPrefix(err.Error(), "underlay: "+c.want) || !strings.Contains(err.Error(), "; allowed are ")) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
