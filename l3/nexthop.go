package l3

import (
	"encoding/binary"
	"fmt"
	"maps"
	"net/netip"
	"sync"
	"sync/atomic"

	"github.com/vxswitch/vxswitch/frame"
)

// A NextHop is one path of a route:
//
//	Interface and IP     on a link: a router, or the host itself
//	Interface and MAC    a router behind a tunnel, as in symmetric IRB (RFC 9136, section 4.4)
//	Interface and Peer   the far end of a tunnel for IP: a node
//	Interface            an IP port
type NextHop struct {
	Interface *Interface // of the same VRF
	IP        netip.Addr
	MAC       frame.MAC
	Peer      uint16
	Weight    uint8 // its share of the route's flows, relative to those of the others; 0 = 1
}

// String returns the fields that are set, for errors.
func (h NextHop) String() string {
	s := fmt.Sprintf("vni %d", h.Interface.cfg.VNI)
	if h.IP.IsValid() {
		s += " via " + h.IP.String()
	}
	if !h.MAC.IsZero() {
		s += " mac " + h.MAC.String()
	}
	if t := h.Interface.cfg.Tunnel; t != nil {
		s += " peer " + t.PeerName(h.Peer)
	}
	if h.Weight > 1 {
		s += fmt.Sprint(" weight ", h.Weight)
	}
	return s
}

// nextHop is a compiled NextHop. All routes of a VRF share it, so that one write has them pass over it.
type nextHop struct {
	out  *Interface
	ip   netip.Addr
	mac  uint64     // 0: the neighbour's
	to   frame.Dest // of an IP port
	seed uint64     // its number in the choice of a flow's path
	down atomic.Uint32

	// Under nextHops.mu.
	key   NextHop
	uses  int        // in routes
	until frame.Tick // of unreachable
}

// Why a next hop is down. Routes pass it over while they have another.
const (
	setDown     uint32 = 1 << iota // SetDown
	silent                         // the neighbour does not answer
	unreachable                    // ICMP errors of the last 10 s
	unresolved                     // the neighbour is asked for its MAC; no event, since it may answer at once
)

// unreachableFor is how many seconds routes pass over a peer after an ICMP error.
const unreachableFor = 10

// nextHops holds the next hops of a VRF: those of routes, and those that SetDown was told of.
type nextHops struct {
	mu    sync.Mutex
	byKey map[NextHop]*nextHop
	ill   map[*nextHop]struct{} // those with a reason that ends by itself
	n     atomic.Int32          // len(ill)
}

// use returns the next hop of a key for one more route.
func (n *nextHops) use(k NextHop, made func() *nextHop) *nextHop {
	k.Weight = 0
	n.mu.Lock()
	defer n.mu.Unlock()
	h := n.get(k, made)
	h.uses++
	return h
}

// get returns the next hop of a key. n.mu is held.
func (n *nextHops) get(k NextHop, made func() *nextHop) *nextHop {
	h := n.byKey[k]
	if h == nil {
		h = made()
		h.key = k
		n.byKey[k] = h
	}
	return h
}

