package underlay_test

import (
	"errors"
	"fmt"
	"net/netip"
	"os"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/underlay"
)

// One datagram to two peers, one of which is of the wrong address family.
func ExampleListenUDP() {
	u, err := underlay.ListenUDP(netip.MustParseAddrPort("127.0.0.1:0"), &underlay.UDPConfig{
		SrcPorts:   underlay.PortRange{Lo: 50000, Hi: 59999},
		DefaultTTL: 32,
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

// A tunnel end for IP in IP, which needs CAP_NET_RAW, and what it hears of its peers.
func ExampleListenIP() {
	u, err := underlay.ListenIP(netip.MustParseAddr("192.0.2.1"), &underlay.IPConfig{Queues: 2})
	if errors.Is(err, os.ErrPermission) {
		fmt.Println("run me as root")
		return
	}
	if err != nil {
		fmt.Println(err)
		return
	}
	defer u.Close()
	u.Unreachable(func(to frame.Endpoint, quoted []byte) {
		fmt.Println("no way to", to.AddrPort().Addr())
	})
	for _, r := range u.Readers() { // two for each queue
		go func() {
			batch := frame.NewBatch(nil)
			for r.Read(batch) == nil {
				for i := range batch.Frames {
					fmt.Println(batch.Frames[i].Kind, len(batch.Frames[i].Bytes()), "bytes")
				}
			}
		}()
	}
}
