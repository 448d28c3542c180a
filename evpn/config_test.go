package evpn

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/vxswitch/vxswitch/frame"
)

// A segment and a VRF export so many route targets that those of a route fit into a message.
func TestExportTargets(t *testing.T) {
	var list []string
	for i := range maxExport + 1 {
		list = append(list, fmt.Sprintf("65000:%d", i))
	}
	for _, c := range []struct {
		export []string
		want   string
	}{
		{list[:maxExport], "<nil>"},
		{list, "evpn: Config.Segments[0].Export: 61 route targets, at most 60 are allowed\nevpn: Config.VRFs[0].Export: 61 route targets, at most 60 are allowed"},
	} {
		cfg := Config{AS: 1, RouterID: netip.MustParseAddr("192.0.2.1"), Segments: []Segment{{VNI: frame.VNI(1), Import: list, Export: c.export}},
			VRFs: []VRF{{Name: "red", Import: list, Export: c.export}}}
		if err := cfg.Check(); fmt.Sprint(err) != c.want {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
}
