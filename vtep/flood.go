package vtep

import (
	"errors"
	"fmt"
	"net/netip"
	"sync/atomic"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/index"
	"github.com/vxswitch/vxswitch/internal/mix"
)

type vniKey frame.VNI

// Hash implements [index.Key]. VNIs come from the configuration, so no key is needed.
func (k vniKey) Hash(*mix.Key) uint64 { return uint64(k) }

// A network is the state of a VNI.
type network struct {
	open    atomic.Bool // frames with this VNI are accepted
	flood   atomic.Pointer[floodList]
	allowed index.Map[*hop, struct{}] // by Allow
	flooded index.Map[*hop, struct{}] // in the flood list, if peers are listed for each VNI
	marking atomic.Pointer[marking]   // nil: as the tunnel has it
}

// A floodList is the peers, by address family, and the multicast groups that BUM frames are sent to. It is
// immutable.
type floodList struct {
	to     [2][]frame.Endpoint
	hops   [2][]*hop // parallel to to
	groups []*hop
	given  []floodEntry     // what SetFlood was given, if that includes our own address
	no     map[*hop]pruning // of entries that do not get all frames
	pruned *[2]*floodList   // for broadcast and multicast, and for unknown unicast; nil = this list, for all frames
	single []groupEntry     // for single MACs; their hops are in this list, too
	macs   map[frame.MAC]*floodList

	sent count       // to all hops, not passed on yet
	old  atomic.Bool // another list has replaced it
}

func (l *floodList) all(yield func(*hop) bool) {
	for _, hops := range [...][]*hop{l.hops[family4], l.hops[family6], l.groups} {
		for _, h := range hops {
			if !yield(h) {
				return
			}
		}
	}
}

// entries returns peers and groups.
func (l *floodList) entries() (es []floodEntry) {
	for h := range l.all {
		if l.no[h]&groupOnly == 0 {
			es = append(es, floodEntry{Endpoint: h.to.Load()[0], no: l.no[h]})
		}
	}
	for _, e := range l.single {
		if e.hop != nil {
			es = append(es, floodEntry{e.hop.to.Load()[0], e.mac, e.no})
		}
	}
	return es
}

func (l *floodList) empty() bool { return l.noPeers() && len(l.groups) == 0 }

func (l *floodList) noPeers() bool { return len(l.hops[family4])+len(l.hops[family6]) == 0 }

// network returns the state of a VNI, and creates it if there is none. v.mu is held.
func (v *VTEP) network(vni frame.VNI) *network {
	n, ok := v.networks.Load(vniKey(vni))
	if !ok {
		n = &network{}
		n.flood.Store(&floodList{})
		v.networks.Store(vniKey(vni), n)
	}
	return n
}

// forget removes the state of a VNI that is not open and has neither peers nor a marking.
func (v *VTEP) forget(vni frame.VNI, n *network) {
	l := n.flood.Load()
	if !n.open.Load() && l.empty() && len(l.given)+n.allowed.Len() == 0 && n.marking.Load() == nil {
		v.networks.Delete(vniKey(vni))
	}
}

// ErrNotOpen is returned for a VNI that is not open: the VTEP is attached to no segment with this tag.
var ErrNotOpen = errors.New("is not open; attach the VTEP to a segment with this tag first")

// isOpen returns an error if the VNI is not open. v.mu is held.
func (v *VTEP) isOpen(vni frame.VNI) error {
	if err := v.errClosed(); err != nil {
		return err
	}
	if n, ok := v.networks.Load(vniKey(vni)); !ok || !n.open.Load() {
		return fmt.Errorf("vtep: VNI %d %w", vni, ErrNotOpen)
	}
	return nil
}

// SetFlood sets the flood list of a VNI: the peers that get one copy each of its broadcast, multicast and
// unknown unicast frames, in this order. Repetitions and the VTEP's own address are ignored. Ports are as in
// AddPeer. The peers become listed. On an error the list has not changed.
//
// The VNI must be open, which it is while the VTEP is attached to a segment with this tag; otherwise SetFlood
// returns [ErrNotOpen]. Without peers it empties the list, whether the VNI is open or not.
//
// An entry may be a multicast group. The VTEP sends it one copy, with Config.GroupTTL, and is a member of the
// group while the VNI is open (RFC 7348, section 4.2). Several VNIs may share a group, since frames are told
// apart by VNI. A hub does not forward frames that were sent to a group.
//
// New groups are joined before the first frame is sent by the new list, and old groups are left after the
// last frame by the old one. A VNI can change from peers to a group, or back, without losing or duplicating
// frames, if the underlays of all VTEPs are in the group meanwhile (underlay.UDP.Join, later Leave).
// Otherwise this VTEP misses what others send to the group before it joins, or after it leaves.
func (v *VTEP) SetFlood(vni frame.VNI, peers ...netip.AddrPort) error {
	list := make([]FloodPeer, len(peers))
	for i, p := range peers {
		list[i].Addr = p
	}
	return v.SetFloodPeers(vni, list...)
}

