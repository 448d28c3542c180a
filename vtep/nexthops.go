package vtep

import (
	"errors"
	"fmt"

	"github.com/vxswitch/vxswitch/frame"
)

// members returns those of a group, none for other hops.
func (h *hop) members() []*hop {
	if list := h.group.Load(); list != nil {
		return *list
	}
	return nil
}

// Group returns a number that stands for several peers. Each flow goes to one of them. In a group with
// one peer more or less, only the flows of that peer change.
func (v *VTEP) Group(peers ...uint16) (uint16, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	list, err := v.group(peers)
	if err != nil {
		return 0, err
	}
	g := &hop{family: -1, added: true}
	g.group.Store(&list)
	if err := v.hops.add(g); err != nil {
		return 0, err
	}
	v.refer(list, 1)
	v.toldUp(g)
	return g.num, nil
}

// SetGroup changes the peers of a group that Group returned, under traffic: for all FDB entries with its number at once.
func (v *VTEP) SetGroup(num uint16, peers ...uint16) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	list, err := v.group(peers)
	if err != nil {
		return err
	}
	g := v.hops.get(num)
	if g == nil || g.family >= 0 || !g.added {
		return fmt.Errorf("vtep: group: %d: must be a number of Group", num)
	}
	was, dead := g.members(), g.dead()
	g.group.Store(&list)
	v.refer(list, 1)
	v.refer(was, -1)
	switch {
	case !dead && g.dead():
		v.told(frame.EventPeerDead, num)
	case dead && !g.dead():
		v.told(frame.EventPeerAlive, num)
	}
	v.changed()
	return nil
}

// group returns the hops of the peers for a group. v.mu is held.
func (v *VTEP) group(peers []uint16) (list []*hop, err error) {
	if err := v.errClosed(); err != nil {
		return nil, err
	}
	for _, n := range peers {
		h := v.hops.get(n)
		if h == nil || h.family < 0 || h.retired || h.mcast {
			return nil, fmt.Errorf("vtep: group: there is no peer %d", n)
		}
		list = append(list, h)
	}
	if len(list) == 0 {
		return nil, errors.New("vtep: group: at least one peer is needed")
	}
	return list, nil
}

// refer adds to the references to hops. v.mu is held.
func (v *VTEP) refer(list []*hop, n int) {
	for _, h := range list {
		v.list(h, func() { h.refs += n })
	}
}

// only returns the hop of a number: for that of a group with one peer, the peer.
func (v *VTEP) only(num uint16) *hop {
	h := v.hops.get(num)
	if h != nil {
		if list := h.members(); len(list) == 1 {
			return list[0]
		}
	}
	return h
}
