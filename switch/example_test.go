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

// ofVendor is a Matcher: it has the frames of hosts whose MACs begin with the same three bytes.
type ofVendor [3]byte

func (v ofVendor) Match(f *frame.Frame) bool { return [3]byte(f.Bytes()[6:]) == v }

// Printers at a trunk's VLAN 10 are in a segment of their own, whatever else is in that VLAN. The VLANs 10 and 20 are bridged.
func ExampleMatcher() {
	sw, err := vswitch.New(nil)
	must(err)
	office, err := sw.VSI(1, nil)
	must(err)
	printers, err := sw.VSI(2, nil)
	must(err)
	trunk := port.NewPipe(&port.PipeConfig{Name: "trunk"})
	for _, vlan := range []uint32{10, 20} {
		_, err := office.Attach(trunk, vlan)
		must(err)
	}
	_, err = printers.AttachWith(trunk, 10, &vswitch.AttachConfig{Match: ofVendor{0x02, 0x00, 0x5e}})
	must(err)
	go sw.Run(context.Background())
	defer sw.Close()

	for _, mac := range []frame.MAC{{2, 0, 0x5e, 0, 0, 1}, {2, 0, 0, 0, 0, 2}} {
		hello := append(frame.Broadcast[:6:6], mac[:]...)
		hello = append(hello, 0x81, 0, 0, 10, 0x88, 0xb5) // in VLAN 10
		must(trunk.Send(append(hello, make([]byte, 46)...)))
	}
	b, err := trunk.Recv(context.Background()) // what others in the office hear
	must(err)
	fmt.Println("in VLAN", binary.BigEndian.Uint16(b[14:]), "from", frame.MAC(b[6:]))
	for _, vsi := range sw.VSIs() {
		for e := range vsi.FDB().All() {
			fmt.Println("VNI", vsi.VNI(), e.MAC, "at", sw.Name(e.Dest))
		}
	}
	// Output:
	// in VLAN 20 from 02:00:00:00:00:02
	// VNI 1 02:00:00:00:00:02 at trunk
	// VNI 2 02:00:5e:00:00:01 at trunk
}
