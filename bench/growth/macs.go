package main

import (
	"math/rand/v2"

	"github.com/vxswitch/vxswitch/bench/rig"
	"github.com/vxswitch/vxswitch/vtep"
)

// macs is one VSI with ever more MACs: half of them behind the port, half behind the
// peer. Each frame asks the table for two at random.
func macs() sweep {
	return sweep{
		name: "macs", unit: "MACs", sizes: upTo(1<<10, 1<<20, 4),
		about: "MACs known in one VSI; frames between two of them at random",
		paths: []path{{"port to tunnel", lookup, "the two entries of a frame come from memory instead of the caches"}},
		build: buildMACs,
	}
}

func buildMACs(b *bed, size int) ([]drive, error) {
	w, p := newWire(), rig.NewPort()
	v, err := vtep.New(nil, w)
	if err != nil {
		return nil, err
	}
	tunnel, local, err := b.join(vni, size, v, p, 0)
	if err != nil {
		return nil, err
	}
	far, err := v.AddPeer(peer())
	if err != nil {
		return nil, err
	}
	vsi, half := local.VSI(), size/2
	vsi.FDB().Grow(size)
	if err := b.learn(vsi, 0, 0, half, local.Dest(0)); err != nil {
		return nil, err
	}
	if err := b.learn(vsi, 1, 0, half, tunnel.Dest(far)); err != nil {
		return nil, err
	}
	p.Fill = fill(blank(), func(f []byte, r *rand.Rand) {
		rig.Address(f, rig.MAC(1, r.IntN(half)), rig.MAC(0, r.IntN(half)))
	})
	return []drive{{run: p.Run, moved: func() int { return w.Copies }, copies: 1}}, nil
}
