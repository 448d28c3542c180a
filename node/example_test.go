package node_test

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/node"
	"github.com/vxswitch/vxswitch/port"
	vswitch "github.com/vxswitch/vxswitch/switch"
	"github.com/vxswitch/vxswitch/underlay"
	"github.com/vxswitch/vxswitch/underlay/memory"
	"github.com/vxswitch/vxswitch/vtep"
)

func check(err error) {
	if err != nil {
		panic(err)
	}
}

// Two nodes with a tunnel between them, over a network in memory. Without Listen the tunnel has
// sockets.
func Example() {
	wire := memory.NewNetwork(nil)
	defer wire.Close()
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	start := func(local, peer string) *port.Pipe {
		n, err := node.New(&node.Options{Listen: func(t *node.Tunnel) (vtep.Underlay, error) {
			return wire.Listen(t.AddrPort(), nil)
		}})
		check(err)
		t, err := n.Tunnel("vx", node.Tunnel{Local: netip.MustParseAddr(local)})
		check(err)
		seg, err := n.Segment(100, nil)
		check(err)
		check(seg.Join(t, netip.MustParseAddr(peer)))
		host := port.NewPipe(nil)
		check(seg.Add(host, nil))
		go n.Run(ctx)
		return host
	}
	a, b := start("192.0.2.1", "192.0.2.2"), start("192.0.2.2", "192.0.2.1")

	check(a.Send([]byte("\xff\xff\xff\xff\xff\xff" + "\x02\x00\x00\x00\x00\x01" + "\x88\xb5" + "hello")))
	f, err := b.Recv(ctx)
	check(err)
	fmt.Printf("%s\n", f[14:])
	// Output: hello
}

// Settings of the packages underneath are embedded: in Go they are written by their type, in a
// file they are keys like all others.
func ExampleConfig() {
	cfg := &node.Config{
		Config: vswitch.Config{MaxMACs: 100_000},
		Tunnels: []node.Tunnel{{
			Config:    vtep.Config{Name: "vx", Peers: vtep.ListedOnly, Header: vtep.Header{TTL: 32}},
			UDPConfig: underlay.UDPConfig{Queues: 2},
			Local:     netip.MustParseAddr("192.0.2.1"),
		}},
		Ports: []node.Port{{Name: "tap0"}},
		Segments: []node.Segment{{
			VNI: 100, Tunnel: "vx", Flood: []netip.Addr{netip.MustParseAddr("192.0.2.2")},
			Members:   []node.Member{{Port: "tap0", AttachConfig: vswitch.AttachConfig{MaxMACs: 16}}},
			VSIConfig: vswitch.VSIConfig{Ageing: time.Minute},
		}},
	}
	check(cfg.Check())
	text, err := cfg.MarshalJSON()
	check(err)
	same, err := node.Parse(text)
	check(err)
	fmt.Println(same.MaxMACs, same.Tunnels[0].TTL, same.Segments[0].Members[0].MaxMACs, same.Segments[0].Ageing)
	// Output: 100000 32 16 1m0s
}

// All errors come in one pass, each with its place in the text and its key.
func ExampleParse() {
	_, err := node.Parse([]byte(`{
  "tunnels": [{"name": "vx", "local": "192.0.2.1", "ttl": 300}],
  "segments": [
    {"vni": 100, "tunnel": "vy"}, // another name
  ],
}`))
	fmt.Println(err)
	// Output:
	// 2:59: tunnels[0].ttl: 300: must be 1 to 255, 0 for 64, or "inherit"
	// 4:28: segments[0].tunnel: "vy": must be the name of a tunnel
}

// One Update of several things is one change: an error undoes all of them.
func ExampleNode_Update() {
	n, err := node.New(nil)
	check(err)
	defer n.Close()
	err = n.Update(func(c *node.Config) error {
		for vni := range frame.VNI(3) {
			c.Segments = append(c.Segments, node.Segment{VNI: vni + 1, Policy: "web"})
		}
		return nil
	})
	fmt.Println(err)
	fmt.Println(len(n.Config().Segments))
	// Output:
	// segments[0].policy: "web": must be the name of a policy
	// segments[1].policy: "web": must be the name of a policy
	// segments[2].policy: "web": must be the name of a policy
	// 0
}
