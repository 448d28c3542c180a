package ovsdb_test

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"github.com/vxswitch/vxswitch/node"
	"github.com/vxswitch/vxswitch/ovsdb"
	"github.com/vxswitch/vxswitch/underlay/memory"
	"github.com/vxswitch/vxswitch/vtep"
)

// A switch whose database is not there yet. The tunnel is in memory, so that this runs everywhere.
func Example() {
	us := netip.MustParseAddr("192.0.2.1")
	wire := memory.NewNetwork(nil)
	defer wire.Close()
	n, err := node.New(&node.Options{
		Owners: []string{ovsdb.DefaultOwner},
		Listen: func(t *node.Tunnel) (vtep.Underlay, error) { return wire.Listen(t.AddrPort(), nil) },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer n.Close()
	if _, err := n.Tunnel("vx", node.Tunnel{Local: us, Config: vtep.Config{Peers: vtep.ListedPerVNI}}); err != nil {
		fmt.Println(err)
		return
	}
	s, err := ovsdb.New(n, &ovsdb.Config{Target: "unix:/nowhere/db.sock", Name: "leaf1", Ports: []string{"p1"}, Tunnel: "vx", TunnelIPs: []netip.Addr{us}})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	err = s.Run(ctx)
	fmt.Println(s, s.Status().State, err)
	// Output: leaf1 at unix:/nowhere/db.sock stopped <nil>
}
