package vtep

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/hostaddr"
	"github.com/vxswitch/vxswitch/internal/mix"
)

// hostKey is a frame.Endpoint without its port.
type hostKey frame.Endpoint

// Hash implements [index.Key]. Who sends packets chooses their source address, but not the
// interface they are on.
func (k hostKey) Hash(secret *mix.Key) uint64 {
	return secret.Hash128(binary.BigEndian.Uint64(k.IP[:8])^uint64(k.Scope), binary.BigEndian.Uint64(k.IP[8:]))
}

// endpoint checks an address somebody configured. Port 0 stays: see peer.
func (v *VTEP) endpoint(ap netip.AddrPort) (frame.Endpoint, error) {
	e, err := v.resolve(ap)
	if err != nil {
		return e, err
	}
	if err := hostaddr.Check(ap.Addr()); err != nil {
		return e, fmt.Errorf("vtep: peer %v: %w", ap.Addr().Unmap(), err)
	}
	return e, v.reaches(ap, e)
}

// reaches checks that there is a way to an address somebody configured.
func (v *VTEP) reaches(ap netip.AddrPort, e frame.Endpoint) error {
	if v.cfg.Type == encap.TypeIPIP && e.Port != 0 {
		return fmt.Errorf("vtep: peer %v: IP-in-IP has no ports", ap)
	}
	if v.sides[sideOf(e)] == nil {
		return fmt.Errorf("vtep: peer %v: the VTEP has no underlay of this address family", ap.Addr().Unmap())
	}
	return nil
}

// isLocal reports whether e is an address of this VTEP.
func (v *VTEP) isLocal(e frame.Endpoint) bool {
	s := v.sides[sideOf(e)]
	return s != nil && e.Host() == s.local.Load().Endpoint
}

// AddPeer lists a peer and returns its number, for a static entry in an FDB. Adding
// a peer that is known returns the number it has, and aims it at the given port. Port
// 0 stands for the VTEP's destination port, or the one the peer is aimed at already. Where
// SetPeers has a port for the peer, that holds.
func (v *VTEP) AddPeer(addr netip.AddrPort) (uint16, error) {
	e, err := v.endpoint(addr)
	if err != nil {
		return 0, err
	}
	if v.isLocal(e) {
		return 0, fmt.Errorf("vtep: peer %v: is this VTEP's own address", addr.Addr())
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if err := v.errClosed(); err != nil {
		return 0, err
	}
	h, err := v.peer(e)
	if err != nil {
		return 0, err
	}
	v.list(h, func() { h.added, h.deleted = true, false })
	return h.num, nil
}

// DeletePeer removes a number that AddPeer, NextHop or Group returned: at its next
// Retire the switch forgets the number and the entries that name it. A peer that is
// in a flood list or a group stays until it is taken out of them.
func (v *VTEP) DeletePeer(num uint16) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if h := v.hops.get(num); h != nil && h.added {
		v.list(h, func() { h.added, h.deleted = false, true })
		for _, m := range h.group {
			v.list(m, func() { m.refs-- })
		}
	}
}

// peer returns the hop of a host, making one if there is none. A port in e aims the
// hop at it; without one it stays as it is, or takes the VTEP's. v.mu is held.
func (v *VTEP) peer(e frame.Endpoint) (*hop, error) {
	key := hostKey(e.Host())
	if h, ok := v.byHost.Load(key); ok {
		if h.given = cmp.Or(e.Port, h.given); v.updatePort(h) {
			v.updateFloodPorts()
		}
		return h, nil
	}
	h := newHop(e)
	h.host = true
	v.updatePort(h)
	if err := v.add(h); err != nil {
		return nil, err
	}
	v.byHost.Store(key, h)
	v.count(h, 1) // until somebody lists it
	return h, nil
}

// add gives a hop a number, and what SetPeers has for its address. v.mu is held.
func (v *VTEP) add(h *hop) error {
	err := v.hops.add(h)
	if err == nil {
		v.setHeader(h, v.settings[h.key()].header)
	}
	return err
}

// list changes how h is listed and keeps the count of learned peers. v.mu is held.
func (v *VTEP) list(h *hop, change func()) {
	before := h.listed()
	change()
	h.known.Store(h.listed())
	switch {
	case before == h.listed():
	case before:
		v.count(h, 1)
	default:
		v.count(h, -1)
	}
}

// learn makes a peer of an unknown outer source. It returns nil when there is no
// room, and when somebody else is changing the table: forwarding never waits, the
// next packet tries again.
func (v *VTEP) learn(src frame.Endpoint) *hop {
	if !v.mu.TryLock() {
		v.peerBusy.Add(1)
		return nil
	}
	defer v.mu.Unlock()
	if !v.room(src) {
		v.peerLimit.Add(1)
		return nil
	}
	h, err := v.peer(src.Host())
	if err != nil {
		v.peerLimit.Add(1)
		return nil
	}
	return h
}

// Retire starts the removal of learned peers that named does not know, that were
// not heard since the last call, and of deleted ones; and forgets path MTUs that are
// older than PathMTUAge. It returns their numbers:
// frames from them no longer come in under these, and once the caller has made
// sure that nobody holds one any more it calls Free.
func (v *VTEP) Retire(named func(peer uint16) bool) []uint16 {
	v.mu.Lock()
	defer v.mu.Unlock()
	nums := v.evicted // have given way
	v.evicted, v.evictable = nil, nil
	now := time.Now()
	for h := range v.hops.all {
		if h.path.Load() != 0 && now.Sub(h.learned) >= PathMTUAge {
			v.forgetPathMTU(h)
		}
		if h.listed() || h.retired {
			continue
		}
		heard := h.rx.Load()
		silent := heard == h.heard
		quiet := h.idle && silent
		h.idle, h.heard = !named(h.num), heard
		if !h.deleted && (!quiet || !h.idle) {
			if silent && heard < fewPackets && h.learnable() {
				v.evictable = append(v.evictable, h)
			}
			continue
		}
		v.retire(h)
		nums = append(nums, h.num)
	}
	if nums != nil {
		v.gone.Add(1) // after they have left byHost
	}
	return nums
}

// retire takes a hop out of what readers look at. Retire returns its number. v.mu is held.
func (v *VTEP) retire(h *hop) {
	h.retired = true
	if h.host {
		v.byHost.Delete(hostKey(h.to.Load()[0].Host()))
	}
	v.count(h, -1)
}

// Free ends what Retire began: the numbers may be given to other peers.
func (v *VTEP) Free(peers []uint16) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, n := range peers {
		if h := v.hops.get(n); h != nil && h.retired {
			v.forgetPathMTU(h)
			v.setHeader(h, nil)
			v.hops.remove(n)
		}
	}
}

// PeerName returns the address of a peer, of a group those of its members, and "" for a number that
// is none.
func (v *VTEP) PeerName(peer uint16) string {
	h := v.hops.get(peer)
	switch {
	case h == nil:
		return ""
	case h.side < 0:
		names := make([]string, len(h.group))
		for i, m := range h.group {
			names[i] = v.PeerName(m.num)
		}
		slices.Sort(names)
		return "group of " + strings.Join(names, ", ")
	case h.vni != 0:
		return fmt.Sprintf("%v vni %d", v.addr(h.to.Load()[0]), h.vni)
	}
	return v.show(h)
}

// show returns the address of a hop, with the port if the encapsulation has ports.
func (v *VTEP) show(h *hop) string {
	to := v.addr(h.to.Load()[0])
	if v.cfg.Type == encap.TypeIPIP {
		return to.Addr().String()
	}
	return to.String()
}
