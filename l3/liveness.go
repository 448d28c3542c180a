package l3

import (
	"fmt"
	"net/netip"

	"github.com/vxswitch/vxswitch/frame"
)

// Why a next hop is down. Routes pass it over while they have another.
const (
	setDown     uint32 = 1 << iota // SetDown
	silent                         // the neighbour does not answer
	unreachable                    // ICMP errors of the last 10 s
	portGone                       // SetPortGone
	unresolved                     // the neighbour is asked for its MAC; no event, since it may answer at once
)

// unreachableFor is how many seconds routes pass over a peer after an ICMP error.
const unreachableFor = 10

// change sets and clears reasons of a next hop. It sends an event if the next hop dies or comes back. n.mu is held.
func (n *nextHops) change(h *nextHop, set, clear uint32) {
	was := h.down.Load()
	is := was&^clear | set
	if is == was {
		return
	}
	h.down.Store(is)
	if is&^(setDown|portGone) != 0 {
		n.ill[h] = struct{}{}
	} else {
		delete(n.ill, h)
	}
	n.n.Store(int32(len(n.ill)))
	h.out.vrf.watchers.Tell(frame.MAC{})
	if (was&^unresolved == 0) != (is&^unresolved == 0) && h.out.cfg.Notify != nil {
		kind := frame.EventNextHopUp
		if is&^unresolved != 0 {
			kind = frame.EventNextHopDown
		}
		h.out.cfg.Notify(h.event(kind))
	}
}

func (h *nextHop) event(kind frame.EventKind) frame.Event {
	return frame.Event{Kind: kind, VNI: h.out.cfg.VNI, IP: h.ip, MAC: h.key.MAC, Dest: h.to}
}

// dead returns the next hops on an interface that are down.
func (n *nextHops) dead(i *Interface) (list []*nextHop) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, h := range n.byKey {
		if h.out == i && h.down.Load()&^unresolved != 0 {
			list = append(list, h)
		}
	}
	return list
}

// mark is change for the workers. It returns false for a next hop that no route uses any more.
func (n *nextHops) mark(h *nextHop, set uint32, until frame.Tick) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if h.uses == 0 {
		return false
	}
	if set == unreachable {
		h.until = until
	}
	n.change(h, set, 0)
	return true
}

// answered ends that the next hop at a neighbour's address is passed over.
func (n *nextHops) answered(i *Interface, ip netip.Addr) {
	if n.n.Load() == 0 {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if h := n.byKey[NextHop{Interface: i, IP: ip}]; h != nil {
		n.change(h, 0, silent|unresolved)
	}
}

// gaveUp notes that the neighbour at a next hop's address does not answer.
func (n *nextHops) gaveUp(i *Interface, ip netip.Addr) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if h := n.byKey[NextHop{Interface: i, IP: ip}]; h != nil {
		n.change(h, silent, 0)
	}
}

// housekeep ends what has lasted long enough, and returns the addresses on an interface that
// have to be asked again, since no packet goes there.
func (n *nextHops) housekeep(i *Interface, now frame.Tick) (ask []netip.Addr) {
	if n.n.Load() == 0 {
		return nil
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for h := range n.ill {
		if h.out != i {
			continue
		}
		if h.down.Load()&unreachable != 0 && int32(now-h.until) >= 0 {
			n.change(h, 0, unreachable)
		}
		switch why := h.down.Load(); {
		case why&(silent|unresolved) == 0:
		case i.neighbours.Resolve(h.ip) != 0:
			n.change(h, 0, silent|unresolved)
		case why&unresolved != 0:
			ask = append(ask, h.ip)
		}
	}
	return ask
}

// SetDown says that a next hop is dead, as a probe has found (package bfd), or that it is alive again. Routes pass
// over it while they have another next hop, and only its own flows move. It lasts until the interface is closed,
// whether a route uses the next hop or not.
//
// Next hops are passed over by themselves if their neighbour does not answer, until it does; and if an ICMP error
// says that the peer of a tunnel is unreachable, for 10 s.
func (v *VRF) SetDown(h NextHop, down bool) error {
	h.Weight = 0
	if v.nextHops.setKnown(h, down) { // without v.mu, which adding many routes holds for long
		return nil
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if err := v.check(h, netip.PrefixFrom(h.IP, h.IP.BitLen())); err != nil {
		return fmt.Errorf("l3: VRF %s: %w", v.name, err)
	}
	if !down {
		return nil
	}
	n := &v.nextHops
	n.mu.Lock()
	defer n.mu.Unlock()
	n.change(n.get(h, func() *nextHop { return v.compile(h) }), setDown, 0)
	return nil
}

// SetPortGone says that the IP port of an interface is gone: routes pass over all next hops on the interface, also those that
// come later, while they have another, until the interface is closed.
func (i *Interface) SetPortGone() {
	n := &i.vrf.nextHops
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.gone == nil {
		n.gone = map[*Interface]bool{}
	}
	n.gone[i] = true
	for _, h := range n.byKey {
		if h.out == i {
			n.change(h, portGone, 0)
		}
	}
}

// setKnown does what SetDown does if there is the next hop; else it returns false.
func (n *nextHops) setKnown(k NextHop, down bool) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	h := n.byKey[k]
	switch {
	case h == nil:
		return false
	case down:
		n.change(h, setDown, 0)
	default:
		n.change(h, 0, setDown)
		n.drop(h)
	}
	return true
}
