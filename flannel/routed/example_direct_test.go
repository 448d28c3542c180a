package routed_test

import (
	"context"
	"log"
	"net/netip"

	"github.com/vxswitch/vxswitch/flannel"
	"github.com/vxswitch/vxswitch/flannel/etcd"
	"github.com/vxswitch/vxswitch/flannel/routed"
	"github.com/vxswitch/vxswitch/node"
)

// linkJSON is the configuration of a node on the link eth0, where it has addresses that the host does not have.
const linkJSON = `{
  "ports": [{"name": "eth0", "type": "packet"}],
  "segments": [{
    "vni": 7,
    "members": [{"port": "eth0"}],
    "gateway": {"vrf": "flannel", "mac": "02:00:00:00:07:0b", "addresses": ["192.0.2.11/24", "2001:db8::11/64"]}
  }],
  "vrfs": [{"name": "flannel"}]
}`

// linkTunnel has the routers to nodes that are not on the link.
var linkTunnel = node.Tunnel{
	Gateway:  netip.MustParseAddr("192.0.2.254"),
	Gateway6: netip.MustParseAddr("2001:db8::fe"),
}

// A node of a network with DirectRouting, or backend host-gw, at 192.0.2.11. It needs root.
func Example_direct() {
	kv, err := etcd.New(nil)
	fatal(err)
	defer kv.Close()
	cfg, err := node.Parse([]byte(linkJSON))
	fatal(err)
	n, err := node.New(&node.Options{Owners: []string{"flannel"}})
	fatal(err)
	defer n.Close()
	fatal(n.Apply(cfg))
	shape, err := routed.New(&routed.Config{Node: n, Direct: 7, Tunnel: linkTunnel})
	fatal(err)
	plane, err := flannel.NewPlane(&flannel.PlaneConfig{
		Store: &flannel.Registry{KV: kv}, Shape: shape,
		PublicIP: netip.MustParseAddr("192.0.2.11"), PublicIPv6: netip.MustParseAddr("2001:db8::11"),
	})
	fatal(err)
	go n.Run(context.Background())
	log.Fatal(plane.Run(context.Background()))
}
