package control_test

import (
	"context"
	"fmt"
	"log"
	"net/netip"

	"github.com/vxswitch/vxswitch/control"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/port"
	vswitch "github.com/vxswitch/vxswitch/switch"
	"github.com/vxswitch/vxswitch/underlay/memory"
	"github.com/vxswitch/vxswitch/vtep"
)

const segment frame.VNI = 100

// site is a switch with a host, a tunnel, and a Plane.
type site struct {
	addr  netip.AddrPort
	sw    *vswitch.Switch
	vsi   *vswitch.VSI
	host  *port.Pipe
	plane *control.Plane
}

func newSite(net *memory.Network, addr string) *site {
	s := &site{addr: netip.MustParseAddrPort(addr), host: port.NewPipe(&port.PipeConfig{Name: "host"})}
	u, err := net.Listen(s.addr, nil)
	check(err)
	v, err := vtep.New(nil, u)
	check(err)
	s.sw, err = vswitch.New(nil)
	check(err)
	s.vsi, err = s.sw.VSI(segment, nil)
	check(err)
	_, err = s.vsi.AttachWith(v, uint32(segment), &vswitch.AttachConfig{NoLearn: true}) // tunnels teach nothing: rows do
	check(err)
	_, err = s.vsi.Attach(s.host, 0)
	check(err)
	s.plane, err = control.New(&control.Config{Switch: s.sw})
	check(err)
	return s
}

// advertise is a control plane in one function: the next thing that a switch learns about a
// host of its own becomes a row of the other's Plane.
func advertise(ctx context.Context, events *vswitch.Events, from *site, to control.Programmer) {
	for {
		e, err := events.Next(ctx)
		check(err)
		if e.VNI != segment || e.Dest.Peer() != 0 {
			continue
		}
		row := control.MAC{VNI: e.VNI, MAC: e.MAC, VTEP: from.addr}
		u := control.Update{Add: []control.Row{row}}
		switch e.Kind {
		case frame.EventMACLearned:
		case frame.EventMACMoved: // a host that was elsewhere: what others have learned is old
			u.Del = u.Add
		case frame.EventMACAged, frame.EventMACEvicted:
			u.Del, u.Add = u.Add, nil
		default: // of EventOverflow a real one makes a Snapshot out of vsi.FDB().All()
			continue
		}
		check(to.Program("toy", u))
		return
	}
}

// What one switch learns, another is told by a control plane, and no frame has to be flooded
// to find it.
func Example() {
	ctx, cancel := context.WithCancel(context.Background())
	net := memory.NewNetwork(nil)
	defer net.Close()
	left, right := newSite(net, "10.0.0.1:4789"), newSite(net, "10.0.0.2:4789")
	events := left.sw.Events()
	for _, s := range []*site{left, right} {
		go s.sw.Run(ctx)
		defer s.sw.Close()
	}
	defer cancel()

	alice, bob := frame.MAC{2, 0, 0, 0, 0, 0xa}, frame.MAC{2, 0, 0, 0, 0, 0xb}
	send := func(s *site, dst, src frame.MAC, text string) {
		check(s.host.Send(append(append(append(dst[:], src[:]...), 0x88, 0xb5), text...)))
	}
	send(left, frame.Broadcast, alice, "anybody?") // there is no flood list: nobody else hears it
	advertise(ctx, events, left, right.plane)
	for r := range right.plane.Rows("toy") {
		fmt.Println(r)
	}
	send(right, alice, bob, "hello alice")
	b, err := left.host.Recv(ctx)
	check(err)
	fmt.Printf("%s\n", b[14:])

	right.plane.Forget("toy")
	fmt.Println(right.vsi.FDB().Lookup(alice))
	// Output:
	// mac 02:00:00:00:00:0a vni 100 vtep 10.0.0.1:4789
	// hello alice
	// 0 false
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
