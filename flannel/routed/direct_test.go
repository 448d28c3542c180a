package routed_test

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"github.com/vxswitch/vxswitch/flannel"
	"github.com/vxswitch/vxswitch/flannel/routed"
	"github.com/vxswitch/vxswitch/node"
)

// The nodes on the link are those in the prefixes of the gateway in the segment Direct, as they change: without it, or without the
// public address there, nobody is.
func TestLinksChange(t *testing.T) {
	const near, far = "10.3.200.0-24", "10.3.201.0-24"
	for _, backend := range []string{`{"Type": "vxlan", "DirectRouting": true}`, `{"Type": "host-gw"}`} {
		t.Run(backend, func(t *testing.T) {
			m := memoryStore(t, `{"Network": "10.3.0.0/16", "Backend": `+backend+`}`)
			f := newFabric(t, m.KV)
			f.config = &node.Config{VRFs: []node.VRF{{Name: "flannel"}}, Segments: []node.Segment{{VNI: 7}}}
			gateway := func(c *node.Config, addrs ...string) {
				i := slices.IndexFunc(c.Segments, func(s node.Segment) bool { return s.VNI == 7 })
				if c.Segments[i].Gateway = nil; len(addrs) == 0 {
					return
				}
				g := &node.SegmentGateway{VRF: "flannel", Gateway: node.Gateway{MAC: podsMAC(7)}}
				for _, a := range addrs {
					g.Addresses = append(g.Addresses, netip.MustParsePrefix(a))
				}
				c.Segments[i].Gateway = g
			}
			gateway(f.config, "192.0.2.1/24")
			a := f.join(1, func(p *flannel.PlaneConfig, s *routed.Config) { s.Direct = 7 })
			b := flannel.Attrs{Type: a.Status().Network.Backend.Type}
			for i, key := range []string{near, far} {
				if b.IPv4.PublicIP = netip.MustParseAddr([]string{"192.0.2.9", "198.51.100.9"}[i]); b.Type == "vxlan" {
					b.IPv4.VNI, b.IPv4.MAC = 1, podsMAC(100+i)
				}
				m.Put(key, b.Value(), 0)
			}
			for _, c := range []struct {
				gateway, direct []string
			}{
				{[]string{"192.0.2.1/24"}, []string{near}},
				{[]string{"192.0.2.1/24", "198.51.100.1/24"}, []string{near, far}},
				{[]string{"192.0.2.1/32", "198.51.100.1/24"}, []string{far}},
				{[]string{"192.0.2.2/24"}, nil},
				{[]string{"192.0.2.1/24"}, []string{near}},
				{nil, nil},
				{[]string{"192.0.2.1/24"}, []string{near}},
			} {
				if err := a.node.Update(func(x *node.Config) error { gateway(x, c.gateway...); return nil }); err != nil {
					t.Fatal(err)
				}
				until(t, fmt.Sprintf("with %v direct %v", c.gateway, c.direct), func() bool {
					var direct []string
					for _, r := range a.Remotes() {
						if r.Direct {
							direct = append(direct, r.Key)
						}
					}
					return slices.Equal(direct, c.direct)
				})
			}
		})
	}
}
