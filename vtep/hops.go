package vtep

import (
	"errors"
	"fmt"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/vxswitch/vxswitch/frame"
)

// ErrFull is returned when every one of the 65,535 peer numbers is in use.
var ErrFull = errors.New("vtep: no peer number left")

// A hop is a row of the next-hop table: an endpoint, or a group of other rows, of which each flow uses one.
// The fields that flooding uses are in one cache line.
type hop struct {
	num    uint16
	family int8                              // which underlay; -1 for a group
	host   bool                              // in byHost: frames from its address come from this hop
	mcast  bool                              // a multicast group: no frames come from it
	vni    frame.VNI                         // to send with; 0 = the attachment's tag
	group  atomic.Pointer[[]*hop]            // see members
	to     atomic.Pointer[[1]frame.Endpoint] // an array, so that a Datagram can borrow it as its To

	header atomic.Pointer[header] // nil = the VTEP's
	path   atomic.Int32           // longest inner frame by path MTU discovery; 0 = unknown

	down     atomic.Bool   // by SetDown
	failures atomic.Uint32 // reports not passed on yet
	failed   atomic.Int64  // time of the last one, in Unix nanoseconds

	known   atomic.Bool           // listed, for readers
	flooded count                 // to flood lists that contain it, as far as these have passed it on
	name    atomic.Pointer[shown] // as last shown

	// Under VTEP.mu.
	given   uint16    // port it was last listed with; 0 = none
	added   bool      // by AddPeer, NextHop or Group
	refs    int       // flood lists and groups that contain it
	joined  int       // for a multicast group: open networks with it in their flood list
	deleted bool      // retire at once
	retired bool      // waits for Free
	idle    bool      // had no FDB entries at the last Retire
	heard   uint64    // frames received at the last Retire
	learned time.Time // of path
}

func (h *hop) listed() bool { return h.added || h.refs > 0 }

// learnable reports whether it counts as learned while it is not listed.
func (h *hop) learnable() bool { return h.host && !h.mcast }

func newHop(e frame.Endpoint) *hop {
	h := &hop{family: int8(familyOf(e)), mcast: e.IsMulticast(), given: e.Port}
	h.deleted = h.mcast // removed with the last flood list that contains it
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

// NextHop returns a peer number that sends to addr with the given VNI instead of the attachment's tag,
// for networks that have another VNI at the far end.
func (v *VTEP) NextHop(addr netip.AddrPort, vni frame.VNI) (uint16, error) {
	e, err := v.endpoint(addr)
	if err != nil {
		return 0, err
	}
	if v.cfg.Type.Bare() {
		return 0, fmt.Errorf("vtep: next hop %v: VNI %d: IP-in-IP has none", addr, vni)
	}
	if vni == 0 || !vni.Valid() {
		return 0, fmt.Errorf("vtep: next hop %v: VNI %d: must be 1 to %d", addr, vni, frame.MaxVNI)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if err := v.errClosed(); err != nil {
		return 0, err
	}
	h := newHop(e)
	h.vni, h.added = vni, true
	if v.updatePort(h); v.isLocal(e) && h.to.Load()[0].Port == v.families[h.family].port {
		return 0, fmt.Errorf("vtep: next hop %v: is the VTEP itself", h.to.Load()[0])
	}
	if err := v.add(h); err != nil {
		return 0, err
	}
	return h.num, nil
}

// Leads reports whether frames to a number may go to a peer: the number is that of the peer, of a next hop
// at its address, or of a group that contains one of these.
func (v *VTEP) Leads(to, peer uint16) bool {
	h, p := v.hops.get(to), v.hops.get(peer)
	if h == nil || p == nil || p.family < 0 {
		return false
	}
	from := p.to.Load()[0].Host()
	for _, m := range h.members() {
		if m.to.Load()[0].Host() == from {
			return true
		}
	}
	return h.family >= 0 && h.to.Load()[0].Host() == from
}
