package vtep_test

import (
	"fmt"
	"net/netip"

	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/underlay/memory"
	"github.com/vxswitch/vxswitch/vtep"
)

// A firewall is a service on path 7.
type firewall struct{}

// Receive passes frames of the path on into the switch. A service that sends them back would count the index down with h.Serve.
func (firewall) Receive(f *frame.Frame, h encap.NSH, _ frame.Endpoint) frame.Verdict {
	if h.Path() != 7 {
		return frame.Drop(frame.NoRoute)
	}
	fmt.Printf("path %d, index %d, TTL %d: %s\n", h.Path(), h.Index(), h.TTL(), f.Bytes()[14:])
	return frame.Continue
}

// Send has all frames begin the path, as a classifier does.
func (firewall) Send(b []byte, f *frame.Frame, _ frame.VNI) []byte {
	return encap.AppendNSH(b, 7, 255, f.Kind, encap.MDVariable, nil)
}

// echo handles OAM packets.
type echo struct{}

func (echo) OAM(p vtep.OAMPacket) { fmt.Printf("OAM in VNI %v: %s\n", p.VNI, p.Data) }

// gpe returns a VTEP for VXLAN-GPE in a network in memory.
func gpe(net *memory.Network, addr string) *vtep.VTEP {
	u, err := net.Listen(netip.MustParseAddrPort(addr), nil)
	if err != nil {
		panic(err)
	}
	v, err := vtep.New(&vtep.Config{Type: encap.TypeGPE}, u)
	if err != nil {
		panic(err)
	}
	_ = v.Control().Open(100) // as a switch does where the VTEP is attached
	return v
}

// One VTEP puts frames on a service path, the other is its service.
func ExampleVTEP_SetServices() {
	net := memory.NewNetwork(nil)
	defer net.Close()
	a, b := gpe(net, "192.0.2.1:4790"), gpe(net, "192.0.2.2:4790")
	defer a.Close()
	defer b.Close()
	_ = a.SetServices(firewall{})
	_ = b.SetServices(firewall{})

	peer, _ := a.AddPeer(netip.MustParseAddrPort("192.0.2.2:4790"))
	f := frame.Make([]byte("\x02\x00\x00\x00\x00\x02" + "\x02\x00\x00\x00\x00\x01" + "\x88\xb5" + "hello"))
	_ = a.Writer(0).Write([]frame.Out{{F: &f, Peer: peer, Tag: 100}})
	_ = b.Readers()[0].Read(frame.NewBatch(nil))
	// Output: path 7, index 255, TTL 62: hello
}

func ExampleVTEP_SetOAM() {
	net := memory.NewNetwork(nil)
	defer net.Close()
	v := gpe(net, "192.0.2.1:4790")
	defer v.Close()
	_ = v.SetOAM(echo{})

	far, _ := net.Listen(netip.MustParseAddrPort("192.0.2.2:4790"), nil)
	defer far.Close()
	header := make([]byte, encap.VXLANLen)
	encap.PutGPE(header, 100, frame.Ethernet, false)
	header[0] |= byte(encap.GPEFlagOAM >> 56)
	to, _ := frame.EndpointFrom(netip.MustParseAddrPort("192.0.2.1:4790"))
	f := frame.Make([]byte("\x02\x00\x00\x00\x00\x02" + "\x02\x00\x00\x00\x00\x01" + "\x88\xb5" + "behind it"))
	plain := append([]byte(nil), header...)
	plain[0] &^= 1
	_ = far.Sender(0).Send([]frame.Datagram{{Parts: [][]byte{header, []byte("alive?")}, To: []frame.Endpoint{to}}, {Parts: [][]byte{plain, f.Bytes()}, To: []frame.Endpoint{to}}})
	batch := frame.NewBatch(nil)
	_ = v.Readers()[0].Read(batch)
	fmt.Printf("%s\n", batch.Frames[0].Bytes()[14:])
	// Output:
	// OAM in VNI 100: alive?
	// behind it
}
