package vtep

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync/atomic"

	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/mix"
)

type vniKey frame.VNI

// Hash implements [index.Key]. Which VNIs there are is for the configuration to say.
func (k vniKey) Hash(*mix.Key) uint64 { return uint64(k) }

// network is what the VTEP knows of one VNI.
type network struct {
	open    atomic.Bool // frames with this VNI are accepted
	flood   atomic.Pointer[floodList]
	allowed atomic.Pointer[allowed]
}

// floodList is the set of peers that get BUM frames, immutable, by address family, and of
// multicast groups.
type floodList struct {
	to     [2][]frame.Endpoint
	hops   [2][]*hop // parallel to to
	groups []*hop
	given  []frame.Endpoint // all that SetFlood was given, if our own address is among them
}

func (l *floodList) all(yield func(*hop) bool) {
	for _, hops := range [...][]*hop{l.hops[side4], l.hops[side6], l.groups} {
		for _, h := range hops {
			if !yield(h) {
				return
			}
		}
	}
}

// endpoints returns peers and groups.
func (l *floodList) endpoints() []frame.Endpoint {
	es := slices.Concat(l.to[side4], l.to[side6])
	for _, h := range l.groups {
		es = append(es, h.to.Load()[0])
	}
	return es
}

func (l *floodList) empty() bool { return l.noPeers() && len(l.groups) == 0 }

func (l *floodList) noPeers() bool { return len(l.hops[side4])+len(l.hops[side6]) == 0 }

// network returns the row of a VNI, making it if there is none. v.mu is held.
func (v *VTEP) network(vni frame.VNI) *network {
	n, ok := v.networks.Load(vniKey(vni))
	if !ok {
		n = &network{}
		n.flood.Store(&floodList{})
		v.allow(n, nil)
		v.networks.Store(vniKey(vni), n)
	}
	return n
}

// Open accepts frames of a VNI. The VTEP becomes a member of the multicast groups in the VNI's
// flood list; where it cannot, the VNI stays shut.
func (v *VTEP) Open(tag uint32) error {
	if !frame.VNI(tag).Valid() {
		return fmt.Errorf("vtep: VNI %d, allowed are 0 to %d", tag, frame.MaxVNI)
	}
	if tag != 0 && v.cfg.Type == encap.TypeIPIP {
		return fmt.Errorf("vtep: tag %d: IP-in-IP has one network, tag 0", tag)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if err := v.errClosed(); err != nil {
		return err
	}
	n := v.network(frame.VNI(tag))
	if n.open.Load() {
		return nil
	}
	if err := v.join(n.flood.Load()); err != nil {
		v.forget(frame.VNI(tag), n)
		return err
	}
	n.open.Store(true)
	return nil
}

// Shut ends Open: frames of the VNI are dropped as unknown-vni. The flood list, and who is
// allowed, stay for the next Open; SetFlood without peers empties the list. Multicast groups that no other
// open VNI has in its list are left.
func (v *VTEP) Shut(tag uint32) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if n, ok := v.networks.Load(vniKey(tag)); ok {
		if n.open.Swap(false) {
			v.leave(n.flood.Load())
		}
		v.forget(frame.VNI(tag), n)
	}
}

// forget drops the row of a VNI that has neither an attachment nor peers.
func (v *VTEP) forget(vni frame.VNI, n *network) {
	l := n.flood.Load()
	if !n.open.Load() && l.empty() && len(l.given)+len(n.allowed.Load().own) == 0 {
		v.networks.Delete(vniKey(vni))
	}
}

// ErrNotOpen is about a VNI that the VTEP is not attached to a segment under.
var ErrNotOpen = errors.New("is not open; attach the VTEP to a segment with this tag, or Open it, first")

// isOpen returns the error of what is set for a VNI that is not open. v.mu is held.
func (v *VTEP) isOpen(vni frame.VNI) error {
	if err := v.errClosed(); err != nil {
		return err
	}
	if n, ok := v.networks.Load(vniKey(vni)); !ok || !n.open.Load() {
		return fmt.Errorf("vtep: VNI %d %w", vni, ErrNotOpen)
	}
	return nil
}

// SetFlood sets who gets the broadcast, unknown unicast and multicast frames of a
// VNI: one copy each, in the given order, repetitions and our own address left out.
// Ports are as in AddPeer. The peers become listed. On an error the list has not
// changed.
//
// The VNI must be open, which it is once the VTEP is attached to a segment under this tag:
// [ErrNotOpen]. No peers empty the list of any VNI.
//
// An entry may be a multicast group: one copy is sent to it, with Config.GroupTTL, for all
// that are in it, and while the VNI is open the VTEP is in it, too (RFC 7348, section 4.2).
// Several VNIs may share a group: a frame's VNI decides, not the group it came to. A frame that came
// to a group is not sent round by a hub.
//
// New groups are joined before the first frame goes by the new list, and old ones are left
// after the last that went by the old. So a VNI that goes over from peers to a group, or back,
// loses and doubles nothing if the underlay of every VTEP is in the group meanwhile (underlay.UDP.Join,
// and Leave afterwards). Without that, what others send to the group before this VTEP has joined it, or
// after it has left, does not reach it.
func (v *VTEP) SetFlood(vni frame.VNI, peers ...netip.AddrPort) error {
	if !vni.Valid() {
		return fmt.Errorf("vtep: VNI %d, allowed are 0 to %d", vni, frame.MaxVNI)
	}
	es := make([]frame.Endpoint, 0, len(peers))
	seen := make(map[frame.Endpoint]bool, len(peers))
	for _, p := range peers {
		e, err := v.floodEntry(p)
		if err != nil {
			return err
		}
		if !seen[e.Host()] {
			seen[e.Host()] = true
			es = append(es, e)
		}
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(es) > 0 { // to take them away is like DeletePeer
		if err := v.isOpen(vni); err != nil {
			return err
		}
	}
	return v.setFlood(vni, es)
}

// setFlood does the work of SetFlood. v.mu is held.
func (v *VTEP) setFlood(vni frame.VNI, es []frame.Endpoint) error {
	l := &floodList{}
	for _, e := range es {
		if v.isLocal(e) {
			l.given = es
			continue
		}
		h, err := v.peer(e)
		if err != nil {
			return err
		}
		if s := h.side; h.mcast {
			l.groups = append(l.groups, h)
		} else {
			l.to[s] = append(l.to[s], h.to.Load()[0])
			l.hops[s] = append(l.hops[s], h)
		}
	}
	n := v.network(vni)
	open := n.open.Load()
	if open {
		if err := v.join(l); err != nil {
			return err
		}
	}
	old := n.flood.Swap(l)
	v.allow(n, n.allowed.Load().own)
	for h := range l.all {
		v.list(h, func() { h.refs++ })
	}
	for h := range old.all {
		v.list(h, func() { h.refs-- })
	}
	if open {
		v.leave(old)
	}
	v.forget(vni, n)
	return nil
}

// Flood returns the flood list of a VNI: IPv4 peers first, each family in order, and then the
// multicast groups.
func (v *VTEP) Flood(vni frame.VNI) []netip.AddrPort {
	n, ok := v.networks.Load(vniKey(vni))
	if !ok {
		return nil
	}
	var out []netip.AddrPort
	for _, e := range n.flood.Load().endpoints() {
		out = append(out, v.addr(e))
	}
	return out
}
