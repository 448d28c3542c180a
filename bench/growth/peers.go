package main

import (
	"net/netip"

	"github.com/vxswitch/vxswitch/bench/rig"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/vtep"
)

// peers is a flood list that gets ever longer, and broadcasts of 64 flows. An underlay
// is handed all peers of a frame at once; what the copies themselves cost is another
// path, with an underlay that gathers each copy in memory.
func peers() sweep {
	return sweep{
		name: "peers", unit: "peers", sizes: upTo(1, 1000, 10),
		about: "peers in the flood list of a VNI; broadcasts",
		paths: []path{{name: "up to the underlay", kind: replication}, {name: "with a copy in memory for each", kind: replication}},
		build: buildPeers,
	}
}

func buildPeers(b *bed, size int) ([]drive, error) {
	w, p := newWire(), rig.NewPort()
	v, err := vtep.New(nil, w)
	if err != nil {
		return nil, err
	}
	if _, _, err := b.join(vni, frame.MaxBatch, v, p, 0); err != nil {
		return nil, err
	}
	var to []netip.AddrPort
	for i := range size {
		to = append(to, netip.AddrPortFrom(netip.AddrFrom4([4]byte{198, 18, byte(i >> 8), byte(i)}), 4789))
	}
	if err := v.SetFlood(vni, to...); err != nil {
		return nil, err
	}
	for i := range frame.MaxBatch {
		p.Packets = append(p.Packets, rig.Packet(frame.Broadcast, rig.MAC(0, i), frameSize))
	}
	sends := func(gather bool) drive {
		return drive{
			run:    func(n int) { w.gather = gather; p.Run(n) },
			moved:  func() int { return w.Copies },
			copies: size,
		}
	}
	return []drive{sends(false), sends(true)}, nil
}
