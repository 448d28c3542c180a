package l3

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"sync"
	"sync/atomic"

	"github.com/vxswitch/vxswitch/arp"
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

// nextHops holds the next hops of a VRF: those of routes, and those that SetDown was told of.
type nextHops struct {
	mu    sync.Mutex
	byKey map[NextHop]*nextHop
	gone  map[*Interface]bool   // those whose port is gone
	ill   map[*nextHop]struct{} // those with a reason that ends by itself
	n     atomic.Int32          // len(ill)
}

// use returns the next hop of a key for one more route, which may be that of many prefixes.
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
		if n.gone[h.out] {
			n.change(h, portGone, 0)
		}
	}
	return h
}

// release undoes use for the next hops of a route.
func (n *nextHops) release(r *route) {
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
	delete(n.gone, i)
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

// check returns what is wrong with a next hop of a route to a prefix. v.mu is held.
func (v *VRF) check(h NextHop, to netip.Prefix) error {
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
	case !h.IP.IsValid() || h.IP.Is4() != to.Addr().Is4():
		return fmt.Errorf("next hop %v: IP: an address of the family of the prefix is required", h)
	case h.Interface.neighbours == nil:
		return fmt.Errorf("next hop %v: Interface: has no Neighbours to resolve IP", h)
	}
	if err := h.Interface.cfg.CheckNextHop(to, h.IP); err != nil {
		return fmt.Errorf("next hop %v: IP: %v: %w", h, h.IP, err)
	}
	return nil
}

// CheckNextHop returns why ip cannot be the next hop of a route to a prefix on an interface with these settings. It must be
// the address of another host in a network of the interface; as in "ip route" without onlink, packets would have nowhere to
// go. But it may be anywhere if it is link-local, if the prefix is the host itself, or if the interface has no networks of
// its family, only single addresses.
func (c *InterfaceConfig) CheckNextHop(to netip.Prefix, ip netip.Addr) error {
	inside, networks := false, 0
	for _, p := range c.Addresses {
		if !p.IsValid() {
			return nil // Check refuses the interface
		}
		if err := hostIn(p, ip); err != nil {
			return err
		}
		if p.Addr() == ip {
			return errOwnAddress
		}
		if p.Addr().Is4() == ip.Is4() && !p.IsSingleIP() && !(p.Addr().Is6() && p.Addr().IsLinkLocalUnicast()) {
			inside = inside || p.Contains(ip)
			networks++
		}
	}
	switch {
	case ip == arp.LinkLocal(c.MAC) || !c.VTEPMAC.IsZero() && ip == arp.LinkLocal(c.VTEPMAC):
		return errOwnAddress
	case inside || networks == 0 || ip.Is6() && ip.IsLinkLocalUnicast() || to.IsSingleIP() && to.Addr() == ip:
		return nil
	}
	return fmt.Errorf("is in none of the networks of the interface; must be in one of %v", c.Addresses)
}

var errOwnAddress = errors.New("is an address of the interface itself; must be the address of another host")

// nextHopSeed returns the seed of a next hop, which does not depend on the others.
func (g *Gateway) nextHopSeed(h NextHop) uint64 {
	ip := h.IP.As16()
	return g.seed.Hash320(&[5]uint64{
		binary.BigEndian.Uint64(ip[:]), binary.BigEndian.Uint64(ip[8:]), uint64(h.Interface.cfg.VNI), h.MAC.Uint64(), uint64(h.Peer),
	})
}
