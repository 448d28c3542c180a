package control_test

import (
	"context"
	"fmt"
	"log"
	"net/netip"

	"github.com/vxswitch/vxswitch/control"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/node"
	"github.com/vxswitch/vxswitch/port"
	"github.com/vxswitch/vxswitch/underlay/memory"
	"github.com/vxswitch/vxswitch/vtep"
)

// newNode makes a node with a host in segment 100, and a tunnel without peers.
func newNode(wire *memory.Network, local string) (*node.Node, *port.Pipe) {
	n, err := node.New(&node.Options{Listen: func(t *node.Tunnel) (vtep.Underlay, error) {
		return wire.Listen(t.AddrPort(), nil)
	}})
	check(err)
	t, err := n.Tunnel("vx", node.Tunnel{Local: netip.MustParseAddr(local)})
	check(err)
	seg, err := n.Segment(100, nil)
	check(err)
	check(seg.Join(t))
	host := port.NewPipe(nil)
	check(seg.Add(host, nil))
	return n, host
}

// tell passes on the hosts that a node has: those now, and then those that come and go. A Ledger keeps their rows, and
// passes on what has changed.
func tell(ctx context.Context, n *node.Node, vtep netip.AddrPort, to control.Programmer) {
	ledger := control.Ledger[frame.MAC]{Loose: true}
	carry := func(e frame.Event) {
		switch e.Kind {
		case frame.EventMACLearned, frame.EventMACMoved:
			if e.Dest.Peer() == 0 { // on a port here
				ledger.Set(e.MAC, control.MAC{VNI: e.VNI, MAC: e.MAC, VTEP: vtep})
				break
			}
			fallthrough
		case frame.EventMACAged, frame.EventMACEvicted, frame.EventMACDeleted:
			ledger.Set(e.MAC)
		} // and all others at once: EventFlushed, EventDetached, EventOverflow
	}
	events := n.Switch().Events()
	defer events.Close()
	for e := range n.Switch().State() {
		carry(e)
	}
	for {
		check(ledger.Flush("toy", to))
		e, err := events.Next(ctx)
		if err != nil {
			return
		}
		carry(e)
	}
}

// What one switch learns, another is told by a control plane, and no frame has to be flooded to find it. A complete agent is
// in examples/agent.
func Example() {
	ctx, cancel := context.WithCancel(context.Background())
	wire := memory.NewNetwork(nil)
	defer wire.Close()
	left, alice := newNode(wire, "192.0.2.1")
	right, bob := newNode(wire, "192.0.2.2")
	for _, n := range []*node.Node{left, right} {
		go n.Run(ctx)
		defer n.Close()
	}
	defer cancel()
	told := right.Switch().Events(frame.EventPeerUp)
	go tell(ctx, left, netip.MustParseAddrPort("192.0.2.1:4789"), right)

	a, b := frame.MAC{2, 0, 0, 0, 0, 0xa}, frame.MAC{2, 0, 0, 0, 0, 0xb}
	send := func(host *port.Pipe, dst, src frame.MAC, text string) {
		check(host.Send(append(append(append(dst[:], src[:]...), 0x88, 0xb5), text...)))
	}
	send(alice, frame.Broadcast, a, "anybody?") // there is no flood list: nobody else hears it
	_, err := told.Next(ctx)                    // the row makes alice's VTEP a peer
	check(err)
	for r := range right.Plane().Rows("toy") {
		fmt.Println(r)
	}
	send(bob, a, b, "hello alice")
	f, err := alice.Recv(ctx)
	check(err)
	fmt.Printf("%s\n", f[14:])
	// Output:
	// mac 02:00:00:00:00:0a vni 100 vtep 192.0.2.1:4789
	// hello alice
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
