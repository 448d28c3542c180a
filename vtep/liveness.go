package vtep

import (
	"net/netip"
	"slices"

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
	is := func(h *hop) bool { return h.family >= 0 && h.key() == k }
	for h := range v.hops.all {
		if is(h) {
			h.down.Store(down)
		}
	}
	for h := range v.hops.all {
		others := func(m *hop) bool { return !is(m) && !m.down.Load() }
		if !h.retired && (is(h) || slices.ContainsFunc(h.members(), is) && !slices.ContainsFunc(h.members(), others)) {
			v.told(kind, h.num)
		}
	}
	return nil
}

// Down reports whether SetDown has said that a peer is dead, or all members of a group.
func (v *VTEP) Down(peer uint16) bool {
	h := v.hops.get(peer)
	return h != nil && h.dead()
}

func (h *hop) dead() bool {
	for _, m := range h.members() {
		if !m.down.Load() {
			return false
		}
	}
	return h.family < 0 || h.down.Load()
}