// SetFloodPeers is SetFlood for a list with entries that some frames are not sent to.
func (v *VTEP) SetFloodPeers(vni frame.VNI, peers ...FloodPeer) error {
	if !vni.Valid() {
		return fmt.Errorf("vtep: VNI %d: must be 0 to %d", vni, frame.MaxVNI)
	}
	es := make([]floodEntry, 0, len(peers))
	seen := make(map[floodEntry]bool, len(peers))
	macs := map[frame.MAC]bool{}
	for _, p := range peers {
		e, err := v.floodEntry(p.Addr)
		if err != nil {
			return err
		}
		if !p.MAC.IsZero() {
			if !p.MAC.IsGroup() {
				return fmt.Errorf("vtep: flood list: MAC %v: must be that of a group", p.MAC)
			}
			if macs[p.MAC] = true; len(macs) > MaxGroups {
				return fmt.Errorf("vtep: flood list: %w", ErrGroups)
			}
		}
		if k := (floodEntry{Endpoint: e.Host(), mac: p.MAC}); !seen[k] {
			seen[k] = true
			es = append(es, floodEntry{e, p.MAC, p.pruning()})
		}
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(es) > 0 {
		if err := v.isOpen(vni); err != nil {
			return err
		}
	}
	return v.setFlood(vni, es)
}

// CheckFlood returns why an entry cannot be in a flood list, for instance because the VTEP has no underlay of its
// family. SetFlood returns the same error.
func (v *VTEP) CheckFlood(peer netip.AddrPort) error {
	_, err := v.floodEntry(peer)
	return err
}

// setFlood does the work of SetFlood. v.mu is held.
func (v *VTEP) setFlood(vni frame.VNI, es []floodEntry) error {
	l := &floodList{no: map[*hop]pruning{}}
	seen := make(map[*hop]bool, len(es))
	for _, e := range es {
		var h *hop
		if v.isLocal(e.Endpoint) {
			l.given = es
		} else {
			var err error
			if h, err = v.peer(e.Endpoint); err != nil {
				return err
			}
		}
		if no := e.no; !e.mac.IsZero() {
			l.single = append(l.single, groupEntry{h, e.mac, e.no})
			if h != nil && !seen[h] {
				l.no[h] = noBroadcast | noUnknown | groupOnly
			}
		} else if h != nil {
			if delete(l.no, h); no != 0 {
				l.no[h] = no
			}
		}
		if h != nil && !seen[h] {
			seen[h] = true
			l.add(h)
		}
	}
	l.prune()
	n := v.network(vni)
	open := n.open.Load()
	if open {
		if err := v.join(l); err != nil {
			return err
		}
	}
	old := n.flood.Swap(l)
	old.replaced()
	if v.cfg.Peers == ListedPerVNI {
		if n.relist(old, l) {
			v.changed()
		}
	}
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

// relist makes the peers of a new flood list those that may send, and reports whether one of the old list may no longer.
func (n *network) relist(old, new *floodList) (gone bool) {
	stays := map[*hop]bool{}
	for h := range new.all {
		stays[h] = true
		n.flooded.Store(h, struct{}{})
	}
	for h := range old.all {
		if !stays[h] {
			n.flooded.Delete(h)
			gone = true
		}
	}
	return gone
}

// Flood returns the flood list of a VNI: IPv4 peers, IPv6 peers, each in order, then multicast groups.
func (v *VTEP) Flood(vni frame.VNI) []netip.AddrPort {
	n, ok := v.networks.Load(vniKey(vni))
	if !ok {
		return nil
	}
	var out []netip.AddrPort
	for h := range n.flood.Load().all {
		out = append(out, v.addr(h.to.Load()[0]))
	}
	return out
}