// release undoes use for the next hops of a route.
func (n *nextHops) release(r *route) {
	if r == nil || r.kind != via {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, p := range r.paths {
		p.hop.uses--
		n.drop(p.hop)
	}
}

// drop forgets a next hop that nobody needs. n.mu is held.
func (n *nextHops) drop(h *nextHop) {
	if h.uses == 0 && h.down.Load()&setDown == 0 {
		n.change(h, 0, ^setDown) // whoever uses it next begins anew
		delete(n.byKey, h.key)
		delete(n.ill, h)
		n.n.Store(int32(len(n.ill)))
	}
}

// change sets and clears reasons of a next hop. It sends an event if the next hop dies or comes back. n.mu is held.
func (n *nextHops) change(h *nextHop, set, clear uint32) {
	was := h.down.Load()
	is := was&^clear | set
	if is == was {
		return
	}
	h.down.Store(is)
	if is&^setDown != 0 {
		n.ill[h] = struct{}{}
	} else {
		delete(n.ill, h)
	}
	n.n.Store(int32(len(n.ill)))
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

// mark is change for the workers.
func (n *nextHops) mark(h *nextHop, set uint32, until frame.Tick) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if h.uses == 0 {
		return
	}
	if set == unreachable {
		h.until = until
	}
	n.change(h, set, 0)
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

// close forgets the next hops on an interface. Routes no longer use them.
func (n *nextHops) close(i *Interface) {
	n.mu.Lock()
	defer n.mu.Unlock()
	maps.DeleteFunc(n.byKey, func(k NextHop, h *nextHop) bool {
		if k.Interface == i {
			h.uses = 0 // for packets under way
		}
		return k.Interface == i
	})
	maps.DeleteFunc(n.ill, func(h *nextHop, _ struct{}) bool { return h.out == i })
	n.n.Store(int32(len(n.ill)))
}

// compile returns the next hop that h stands for.
func (v *VRF) compile(h NextHop) *nextHop {
	return &nextHop{
		out: h.Interface, ip: h.IP, mac: h.MAC.Uint64(), seed: v.gateway.nextHopSeed(h),
		to: frame.NewDest(h.Interface.cfg.Port.Port(), h.Peer),
	}
}

// SetDown says that a next hop is dead, as a probe has found (package bfd), or that it is alive again. Routes pass
// over it while they have another next hop, and only its own flows move. It lasts until the interface is closed,
// whether a route uses the next hop or not.
//
// Next hops are passed over by themselves if their neighbour does not answer, until it does; and if an ICMP error
// says that the peer of a tunnel is unreachable, for 10 s.
func (v *VRF) SetDown(h NextHop, down bool) error {
	h.Weight = 0
	if v.nextHops.setDown(h, down) { // without v.mu, which adding many routes holds for long
		return nil
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if err := v.check(h, h.IP.Is4()); err != nil {
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

// setDown is SetDown of a next hop that there is.
func (n *nextHops) setDown(k NextHop, down bool) bool {
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

// NextHops returns the next hops of all added routes, in any order, and whether each is down.
func (v *VRF) NextHops() map[NextHop]bool {
	n := &v.nextHops
	n.mu.Lock()
	defer n.mu.Unlock()
	all := make(map[NextHop]bool, len(n.byKey))
	for k, h := range n.byKey {
		if h.uses > 0 {
			all[k] = h.down.Load()&^unresolved != 0
		}
	}
	return all
}

// check returns what is wrong with a next hop. v.mu is held.
func (v *VRF) check(h NextHop, is4 bool) error {
	switch {
	case h.Interface == nil || v.interfaces[h.Interface.cfg.VNI] != h.Interface:
		return errNoInterface
	case h.Interface.cfg.Port != 0:
		if t := h.Interface.cfg.Tunnel; t != nil && t.PeerName(h.Peer) == "" {
			return fmt.Errorf("next hop vni %d: Peer: the tunnel has no peer %d", h.Interface.cfg.VNI, h.Peer)
		} else if t == nil && h.Peer != 0 {
			return fmt.Errorf("next hop %v: Peer: %d: must be 0, because the interface is not a tunnel", h, h.Peer)
		}
		return nil
	case h.Peer != 0:
		return fmt.Errorf("next hop %v: Peer: %d: must be 0, because the interface is not a tunnel", h, h.Peer)
	case !h.MAC.IsZero():
		if h.MAC.IsGroup() {
			return fmt.Errorf("next hop %v: MAC: must be the MAC of one host", h)
		}
		return nil
	case !h.IP.IsValid() || h.IP.Is4() != is4:
		return fmt.Errorf("next hop %v: IP: an address of the family of the prefix is required", h)
	case h.Interface.neighbours == nil:
		return fmt.Errorf("next hop %v: Interface: has no Neighbours to resolve IP", h)
	}
	if err := CheckNextHop(h.Interface.cfg.Addresses, h.IP); err != nil {
		return fmt.Errorf("next hop %v: IP: %v: %w", h, h.IP, err)
	}
	return nil
}

// CheckNextHop returns why ip cannot be a next hop on an interface with addrs.
func CheckNextHop(addrs []netip.Prefix, ip netip.Addr) error {
	for _, p := range addrs {
		if err := hostIn(p, ip); err != nil {
			return err
		}
	}
	return nil
}

// nextHopSeed returns the seed of a next hop, which does not depend on the others.
func (g *Gateway) nextHopSeed(h NextHop) uint64 {
	ip := h.IP.As16()
	return g.seed.Hash320(&[5]uint64{
		binary.BigEndian.Uint64(ip[:]), binary.BigEndian.Uint64(ip[8:]), uint64(h.Interface.cfg.VNI), h.MAC.Uint64(), uint64(h.Peer),
	})
}
