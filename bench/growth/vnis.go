package main

import (
	"encoding/binary"
	"math/rand/v2"

	"github.com/vxswitch/vxswitch/bench/rig"
	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/vtep"
)

const (
	hosts = 4    // MACs of a VNI on either side
	vlans = 4000 // VNIs that one trunk carries, VLANs 1 and up
	turn  = 64   // batches a trunk sends before it is the next one's turn
)

// vnis is ever more VNIs between trunks, on which each has a VLAN, and one VTEP.
func vnis() sweep {
	const why = "the attachment, the VSI and its table come from memory instead of the caches"
	return sweep{
		name: "vnis", unit: "VNIs", sizes: upTo(1, 10_000, 10),
		about: "VNIs between trunks of up to 4000 VLANs and one VTEP, 8 MACs each; each frame in another VNI at random",
		paths: []path{{"port to tunnel", lookup, why}, {"tunnel to port", lookup, why}},
		build: buildVNIs,
	}
}

func buildVNIs(b *bed, size int) ([]drive, error) {
	w := newWire()
	v, err := vtep.New(nil, w)
	if err != nil {
		return nil, err
	}
	far, err := v.AddPeer(peer())
	if err != nil {
		return nil, err
	}
	var trunks []*rig.Port
	for i := range size {
		if i%vlans == 0 {
			trunks = append(trunks, trunk(i, min(vlans, size-i)))
		}
		tunnel, local, err := b.join(frame.VNI(i+1), 2*hosts, v, trunks[i/vlans], uint32(i%vlans+1))
		if err != nil {
			return nil, err
		}
		if err := b.learn(local.VSI(), 0, i*hosts, hosts, local.Dest(0)); err != nil {
			return nil, err
		}
		if err := b.learn(local.VSI(), 1, i*hosts, hosts, tunnel.Dest(far)); err != nil {
			return nil, err
		}
	}
	w.Fill = fill(rig.Tunnelled(blank(), 0), func(f []byte, r *rand.Rand) {
		i := r.IntN(size)
		encap.PutVXLAN(f, frame.VNI(i+1))
		rig.Address(f[encap.VXLANLen:], host(0, i, r), host(1, i, r))
	})
	out := func() (n int) {
		for _, t := range trunks {
			n += t.Frames
		}
		return n
	}
	return []drive{
		{run: func(n int) { inTurn(trunks, size, n) }, moved: func() int { return w.Copies }, copies: 1},
		{run: w.Run, moved: out, copies: 1},
	}, nil
}

// trunk is a port with a VLAN for each of n VNIs, whose frames go to the far side.
func trunk(first, n int) *rig.Port {
	p := rig.NewPort()
	untagged := blank()
	template := append(append(append([]byte(nil), untagged[:12]...), 0x81, 0, 0, 0), untagged[12:]...)
	p.Fill = fill(template, func(f []byte, r *rand.Rand) {
		i := r.IntN(n)
		dst, src := host(1, first+i, r), host(0, first+i, r)
		// The switch takes a tag off in place, so MACs and tag are written again. The IP
		// addresses are 4 bytes further on than without the tag.
		rig.Address(f[4:], dst, src)
		copy(f, dst[:])
		copy(f[6:], src[:])
		binary.BigEndian.PutUint32(f[12:], 0x8100<<16|uint32(i+1))
	})
	return p
}

// host is one of a VNI's MACs on a side.
func host(side byte, i int, r *rand.Rand) frame.MAC { return rig.MAC(side, i*hosts+r.IntN(hosts)) }

// inTurn sends n batches, from each trunk in proportion to its VNIs, in turns, so that
// all VNIs are in use all the time.
func inTurn(trunks []*rig.Port, vnis, n int) {
	for sent := 0; sent < n; {
		for i, t := range trunks {
			share := min(vlans, vnis-i*vlans)
			k := min(max(1, turn*share/vlans), n-sent)
			if len(trunks) == 1 {
				k = min(turn, n-sent)
			}
			if k > 0 {
				t.Run(k)
				sent += k
			}
		}
	}
}
