package datapath_test

import (
	"net/netip"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/offload/internal/datapath"
)

// One flow, from its decision to its end.
func Example() {
	d, err := datapath.Load(16384)
	if err != nil {
		return // all frames go through user space
	}
	defer d.Close()
	const veth, underlay = 7, 2 // indexes of devices
	a, err := d.Attach(veth, datapath.PortIn)
	if err != nil {
		return
	}
	defer a.Close()

	const slot, src, dst = 0, 4711, 815 // epochs by the hash of each MAC
	now := datapath.Validity{Global: d.Epoch(datapath.Global), Src: d.Epoch(src), Dst: d.Epoch(dst)}
	// Now the decision is made, and is this:
	key := datapath.OutKey{Ifindex: veth, Dst: frame.MAC{2, 0, 0, 0, 0, 2}, Src: frame.MAC{2, 0, 0, 0, 0, 1}}
	flow := datapath.Flow{Slot: slot, SrcEpoch: src, DstEpoch: dst, Oif: underlay, How: datapath.Neigh, Max: 1464,
		Outer: datapath.Outer{Local: netip.MustParseAddr("192.0.2.1"), Remote: netip.MustParseAddr("192.0.2.2"), Port: 4789,
			SrcPorts: [16]uint16{50001, 50002, 50003, 50004, 50005, 50006, 50007, 50008, 50009, 50010, 50011, 50012, 50013, 50014, 50015, 50016},
			VNI:      4100, TTL: 64}}
	d.Slot(slot).Validate(now)
	if err := d.Put(key, &flow); err != nil {
		return
	}

	// The destination has moved: the tables are written, then
	d.Bump(dst) // and no later frame is carried

	d.Slot(slot).Kill()
	_ = d.Delete(key)
	_ = datapath.Grace()
	packets, bytes, _ := d.Slot(slot).Counters() // the last of it
	_, _ = packets, bytes
	d.Slot(slot).Clear() // for another flow
}
