package hosted_test

import (
	"context"
	"log"
	"net/netip"

	"github.com/vxswitch/vxswitch/flannel"
	"github.com/vxswitch/vxswitch/flannel/etcd"
	"github.com/vxswitch/vxswitch/flannel/hosted"
	"github.com/vxswitch/vxswitch/node"
)

// The host 192.0.2.1 as a node of the network in an etcd on this host. It needs root.
func Example() {
	kv, err := etcd.New(nil)
	fatal(err)
	defer kv.Close()
	n, err := node.New(nil)
	fatal(err)
	defer n.Close()
	shape, err := hosted.New(&hosted.Config{Node: n, Link: "eth0", LinkMTU: 1500})
	fatal(err)
	plane, err := flannel.NewPlane(&flannel.PlaneConfig{
		Store: &flannel.Registry{KV: kv}, Shape: shape, OneMAC: true, PublicIP: netip.MustParseAddr("192.0.2.1"),
	})
	fatal(err)
	go n.Run(context.Background())
	fatal(plane.Run(context.Background())) // ip route: 10.230.2.0/24 via 10.230.2.0 dev flannel.1 proto 118 metric 515 onlink
}

func fatal(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
