package vtep

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/hostaddr"
	"github.com/vxswitch/vxswitch/internal/mix"
)

// A hostKey is a frame.Endpoint without port.
type hostKey frame.Endpoint

// Hash implements [index.Key]. Senders choose the source address of their packets, but not the interface.
func (k hostKey) Hash(secret *mix.Key) uint64 {
	return secret.Hash128(binary.BigEndian.Uint64(k.IP[:8])^uint64(k.Scope), binary.BigEndian.Uint64(k.IP[8:]))
}

// endpoint checks a configured address. Port 0 is kept; see peer.
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

// reaches checks that the VTEP can send to a configured address.
func (v *VTEP) reaches(ap netip.AddrPort, e frame.Endpoint) error {
	if v.cfg.Type == encap.TypeIPIP && e.Port != 0 {
		return fmt.Errorf("vtep: peer %v: IP-in-IP has no ports", ap)
	}
	if v.families[familyOf(e)] == nil {
		return fmt.Errorf("vtep: peer %v: the VTEP has no underlay of this address family", ap.Addr().Unmap())
	}
	return nil
}

// isLocal reports whether e is an address of this VTEP.
func (v *VTEP) isLocal(e frame.Endpoint) bool {
	s := v.families[familyOf(e)]
	return s != nil && e.Host() == s.link.Load().own
}

// Local returns the addresses of the underlays, except for wildcard addresses.
func (v *VTEP) Local() (list []netip.Addr) {
	for _, s := range v.families {
		if s == nil {
			continue
		}
		if own := s.link.Load().own; own != (frame.Endpoint{}) {
			list = append(list, v.addr(own).Addr())
		}
	}
	return list
}

// PeerPort returns the UDP destination port of peers that have none of their own, 0 for IP-in-IP.
func (v *VTEP) PeerPort() (port uint16) {
	for _, s := range v.families {
		if s != nil {
			port = cmp.Or(port, s.port)
		}
	}
	return port
}

// AddPeer lists a peer and returns its number, for instance for a static FDB entry. If the peer is known, it keeps
// its number, and gets the new port. Port 0 stands for the port that the peer has, or the VTEP's destination port.
// A port of SetPeers takes precedence.
func (v *VTEP) AddPeer(addr netip.AddrPort) (uint16, error) {
	e, err := v.endpoint(addr)
	if err != nil {
		return 0, err
	}
	if v.isLocal(e) {
		return 0, fmt.Errorf("vtep: peer %v: is the VTEP's own address", addr.Addr())
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

// DeletePeer removes a number that AddPeer, NextHop or Group returned. At its next Retire the switch forgets the
// number and its FDB entries. A peer in a flood list or group stays until it is removed from them.
func (v *VTEP) DeletePeer(num uint16) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if h := v.hops.get(num); h != nil && h.added {
		v.list(h, func() { h.added, h.deleted = false, true })
		v.refer(h.members(), -1)
	}
}

// peer returns the hop of a host, and creates it if there is none. A port in e becomes that of the hop; with port
// 0 the hop keeps its port, or gets the VTEP's. v.mu is held.
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
	v.count(h, 1) // until it is listed
	return h, nil
}

// add gives a hop a number, and the header that SetPeers has for its address. v.mu is held.
func (v *VTEP) add(h *hop) error {
	err := v.hops.add(h)
	if err == nil {
		v.setHeader(h, v.settings[h.key()].header)
		h.down.Store(v.down[h.key()])
		v.toldUp(h)
	}
	return err
}

// list calls change, which may list or unlist h, and updates the number of learned peers. v.mu is held.
func (v *VTEP) list(h *hop, change func()) {
	before := h.listed()
	change()
	h.known.Store(h.listed())
	switch {
	case before == h.listed():
	case !before:
		v.count(h, -1)
	default:
		v.count(h, 1)
		if v.cfg.Peers != AnyPeer {
			v.changed()
		}
	}
}

// learn makes an unknown outer source a peer. It returns nil if there is no room, or if the table is being changed:
// forwarding never waits, and the next packet tries again.
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

// retire removes a hop from the table of readers. Retire returns its number. v.mu is held.
func (v *VTEP) retire(h *hop) {
	h.retired = true
	if h.host {
		v.byHost.Delete(hostKey(h.to.Load()[0].Host()))
		v.changed()
	}
	v.count(h, -1)
}

// Sender returns the address from which frames of a peer come, without a port; zero if there is no peer of that number.
func (v *VTEP) Sender(peer uint16) frame.Endpoint {
	if h := v.hops.get(peer); h != nil && h.host {
		return h.to.Load()[0].Host()
	}
	return frame.Endpoint{}
}

// PeerName returns the address of a peer, or the addresses of the members of a group, or "" if there is no peer of
// that number.
func (v *VTEP) PeerName(peer uint16) string {
	h := v.hops.get(peer)
	switch {
	case h == nil:
		return ""
	case h.family < 0:
		list := h.members()
		names := make([]string, len(list))
		for i, m := range list {
			names[i] = v.PeerName(m.num)
		}
		slices.Sort(names)
		return "group of " + strings.Join(names, ", ")
	}
	return v.show(h)
}

// A shown is the name of a hop, for as long as to and link are those of the hop.
type shown struct {
	to   *[1]frame.Endpoint
	link *link
	name string
}

// show returns the address of a hop, the port if the encapsulation has ports, and the VNI if it is another. It
// keeps the text, since events name peers while frames wait.
func (v *VTEP) show(h *hop) string {
	to, l := h.to.Load(), v.families[h.family].link.Load()
	if x := h.name.Load(); x != nil && x.to == to && x.link == l {
		return x.name
	}
	a := v.addr(to[0])
	name := a.String()
	switch {
	case h.vni != 0:
		name = fmt.Sprintf("%v vni %d", a, h.vni)
	case v.cfg.Type == encap.TypeIPIP:
		name = a.Addr().String()
	}
	h.name.Store(&shown{to, l, name})
	return name
}
