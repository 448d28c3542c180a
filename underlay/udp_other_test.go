//go:build !linux

package underlay

import (
	"errors"
	"net/netip"
	"testing"
)

func TestUDPUnsupported(t *testing.T) {
	if _, err := ListenUDP(netip.MustParseAddrPort("127.0.0.1:0"), nil); !errors.Is(err, errors.ErrUnsupported) {
		t.Error(err)
	}
}
