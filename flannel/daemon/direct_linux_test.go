package daemon

import (
	"net/netip"
	"path/filepath"
	"testing"

	"github.com/vxswitch/vxswitch/flannel"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/node"
)

// With DirectRouting the tunnel shares the address of the gateway on the link, and reaches nodes elsewhere through a router.
func TestDirectGateway(t *testing.T) {
	h, x := host(t)
	m := flannel.NewMemory(`{"Network": "10.3.0.0/16", "Backend": {"Type": "vxlan", "DirectRouting": true}}`)
	t.Cleanup(func() { m.Close() })
	router := netip.MustParseAddr("192.0.2.254")
	g := &node.SegmentGateway{VRF: "flannel", Gateway: node.Gateway{MAC: frame.MAC{2, 0, 0, 0, 0, 11}, Addresses: []netip.Prefix{netip.MustParsePrefix("192.0.2.11/24")}}}
	h.Do(func() {
		check.OK(t, x.Apply(&node.Config{
			Ports:    []node.Port{{Name: "eth0", Type: node.PortPacket}},
			Segments: []node.Segment{{VNI: 200}, {VNI: 7, Members: []node.Member{{Port: "eth0"}}, Gateway: g}},
			VRFs:     []node.VRF{{Name: "flannel"}},
		}))
	})
	runConfig(t, x, h, &flannel.Registry{KV: m.KV()}, &Config{Pods: 200, Direct: 7, Gateway: router, PublicIP: netip.MustParseAddr("192.0.2.11"),
		Iface: []string{"eth0"}, SubnetFile: filepath.Join(t.TempDir(), "subnet.env")})
	if l := x.Running().Tunnels; len(l) != 1 || l[0].Underlay != node.UnderlayPacket || l[0].Gateway != router {
		t.Errorf("%+v", l)
	}
}
