//go:build !linux

package underlay

import (
	"errors"
	"net/netip"
	"strings"
	"testing"
)

func TestUnsupported(t *testing.T) {
	local := netip.MustParseAddrPort("127.0.0.1:0")
	for ttl, want := range map[int]func(error) bool{
		0:   func(err error) bool { return errors.Is(err, errors.ErrUnsupported) },
		256: func(err error) bool { return err != nil && strings.Contains(err.Error(), "Config.DefaultTTL: ") },
	} {
		_, udp := ListenUDP(local, &UDPConfig{DefaultTTL: ttl})
		_, ip := ListenIP(local.Addr(), &IPConfig{DefaultTTL: ttl})
		if !want(udp) || !want(ip) {
			t.Errorf("TTL %d: %v, %v", ttl, udp, ip)
		}
	}
}
