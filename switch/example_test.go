package vswitch_test

import (
	"context"
	"fmt"
	"log"
	"net/netip"

	"github.com/vxswitch/vxswitch/port"
	vswitch "github.com/vxswitch/vxswitch/switch"
	"github.com/vxswitch/vxswitch/underlay"
	"github.com/vxswitch/vxswitch/vtep"
)

// A tunnel: a TAP device on one side, a VXLAN peer on the other. Needs root.
func Example_tunnel() {
	u, err := underlay.ListenUDP(netip.MustParseAddrPort("192.0.2.1:4789"), nil)
	check(err)
	v, err := vtep.New(nil, u)
	check(err)
	tap, err := port.OpenTAP("tap0", nil)
	check(err)
	sw, err := vswitch.New(nil)
	check(err)
	vsi, err := sw.VSI(100, nil)
	check(err)
	_, err = vsi.Attach(v, 100) // a VTEP's tag is the VNI
	check(err)
	_, err = vsi.Attach(tap, 0) // 0: an access port
	check(err)
	check(v.SetFlood(100, netip.MustParseAddrPort("192.0.2.2:4789")))
	check(sw.Run(context.Background()))
}

// A switch without a VTEP is a bridge. These two hosts are Go programs.
func Example() {
	sw, err := vswitch.New(nil)
	check(err)
	vsi, err := sw.VSI(1, nil)
	check(err)
	alice, bob := port.NewPipe(nil), port.NewPipe(nil)
	for _, p := range []*port.Pipe{alice, bob} {
		_, err := vsi.Attach(p, 0)
		check(err)
	}
	go sw.Run(context.Background())
	defer sw.Close()

	hello := append([]byte{
		0xff, 0xff, 0xff, 0xff, 0xff, 0xff, // to everybody
		2, 0, 0, 0, 0, 1, // from alice
		0x88, 0xb5, // local experimental EtherType
	}, "hello"...)
	check(alice.Send(hello))
	b, err := bob.Recv(context.Background())
	check(err)
	fmt.Printf("%s\n", b[14:])
	for e := range vsi.FDB().All() {
		fmt.Println(e.MAC, "is on port", e.Dest, e.Origin)
	}
	// Output:
	// hello
	// 02:00:00:00:00:01 is on port 1 learned
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
