//go:build !linux

package underlay

import (
	"errors"
	"net/netip"
	"strings"
	"testing"
)

// Raw IP needs Linux; settings are checked before that is said.
func TestUnsupported(t *testing.T) {
	local := netip.MustParseAddr("127.0.0.1")
	for ttl, want := range map[int]func(error) bool{
		0:   func(err error) bool { return errors.Is(err, errors.ErrUnsupported) },
		256: func(err error) bool { return err != nil && strings.Contains(err.Error(), "Config.DefaultTTL: ") },
	} {
		if _, err := ListenIP(local, &IPConfig{DefaultTTL: ttl}); !want(err) {
			t.Errorf("TTL %d: %v", ttl, err)
		}
	}
}
