package vtep

import (
	"net/netip"

	"github.com/vxswitch/vxswitch/frame"
)

// SetDown says that a peer is dead, as a probe has found (package bfd), or that it is alive again. Each flow of a
// group of peers that uses a dead one goes to another, as long as one is alive. It applies to the address, whether the
// peer is in the tables or not. Frames to the peer alone, and copies of flooded frames, still go there. Events peer-dead
// and peer-alive tell control planes.
func (v *VTEP) SetDown(peer netip.Addr, down bool) error {
	e, err := v.endpoint(netip.AddrPortFrom(peer, 0))
	if err != nil {
		return err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if err := v.errClosed(); err != nil {
		return err
	}
	k := hostKey(e.Host())
	if v.down[k] == down {
		return nil
	}
	if down {
		if v.down == nil {
			v.down = map[hostKey]bool{}
		}
		v.down[k] = true
	} else {
		delete(v.down, k)
	}
	kind := frame.EventPeerAlive
	if down {
		kind = frame.EventPeerDead
	}
	for h := range v.hops.all {
		if h.family >= 0 && h.key() == k {
			h.down.Store(down)
			v.told(kind, h.num)
		}
	}
	return nil
}

// Down reports whether SetDown has said that a peer is dead, or all members of a group.
func (v *VTEP) Down(peer uint16) bool {
	h := v.hops.get(peer)
	if h == nil {
		return false
	}
	for _, m := range h.group {
		if !m.down.Load() {
			return false
		}
	}
	return h.family < 0 || h.down.Load()
}

// pick chooses a member of a group by rendezvous hashing: the one whose number, mixed with the flow, is
// largest. If a member leaves or is down, only its own flows move.
func (h *hop) pick(flow uint32) *hop {
	best := h.best(flow, false)
	if best.down.Load() {
		if up := h.best(flow, true); up != nil {
			return up
		}
	}
	return best
}

// best returns the member for a flow, of all or of those that are up.
func (h *hop) best(flow uint32, up bool) (best *hop) {
	var most uint64
	for _, m := range h.group {
		if up && m.down.Load() {
			continue
		}
		if x := scatter(uint64(flow)<<16 | uint64(m.num)); best == nil || x > most {
			best, most = m, x
		}
	}
	return best
}

// scatter is the finalizer of SplitMix64. Each bit of x changes each bit of the result with probability
// one half, so the members of a group get equal shares of its flows.
func scatter(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
