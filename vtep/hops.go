package vtep

import (
	"errors"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"net/netip"
	"sync/atomic"

	"github.com/vxswitch/vxswitch/frame"
)

// ErrFull is returned when every one of the 65,535 peer numbers is in use.
var ErrFull = errors.New("vtep: no peer number left")

// A hop is one row of the next-hop table: an endpoint, or a group of rows one of
// which is chosen by flow.
type hop struct {
	num   uint16
	side  int8      // which underlay; -1 for a group
	host  bool      // in byHost: frames from its address come in from this hop
	vni   frame.VNI // to send with; 0 = the attachment's tag
	group []*hop
	to    atomic.Pointer[[1]frame.Endpoint] // an array, so that a Datagram can borrow it as its To

	known  atomic.Bool // listed, for readers
	rx, tx atomic.Uint64

	// Under VTEP.mu.
	added   bool   // by AddPeer, NextHop or Group
	refs    int    // flood lists and groups that hold it
	deleted bool   // to be retired at once
	retired bool   // on its way out: Free is still to come
	idle    bool   // nobody named it at the last Retire
	heard   uint64 // rx at the last Retire
}

func (h *hop) listed() bool { return h.added || h.refs > 0 }

func newHop(e frame.Endpoint) *hop {
	h := &hop{side: int8(sideOf(e))}
	h.to.Store(&[1]frame.Endpoint{e})
	return h
}

// hopTable maps peer numbers to hops. Readers take no lock.
type hopTable struct {
	pages [256]atomic.Pointer[[256]atomic.Pointer[hop]]
	free  []uint16 // under VTEP.mu
	next  int
}

func (t *hopTable) get(num uint16) *hop {
	if p := t.pages[num>>8].Load(); p != nil {
		return p[num&255].Load()
	}
	return nil
}

func (t *hopTable) add(h *hop) error {
	switch n := len(t.free); {
	case n > 0:
		h.num, t.free = t.free[n-1], t.free[:n-1]
	case t.next == 1<<16-1:
		return ErrFull
	default:
		t.next++ // 0 stands for none
		h.num = uint16(t.next)
	}
	p := &t.pages[h.num>>8]
	if p.Load() == nil {
		p.Store(new([256]atomic.Pointer[hop]))
	}
	p.Load()[h.num&255].Store(h)
	return nil
}

func (t *hopTable) remove(num uint16) {
	t.pages[num>>8].Load()[num&255].Store(nil)
	t.free = append(t.free, num)
}

func (t *hopTable) all(yield func(*hop) bool) {
	for i := range t.pages {
		p := t.pages[i].Load()
		if p == nil {
			continue
		}
		for j := range p {
			if h := p[j].Load(); h != nil && !yield(h) {
				return
			}
		}
	}
}

// hostKey is a frame.Endpoint without its port.
type hostKey frame.Endpoint

// Who sends packets chooses their source address, so the hash has a secret.
var hostSecret = rand.Uint64()

func (k hostKey) Hash() uint64 {
	ip := &k.IP
	word := func(i int) uint64 {
		return uint64(ip[i])<<56 | uint64(ip[i+1])<<48 | uint64(ip[i+2])<<40 | uint64(ip[i+3])<<32 |
			uint64(ip[i+4])<<24 | uint64(ip[i+5])<<16 | uint64(ip[i+6])<<8 | uint64(ip[i+7])
	}
	hi, lo := bits.Mul64(word(0)^hostSecret^uint64(k.Scope), word(8)^0x9e3779b97f4a7c15)
	return hi ^ lo
}

// endpoint checks an address somebody configured. Port 0 stays: see peer.
func (v *VTEP) endpoint(ap netip.AddrPort) (frame.Endpoint, error) {
	e, err := frame.EndpointFrom(ap)
	if err != nil {
		return e, fmt.Errorf("vtep: peer: %w", err)
	}
	a := ap.Addr().Unmap()
	if a.IsUnspecified() || a.IsMulticast() {
		return e, fmt.Errorf("vtep: peer %v: not an address of one host", a)
	}
	if v.sides[sideOf(e)] == nil {
		return e, fmt.Errorf("vtep: peer %v: the VTEP has no underlay of this address family", a)
	}
	return e, nil
}

// ours reports whether e is an address of this VTEP.
func (v *VTEP) ours(e frame.Endpoint) bool {
	s := v.sides[sideOf(e)]
	return s != nil && e.Host() == s.local
}

