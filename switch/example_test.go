package vswitch_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"log"
	"net/netip"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/port"
	vswitch "github.com/vxswitch/vxswitch/switch"
	"github.com/vxswitch/vxswitch/underlay"
	"github.com/vxswitch/vxswitch/vtep"
)

// A tunnel: a TAP device on one side, a VXLAN peer on the other. Needs root.
func Example_tunnel() {
	u, err := underlay.ListenUDP(netip.MustParseAddrPort("192.0.2.1:4789"), nil)
	must(err)
	v, err := vtep.New(nil, u)
	must(err)
	tap, err := port.OpenTAP("tap0", nil)
	must(err)
	sw, err := vswitch.New(nil)
	must(err)
	vsi, err := sw.VSI(100, nil)
	must(err)
	_, err = vsi.Attach(v, 100) // a VTEP's tag is the VNI
	must(err)
	_, err = vsi.Attach(tap, 0) // 0: an access port
	must(err)
	must(v.SetFlood(100, netip.MustParseAddrPort("192.0.2.2:4789")))
	must(sw.Run(context.Background()))
}

// A switch without a VTEP is a bridge. These two hosts are Go programs.
func Example() {
	sw, err := vswitch.New(nil)
	must(err)
	vsi, err := sw.VSI(1, nil)
	must(err)
	alice, bob := port.NewPipe(nil), port.NewPipe(nil)
	for _, p := range []*port.Pipe{alice, bob} {
		_, err := vsi.Attach(p, 0)
		must(err)
	}
	go sw.Run(context.Background())
	defer sw.Close()

	hello := append([]byte{
		0xff, 0xff, 0xff, 0xff, 0xff, 0xff, // to everybody
		2, 0, 0, 0, 0, 1, // from alice
		0x88, 0xb5, // local experimental EtherType
	}, "hello"...)
	must(alice.Send(hello))
	b, err := bob.Recv(context.Background())
	must(err)
	fmt.Printf("%s\n", b[14:])
	for e := range vsi.FDB().All() {
		fmt.Println(e.MAC, "is on port", e.Dest, e.Origin)
	}
	// Output:
	// hello
	// 02:00:00:00:00:01 is on port 1 learned
}

// A full-sized packet on its way into a tunnel that takes 1464 bytes: what its sender hears, as
// often as the switch is set to tell it.
func ExampleSwitch_TooBig() {
	sw, err := vswitch.New(&vswitch.Config{TooBig: vswitch.TooBigConfig{PerSender: 1}})
	must(err)
	defer sw.Close()
	packet := make([]byte, 14+1500)
	copy(packet, []byte{
		2, 0, 0, 0, 0, 0xb, // to
		2, 0, 0, 0, 0, 0xa, // from
		8, 0, // IPv4
		0x45, 0, 1500 >> 8, 1500 & 0xff, 0, 0, 0x40, 0, // DF
		64, 17, 0xa5, 0xbd, // UDP, checksum
		192, 168, 7, 1, // from
		192, 168, 7, 2, // to
	})
	for range 2 {
		f := frame.Make(packet)
		f.From = frame.NewDest(1, 0) // port 1
		fmt.Println(sw.TooBig().Process(&f, frame.At{MTU: 1464}))
		if b := f.Bytes(); len(b) < len(packet) {
			fmt.Println("to", frame.MAC(b), "from", frame.MAC(b[6:]))
			fmt.Println("ICMP type", b[34], "code", b[35], "MTU", binary.BigEndian.Uint16(b[40:]))
		}
	}
	fmt.Println(sw.Stats().TooBig.Sent4, "sent")
	// Output:
	// reply
	// to 02:00:00:00:00:0a from 02:00:00:00:00:0b
	// ICMP type 3 code 4 MTU 1450
	// drop too-big
	// 1 sent
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
