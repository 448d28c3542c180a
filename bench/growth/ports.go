package main

import (
	"math/rand/v2"

	"github.com/vxswitch/vxswitch/bench/rig"
	"github.com/vxswitch/vxswitch/frame"
)

// ports is one VSI with ever more local ports, a MAC on each. The first one sends.
func ports() sweep {
	return sweep{
		name: "ports", unit: "ports", sizes: []int{2, 16, 64, 256},
		about: "ports of one VSI, without a tunnel; frames from one of them",
		paths: []path{
			{"to one, at random", lookup, "a batch of 64 frames is one Write to one port, and nearly 64 to many"},
			{name: "broadcast to all others", kind: replication},
		},
		build: buildPorts,
	}
}

func buildPorts(b *bed, size int) ([]drive, error) {
	vsi, err := b.vsi(vni, size)
	if err != nil {
		return nil, err
	}
	var all []*rig.Port
	for i := range size {
		p := rig.NewPort()
		a, err := vsi.AttachWith(p, 0, &unlimited)
		if err != nil {
			return nil, err
		}
		if err := b.learn(vsi, 0, i, 1, a.Dest(0)); err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	moved := func() (n int) {
		for _, p := range all {
			n += p.Frames
		}
		return n
	}
	sends := func(copies int, dst func(r *rand.Rand) frame.MAC) drive {
		frames := fill(blank(), func(f []byte, r *rand.Rand) { rig.Address(f, dst(r), rig.MAC(0, 0)) })
		return drive{run: func(n int) { all[0].Fill = frames; all[0].Run(n) }, moved: moved, copies: copies}
	}
	return []drive{
		sends(1, func(r *rand.Rand) frame.MAC { return rig.MAC(0, 1+r.IntN(size-1)) }),
		sends(size-1, func(*rand.Rand) frame.MAC { return frame.Broadcast }),
	}, nil
}