// AddPeer lists a peer and returns its number, for a static entry in an FDB. Adding
// a peer that is known returns the number it has, and aims it at the given port. Port
// 0 stands for the VTEP's destination port, or the one the peer is aimed at already.
func (v *VTEP) AddPeer(addr netip.AddrPort) (uint16, error) {
	e, err := v.endpoint(addr)
	if err != nil {
		return 0, err
	}
	if v.ours(e) {
		return 0, fmt.Errorf("vtep: peer %v: is this VTEP's own address", addr.Addr())
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	h, err := v.peer(e)
	if err != nil {
		return 0, err
	}
	v.list(h, func() { h.added, h.deleted = true, false })
	return h.num, nil
}

// NextHop returns a number that sends to addr with a VNI of its own, whatever the
// attachment's tag: for networks that the far end numbers differently.
func (v *VTEP) NextHop(addr netip.AddrPort, vni frame.VNI) (uint16, error) {
	e, err := v.endpoint(addr)
	if err != nil {
		return 0, err
	}
	if vni == 0 || !vni.Valid() {
		return 0, fmt.Errorf("vtep: next hop %v: VNI %d, allowed are 1 to %d", addr, vni, frame.MaxVNI)
	}
	if e = v.aimed(e); v.ours(e) && e.Port == v.sides[sideOf(e)].port {
		return 0, fmt.Errorf("vtep: next hop %v: is this VTEP itself", e)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	h := newHop(e)
	h.vni, h.added = vni, true
	if err := v.hops.add(h); err != nil {
		return 0, err
	}
	return h.num, nil
}

// Group returns a number that stands for several peers: each flow takes one of
// them, and keeps it when another joins or leaves.
func (v *VTEP) Group(peers ...uint16) (uint16, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	g := &hop{side: -1, added: true}
	for _, n := range peers {
		h := v.hops.get(n)
		if h == nil || h.side < 0 || h.retired {
			return 0, fmt.Errorf("vtep: group: %d is no peer", n)
		}
		g.group = append(g.group, h)
	}
	if len(g.group) == 0 {
		return 0, errors.New("vtep: group: no peers")
	}
	if err := v.hops.add(g); err != nil {
		return 0, err
	}
	for _, h := range g.group {
		v.list(h, func() { h.refs++ })
	}
	return g.num, nil
}

// DeletePeer removes a number that AddPeer, NextHop or Group returned: at its next
// Retire the switch forgets the number and the entries that name it. A peer that is
// in a flood list or a group stays until it is taken out of them.
func (v *VTEP) DeletePeer(num uint16) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if h := v.hops.get(num); h != nil && h.added {
		v.list(h, func() { h.added, h.deleted = false, true })
	}
}

// pick chooses a member by rendezvous hashing: the one whose number, mixed with the
// flow, is largest. A member that leaves moves only its own flows.
func (h *hop) pick(flow uint32) *hop {
	var best *hop
	var most uint64
	for _, m := range h.group {
		if x := scatter(uint64(flow)<<16 | uint64(m.num)); best == nil || x > most {
			best, most = m, x
		}
	}
	return best
}

// scatter is the finalizer of SplitMix64: every bit of x changes each bit of the
// result as often as not, so that the members of a group share its flows evenly.
func scatter(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// aimed fills in the destination port of an address that was given without one.
func (v *VTEP) aimed(e frame.Endpoint) frame.Endpoint {
	if e.Port == 0 {
		e.Port = v.sides[sideOf(e)].port
	}
	return e
}

// peer returns the hop of a host, making one if there is none. A port in e aims the
// hop at it; without one it stays as it is, or takes the VTEP's. v.mu is held.
func (v *VTEP) peer(e frame.Endpoint) (*hop, error) {
	key := hostKey(e.Host())
	if h, ok := v.byHost.Load(key); ok {
		if e.Port != 0 {
			h.to.Store(&[1]frame.Endpoint{e})
		}
		return h, nil
	}
	e = v.aimed(e)
	h := newHop(e)
	h.host = true
	if err := v.hops.add(h); err != nil {
		return nil, err
	}
	v.byHost.Store(key, h)
	v.learned++ // until somebody lists it
	return h, nil
}

// list changes how h is listed and keeps the count of learned peers. v.mu is held.
func (v *VTEP) list(h *hop, change func()) {
	before := h.listed()
	change()
	h.known.Store(h.listed())
	if h.host && before != h.listed() {
		if before {
			v.learned++
		} else {
			v.learned--
		}
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
	if v.learned >= v.cfg.MaxPeers {
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
// not heard since the last call, and of deleted ones. It returns their numbers:
// frames from them no longer come in under these, and once the caller has made
// sure that nobody holds one any more it calls Free.
func (v *VTEP) Retire(named func(peer uint16) bool) []uint16 {
	v.mu.Lock()
	defer v.mu.Unlock()
	var nums []uint16
	for h := range v.hops.all {
		if h.listed() || h.retired {
			continue
		}
		heard := h.rx.Load()
		quiet := h.idle && heard == h.heard
		h.idle, h.heard = !named(h.num), heard
		if !h.deleted && (!quiet || !h.idle) {
			continue
		}
		h.retired = true
		if h.host {
			v.byHost.Delete(hostKey(h.to.Load()[0].Host()))
			v.learned--
		}
		for _, m := range h.group {
			v.list(m, func() { m.refs-- })
		}
		nums = append(nums, h.num)
	}
	return nums
}

// Free ends what Retire began: the numbers may be given to other peers.
func (v *VTEP) Free(peers []uint16) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, n := range peers {
		if h := v.hops.get(n); h != nil && h.retired {
			v.hops.remove(n)
		}
	}
}

// PeerName returns the address of a peer, and "" for a number that is none.
func (v *VTEP) PeerName(peer uint16) string {
	h := v.hops.get(peer)
	switch {
	case h == nil:
		return ""
	case h.side < 0:
		return fmt.Sprintf("group of %d", len(h.group))
	case h.vni != 0:
		return fmt.Sprintf("%v vni %d", h.to.Load()[0], h.vni)
	}
	return h.to.Load()[0].String()
}
