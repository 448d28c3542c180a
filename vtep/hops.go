package vtep

import (
	"errors"
	"fmt"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/frame"
)

// ErrFull is returned when every one of the 65,535 peer numbers is in use.
var ErrFull = errors.New("vtep: no peer number left")

// A hop is one row of the next-hop table: an endpoint, or a group of rows one of
// which is chosen by flow. What a flooded frame touches of each is in one cache line.
type hop struct {
	num   uint16
	side  int8      // which underlay; -1 for a group
	host  bool      // in byHost: frames from its address come in from this hop
	mcast bool      // a multicast group: nothing comes in from it
	vni   frame.VNI // to send with; 0 = the attachment's tag
	tx    atomic.Uint64
	rx    atomic.Uint64
	group []*hop
	to    atomic.Pointer[[1]frame.Endpoint] // an array, so that a Datagram can borrow it as its To

	header atomic.Pointer[header] // nil = the VTEP's
	path   atomic.Int32           // longest inner frame that was said to pass; 0 = nobody said

	failures atomic.Uint32 // reports that nobody has been told of yet
	failed   atomic.Int64  // when the last one came, in Unix nanoseconds

	known atomic.Bool // listed, for readers

	// Under VTEP.mu.
	given   uint16    // port that it was given last; 0 = none
	added   bool      // by AddPeer, NextHop or Group
	refs    int       // flood lists and groups that hold it
	joined  int       // open networks whose flood list holds it, of a multicast group
	deleted bool      // to be retired at once
	retired bool      // on its way out: Free is still to come
	idle    bool      // nobody named it at the last Retire
	heard   uint64    // rx at the last Retire
	learned time.Time // path
}

func (h *hop) listed() bool { return h.added || h.refs > 0 }

// learnable reports whether it counts as learned while nobody lists it.
func (h *hop) learnable() bool { return h.host && !h.mcast }

func newHop(e frame.Endpoint) *hop {
	h := &hop{side: int8(sideOf(e)), mcast: e.IsMulticast(), given: e.Port}
	h.deleted = h.mcast // goes with the last flood list that has it
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

// NextHop returns a number that sends to addr with a VNI of its own, whatever the
// attachment's tag: for networks that the far end numbers differently.
func (v *VTEP) NextHop(addr netip.AddrPort, vni frame.VNI) (uint16, error) {
	e, err := v.endpoint(addr)
	if err != nil {
		return 0, err
	}
	if v.cfg.Type == encap.TypeIPIP {
		return 0, fmt.Errorf("vtep: next hop %v: VNI %d: IP-in-IP has none", addr, vni)
	}
	if vni == 0 || !vni.Valid() {
		return 0, fmt.Errorf("vtep: next hop %v: VNI %d, allowed are 1 to %d", addr, vni, frame.MaxVNI)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if err := v.errClosed(); err != nil {
		return 0, err
	}
	h := newHop(e)
	h.vni, h.added = vni, true
	if v.updatePort(h); v.isLocal(e) && h.to.Load()[0].Port == v.sides[h.side].port {
		return 0, fmt.Errorf("vtep: next hop %v: is this VTEP itself", h.to.Load()[0])
	}
	if err := v.add(h); err != nil {
		return 0, err
	}
	return h.num, nil
}

// Group returns a number that stands for several peers: each flow takes one of
// them. In a group of the same peers and one more, or one less, only that one's flows
// go elsewhere.
func (v *VTEP) Group(peers ...uint16) (uint16, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if err := v.errClosed(); err != nil {
		return 0, err
	}
	g := &hop{side: -1, added: true}
	for _, n := range peers {
		h := v.hops.get(n)
		if h == nil || h.side < 0 || h.retired || h.mcast {
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

// Leads reports whether what is sent to a number goes, or may go, to a peer: the number is that
// peer's, a next hop's with its address, or that of a group with one of them.
func (v *VTEP) Leads(to, peer uint16) bool {
	h, p := v.hops.get(to), v.hops.get(peer)
	if h == nil || p == nil || p.side < 0 {
		return false
	}
	from := p.to.Load()[0].Host()
	for _, m := range h.group {
		if m.to.Load()[0].Host() == from {
			return true
		}
	}
	return h.side >= 0 && h.to.Load()[0].Host() == from
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
