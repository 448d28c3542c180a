package evpn

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/vxswitch/vxswitch/evpn/internal/engine/memory"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/node"
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

// A caller may change the settings that it has given.
func TestConfigIsCopied(t *testing.T) {
	n := check.Must(node.New(nil))(t)
	defer n.Close()
	c := Config{AS: 1, RouterID: netip.MustParseAddr("192.0.2.1"), Segments: []Segment{{VNI: 1}}, EthernetSegments: []EthernetSegment{{ESI: bondESI, Port: "p"}}}
	s := check.Must(newSpeaker(n, &c, new(memory.Fabric).Engine(c.RouterID)))(t)
	for i := range 2 {
		c.Segments[0].VNI, c.EthernetSegments[0].Port = 2, "q"
		if s.cfg.Segments[0].VNI != 1 || s.cfg.EthernetSegments[0].Port != "p" {
			t.Errorf("at %d it has what was changed after", i)
		}
		c.Segments[0].VNI, c.EthernetSegments[0].Port = 1, "p"
		check.OK(t, s.Configure(&c))
	}
}
