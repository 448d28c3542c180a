package afpacket

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/underlay"
)

// Where the prefix of the link is configured, its own address and that for broadcasts are nobody's.
func TestAddressesInPrefix(t *testing.T) {
	local := netip.MustParseAddr
	for _, c := range []struct {
		local, prefix, gateway string
		want                   string // "" = fine
	}{
		{"10.0.0.1", "10.0.0.0/24", "10.0.0.254", ""},
		{"10.0.0.0", "10.0.0.0/31", "10.0.0.1", ""},
		{"10.0.0.255", "10.0.0.0/24", "10.0.0.1", "Config.Prefix: "},
		{"10.0.0.0", "10.0.0.0/24", "10.0.0.1", "Config.Prefix: "},
		{"10.0.0.1", "10.0.0.0/24", "10.0.0.255", "Config.Gateway: "},
		{"10.0.0.1", "10.0.0.0/24", "10.0.0.0", "Config.Gateway: "},
		{"10.0.0.1", "", "255.255.255.255", "Config.Gateway: "},
		{"10.0.0.1", "", "0.0.0.1", "Config.Gateway: "},
		{"2001:db8::1", "2001:db8::/64", "2001:db8::", "Config.Gateway: "},
		{"2001:db8::", "2001:db8::/64", "fe80::1", "Config.Prefix: "},
	} {
		cfg := &Config{Device: "x", Gateway: local(c.gateway)}
		if c.prefix != "" {
			cfg.Prefix = netip.MustParsePrefix(c.prefix)
		}
		_, err := cfg.withDefaults(local(c.local), false)
		if (err == nil) != (c.want == "") || err != nil && (!strings.HasPrefix(err.Error(), "afpacket: "+c.want) || !strings.Contains(err.Error(), "must be the address of one host")) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// A local address is one host's.
func TestLocalAddresses(t *testing.T) {
	for _, s := range []string{"255.255.255.255", "0.0.0.1", "224.0.0.1", "::ffff:255.255.255.255", "ff02::1"} {
		a := netip.MustParseAddr(s)
		_, err := Listen(netip.AddrPortFrom(a, 4789), &Config{Device: "lo"})
		if err == nil || !strings.HasPrefix(err.Error(), "afpacket: local address "+a.Unmap().String()) || !strings.Contains(err.Error(), "must be the address of one host") {
			t.Errorf("%v: %v", a, err)
		}
	}
}

// Ports and checksums are settings of UDP, not of IP-in-IP: on all systems, which is what Listen says where it is not
// supported.
func TestSettingsOfUDP(t *testing.T) {
	cfg := &Config{Device: "no-such-device", SrcPorts: underlay.PortRange{Lo: 50000, Hi: 50009}, ZeroChecksum6RX: true}
	const says = "IP-in-IP has no UDP header"
	if _, err := Listen(netip.MustParseAddrPort("10.0.0.1:4789"), cfg); err == nil || strings.Contains(err.Error(), says) {
		t.Errorf("UDP: %v", err)
	}
	if _, err := ListenIP(netip.MustParseAddr("10.0.0.1"), cfg); err == nil || !strings.Contains(err.Error(), says) {
		t.Errorf("IP-in-IP: %v", err)
	}
}
