package vtep_test

import (
	"fmt"
	"net/netip"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/underlay/memory"
	"github.com/vxswitch/vxswitch/vtep"
)

// A VTEP without a switch is a tunnel one can read and write.
func Example() {
	net := memory.NewNetwork(nil)
	defer net.Close()
	end := func(addr string) *vtep.VTEP {
		u, err := net.Listen(netip.MustParseAddrPort(addr), nil)
		if err != nil {
			panic(err)
		}
		v, err := vtep.New(nil, u)
		if err != nil {
			panic(err)
		}
		return v
	}
	a, b := end("192.0.2.1:4789"), end("192.0.2.2:4789")
	defer a.Close()
	defer b.Close()

	peer, _ := a.AddPeer(netip.MustParseAddrPort("192.0.2.2:4789"))
	f := frame.Make([]byte("\x02\x00\x00\x00\x00\x02" + "\x02\x00\x00\x00\x00\x01" + "\x88\xb5" + "hello"))
	_ = a.Writer(0).Write([]frame.Out{{F: &f, Peer: peer, Tag: 4100}})

	_ = b.Control().Open(4100)
	batch := frame.NewBatch(nil)
	if err := b.Readers()[0].Read(batch); err != nil {
		panic(err)
	}
	in := &batch.Frames[0]
	fmt.Printf("VNI %v from %s: %s\n", in.VNI, b.PeerName(in.From.Peer()), in.Bytes()[14:])
	// Output: VNI 4100 from 192.0.2.1:4789: hello
}

func ExampleVTEP_SetFlood() {
	net := memory.NewNetwork(nil)
	defer net.Close()
	u, _ := net.Listen(netip.MustParseAddrPort("192.0.2.1:4789"), nil)
	v, _ := vtep.New(nil, u)
	defer v.Close()
	_ = v.Control().Open(100) // as a switch does where the VTEP is attached
	_ = v.SetFlood(100,
		netip.MustParseAddrPort("192.0.2.3:0"), // the VTEP's own destination port
		netip.MustParseAddrPort("192.0.2.2:4789"),
		netip.MustParseAddrPort("192.0.2.3:4789"), // again
		netip.MustParseAddrPort("192.0.2.1:4789")) // this VTEP
	fmt.Println(v.Flood(100))
	// Output: [192.0.2.3:4789 192.0.2.2:4789]
}
