package node

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/internal/lab/geneve"
	"github.com/vxswitch/vxswitch/vtep"
)

// An encapsulation of the program's own does not take the port of VXLAN, unless it is said.
func TestOwnEncapsulationPort(t *testing.T) {
	_, err := running(t).Tunnel("gnv", Tunnel{Config: vtep.Config{Own: geneve.Geneve{}}, Local: netip.MustParseAddr("127.0.0.1")})
	if err == nil || !strings.Contains(err.Error(), "port: required: the encapsulation is the program's own") {
		t.Error(err)
	}
}
