package etcd_test

import (
	"context"
	"fmt"
	"net/netip"

	"github.com/vxswitch/vxswitch/discovery"
	registry "github.com/vxswitch/vxswitch/discovery/etcd"
	"github.com/vxswitch/vxswitch/flannel/etcd"
	"github.com/vxswitch/vxswitch/node"
)

// VTEPs that find each other by etcd need no server among them.
func Example() {
	r, err := registry.New(&registry.Config{Settings: etcd.Settings{Endpoints: []string{"http://192.0.2.200:2379"}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	n, err := node.New(nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer n.Close()
	sp, err := discovery.New(n, &discovery.Config{
		Tunnel:   "vx",
		Local:    netip.MustParseAddr("192.0.2.1"),
		KeyFile:  "/etc/vxswitch/discovery.key",
		Registry: r,
	})
	if err != nil {
		fmt.Println(err) // there is no such file here
		return
	}
	_ = sp.Run(context.Background())
	// Output: discovery: Config.KeyFile: "/etc/vxswitch/discovery.key": no such file or directory
}
