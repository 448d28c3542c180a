package underlay_test

import (
	"fmt"
	"net/netip"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/underlay"
)

// One datagram to two peers, one of which is of the wrong address family.
func ExampleListenUDP() {
	u, err := underlay.ListenUDP(netip.MustParseAddrPort("127.0.0.1:0"), &underlay.UDPConfig{
		SrcPorts: underlay.PortRange{Lo: 50000, Hi: 59999},
		TTL:      32,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer u.Close()

	self, err := frame.EndpointFrom(u.LocalAddr())
	if err != nil {
		fmt.Println(err)
		return
	}
	other, err := frame.EndpointFrom(netip.MustParseAddrPort("[2001:db8::1]:4789"))
	if err != nil {
		fmt.Println(err)
		return
	}
	ds := []frame.Datagram{{Parts: [][]byte{[]byte("hello")}, To: []frame.Endpoint{other, self}, DF: true}}
	if err := u.Sender(0).Send(ds); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("lost:", ds[0].Lost, ds[0].Drop)

	batch := frame.NewBatch(nil)
	if err := u.Readers()[0].Read(batch); err != nil {
		fmt.Println(err)
		return
	}
	o := batch.Outer[0]
	fmt.Printf("%s, TTL %d, from the range: %v\n", batch.Frames[0].Bytes(), o.TTL, o.Src.Port >= 50000 && o.Src.Port < 60000)
	// Output:
	// lost: 1 unreachable
	// hello, TTL 32, from the range: true
}
