package capture_test

import (
	"bytes"
	"fmt"
	"net/netip"

	"github.com/google/gopacket/pcapgo"

	"github.com/vxswitch/vxswitch/capture"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/port"
	"github.com/vxswitch/vxswitch/underlay/memory"
)

// Capture what goes in and out of a port, for a while, and read it back.
func ExampleCapture() {
	c, err := capture.New(nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	p, err := c.Port(port.NewPipe(&port.PipeConfig{Name: "h1"}))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer p.Close()
	// Attach p to a switch. Here a frame is written to it.
	f := frame.Make([]byte("to-macfrommc\x88\xb5hello"))
	w := p.Writer(0)

	var file bytes.Buffer // os.Create("h1.pcapng")
	_ = c.Start(&file)
	_ = w.Write([]frame.Out{{F: &f}})
	_ = c.Stop()
	_ = w.Write([]frame.Out{{F: &f}})

	r, err := pcapgo.NewNgReader(&file, pcapgo.NgReaderOptions{WantMixedLinkType: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	for {
		packet, info, err := r.ReadPacketData()
		if err != nil {
			break
		}
		i, _ := r.Interface(info.InterfaceIndex)
		fmt.Printf("%s: %q\n", i.Name, packet)
	}
	fmt.Printf("%+v\n", c.Stats())
	// Output:
	// h1: "to-macfrommc\x88\xb5hello"
	// {Packets:1 Dropped:0}
}

// The tunnel side: give the underlay to the VTEP with the capture around it.
func ExampleCapture_Underlay() {
	c, err := capture.New(nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	net := memory.NewNetwork(nil)
	defer net.Close()
	m, err := net.Listen(netip.MustParseAddrPort("192.0.2.1:4789"), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	u := c.Underlay(m) // vtep.New(nil, u)
	defer u.Close()

	var file bytes.Buffer
	_ = c.Start(&file)
	to, _ := frame.EndpointFrom(netip.MustParseAddrPort("192.0.2.2:4789"))
	_ = u.Sender(0).Send([]frame.Datagram{{Parts: [][]byte{[]byte("payload")}, To: []frame.Endpoint{to}}})
	_ = c.Stop()

	r, err := pcapgo.NewNgReader(&file, pcapgo.NgReaderOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	packet, _, err := r.ReadPacketData()
	fmt.Printf("%x %s %v\n", packet[12:20], packet[28:], err)
	// Output: c0000201c0000202 payload <nil>
}
