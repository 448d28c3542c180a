package node

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/port"
	vswitch "github.com/vxswitch/vxswitch/switch"
)

// However a gateway goes that advertises itself, with its segment, alone, or among other changes: hosts hear that it is their router no
// longer.
func TestRetiredGateway(t *testing.T) {
	const (
		config = `{"ports": [{"name": "a"}], "vrfs": [{"name": "v"}], "segments": [{"vni": 1, "members": [{"port": "a"}] %s}]}`
		with   = `, "gateway": {"vrf": "v", "addresses": ["fd10::1/64"], "mac": "02:00:00:00:10:01", "routerAdvertisements": {}}`
		silent = `, "gateway": {"vrf": "v", "addresses": ["fd10::1/64"], "mac": "02:00:00:00:10:01"}`
	)
	for name, after := range map[string]string{
		"alone": "", "with other changes": `, "noFlood": ["unknown"], "innerVLAN": "pass"`, "advertises no longer": silent,
		"another MAC": strings.Replace(with, "10:01", "10:02", 1),
	} {
		lost := 0
		for range 10 {
			n := running(t)
			a := port.NewPipe(&port.PipeConfig{Name: "a"})
			n.open.device = func(*Port) (vswitch.Port, error) { return a, nil }
			must(t, n.Apply(parse(t, fmt.Sprintf(config, with))))
			must(t, n.Apply(parse(t, fmt.Sprintf(config, after))))
			if !hearsEnd(t, a) {
				lost++
			}
			must(t, n.Close())
		}
		if lost > 0 {
			t.Errorf("%s: %d of 10 heard nothing", name, lost)
		}
	}
}

// hearsEnd reports whether a router advertisement of lifetime 0 comes.
func hearsEnd(t *testing.T, a *port.Pipe) bool {
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	for {
		b, err := a.Recv(ctx)
		if err != nil {
			return false
		}
		if len(b) > 62 && b[20] == 58 && b[54] == 134 && b[60] == 0 && b[61] == 0 {
			return true
		}
	}
}
