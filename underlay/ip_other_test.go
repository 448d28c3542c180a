//go:build !linux

package underlay

import (
	"errors"
	"net/netip"
	"strings"
	"testing"
)

func TestIPUnsupported(t *testing.T) {
	local := netip.MustParseAddr("127.0.0.1")
	if _, err := ListenIP(local, nil); !errors.Is(err, errors.ErrUnsupported) {
		t.Error(err)
	}
	if _, err := ListenIP(local, &IPConfig{DefaultTTL: 256}); err == nil || !strings.HasPrefix(err.Error(), "underlay: IPConfig.TTL: ") {
		t.Error(err)
	}
}
