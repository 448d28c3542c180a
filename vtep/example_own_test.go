package vtep_test

import (
	"encoding/binary"
	"fmt"
	"net/netip"

	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/underlay/memory"
	"github.com/vxswitch/vxswitch/vtep"
)

// short is an encapsulation of Ethernet frames with a header of four bytes: a version, and the VNI.
type short struct{}

const version = 1

func (short) Header() int { return 4 }

func (short) Put(b []byte, p encap.Packet) (n int, drop frame.Reason) {
	if p.Kind != frame.Ethernet {
		return 0, frame.BadKind
	}
	binary.BigEndian.PutUint32(b, version<<24|uint32(p.VNI))
	return 4, frame.NotDropped
}

func (short) Parse(b []byte) (encap.Packet, int, frame.Reason) {
	if len(b) < 4 {
		return encap.Packet{}, 0, frame.Short
	}
	if b[0] != version {
		return encap.Packet{}, 0, frame.BadHeader
	}
	return encap.Packet{VNI: frame.VNI(binary.BigEndian.Uint32(b)) & frame.MaxVNI}, 4, frame.NotDropped
}

// Two VTEPs speak an encapsulation that only this program knows.
func ExampleConfig_own() {
	net := memory.NewNetwork(nil)
	defer net.Close()
	end := func(addr string) *vtep.VTEP {
		u, err := net.Listen(netip.MustParseAddrPort(addr), nil)
		if err != nil {
			panic(err)
		}
		v, err := vtep.New(&vtep.Config{Own: short{}}, u)
		if err != nil {
			panic(err)
		}
		return v
	}
	a, b := end("192.0.2.1:9999"), end("192.0.2.2:9999")
	defer a.Close()
	defer b.Close()

	peer, _ := a.AddPeer(netip.MustParseAddrPort("192.0.2.2:9999"))
	f := frame.Make([]byte("\x02\x00\x00\x00\x00\x02" + "\x02\x00\x00\x00\x00\x01" + "\x88\xb5" + "hello"))
	_ = a.Writer(0).Write([]frame.Out{{F: &f, Peer: peer, Tag: 7}})

	_ = b.Control().Open(7) // as a switch does where the VTEP is attached
	batch := frame.NewBatch(nil)
	_ = b.Readers()[0].Read(batch)
	fmt.Printf("VNI %v, MTU %d: %s\n", batch.Frames[0].VNI, a.MTU(peer), batch.Frames[0].Bytes()[14:])
	// Output: VNI 7, MTU 1468: hello
}
