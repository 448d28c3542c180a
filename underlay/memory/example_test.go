package memory_test

import (
	"fmt"
	"net/netip"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/underlay/memory"
)

// Two ends of a network inside this process, and a partition between them.
func ExampleNetwork() {
	wire := memory.NewNetwork(&memory.NetworkConfig{MTU: 1500, Seed: 1})
	a, err := wire.Listen(netip.MustParseAddrPort("192.0.2.1:4789"), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	b, err := wire.Listen(netip.MustParseAddrPort("192.0.2.2:4789"), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer wire.Close()

	peer, err := frame.EndpointFrom(b.LocalAddr())
	if err != nil {
		fmt.Println(err)
		return
	}
	ds := []frame.Datagram{{
		Parts: [][]byte{[]byte("header, "), []byte("payload")},
		To:    []frame.Endpoint{peer},
		TOS:   0x10,
		DF:    true,
	}}
	if err := a.Sender(0).Send(ds); err != nil {
		fmt.Println(err)
		return
	}

	batch := frame.NewBatch(nil)
	if err := b.Readers()[0].Read(batch); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%q from %v to %v, TOS %#x, TTL %d\n", batch.Frames[0].Bytes(), batch.Outer[0].Src.AddrPort().Addr(),
		batch.Outer[0].Dst, batch.Outer[0].TOS, batch.Outer[0].TTL)

	wire.Partition(a.LocalAddr().Addr(), b.LocalAddr().Addr())
	if err := a.Sender(0).Send(ds); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("lost as far as the sender knows: %d; cut: %d\n", ds[0].Lost, wire.Stats().Cut)
	// Output:
	// "header, payload" from 192.0.2.1 to 192.0.2.2:4789, TOS 0x10, TTL 64
	// lost as far as the sender knows: 0; cut: 1
}
