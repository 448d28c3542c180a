package discovery_test

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"

	"github.com/vxswitch/vxswitch/discovery"
	"github.com/vxswitch/vxswitch/node"
	vswitch "github.com/vxswitch/vxswitch/switch"
	"github.com/vxswitch/vxswitch/underlay/memory"
	"github.com/vxswitch/vxswitch/vtep"
)

// A VTEP with a segment, which is the server of its network. The tunnel is in memory, so that this runs everywhere.
func Example() {
	us := netip.MustParseAddr("127.0.0.1")
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	keys := filepath.Join(dir, "keys")
	if err := os.WriteFile(keys, []byte("1 sixteen bytes or more\n"), 0o600); err != nil {
		fmt.Println(err)
		return
	}
	wire := memory.NewNetwork(nil)
	defer wire.Close()
	n, err := node.New(&node.Options{
		Owners: []string{discovery.DefaultOwner},
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
	_, err = n.Segment(100, &node.Segment{
		Tunnels: []node.SegmentTunnel{{Tunnel: "vx", AttachConfig: vswitch.AttachConfig{NoLearn: true}}}, // others say where MACs are
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	sp, err := discovery.New(n, &discovery.Config{Tunnel: "vx", Local: us, Servers: []netip.Addr{us}, KeyFile: keys})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go n.Run(ctx)
	go sp.Run(ctx)
	fmt.Println("server", sp.Status().Servers[0].Addr)
	// Output: server 127.0.0.1
}
