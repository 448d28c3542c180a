package vtep

import (
	"fmt"
	"net/netip"

	"github.com/vxswitch/vxswitch/frame"
)

// A FloodPeer is an entry of a flood list that some frames are not sent to (RFC 9574, section 4: pruned flooding lists). An
// entry with both settings gets no frames, and may send (see ListedPerVNI).
//
// A peer may have an entry without a MAC and one for each of several group MACs. Frames to a MAC that has entries go to these
// alone, so to nobody if they all have NoBroadcast or are the VTEP itself.
type FloodPeer struct {
	Addr        netip.AddrPort
	MAC         frame.MAC // of a group: it gets frames to this MAC; zero = all that are flooded
	NoBroadcast bool      // gets no broadcast and multicast frames: flag BM
	NoUnknown   bool      // gets no unknown unicast: flag U; has no effect with MAC
}

// MaxGroups is how many group MACs a flood list may have entries for.
const MaxGroups = 4096

// ErrGroups is returned for a flood list with more.
var ErrGroups = fmt.Errorf("too many group MACs, at most %d are allowed", MaxGroups)

// pruning is the set of frames that an entry does not get. Bit i is about those of floodList.pruned[i].
type pruning uint8

const (
	noBroadcast pruning = 1 << iota
	noUnknown
	groupOnly // it is there for single MACs
)

func (p *FloodPeer) pruning() (no pruning) {
	if p.NoBroadcast {
		no |= noBroadcast
	}
	if p.NoUnknown {
		no |= noUnknown
	}
	return no
}

// A floodEntry is an entry of a flood list as it was given.
type floodEntry struct {
	frame.Endpoint
	mac frame.MAC
	no  pruning
}

// A groupEntry is an entry for one MAC. Without a hop it is the VTEP itself.
type groupEntry struct {
	hop *hop
	mac frame.MAC
	no  pruning
}

// add adds a hop to a list that frames are sent to.
func (l *floodList) add(h *hop) {
	if h.mcast {
		l.groups = append(l.groups, h)
	} else {
		l.to[h.family] = append(l.to[h.family], h.to.Load()[0])
		l.hops[h.family] = append(l.hops[h.family], h)
	}
}

// prune makes the lists for single MACs, for broadcast and multicast, and for unknown unicast, if some entry does not get all.
func (l *floodList) prune() {
	if len(l.no)+len(l.single) == 0 {
		return
	}
	l.pruned = new([2]*floodList)
	for i := range l.pruned {
		x := &floodList{}
		for h := range l.all {
			if l.no[h]&(1<<i) == 0 {
				x.add(h)
			}
		}
		l.pruned[i] = x
	}
	for _, e := range l.single {
		x := l.macs[e.mac]
		if x == nil {
			if l.macs == nil {
				l.macs = map[frame.MAC]*floodList{}
			}
			x = &floodList{}
			l.macs[e.mac] = x
		}
		if e.hop != nil && e.no&noBroadcast == 0 {
			x.add(e.hop)
		}
	}
}

// parts iterates over the lists that frames are sent to instead of this one.
func (l *floodList) parts(yield func(*floodList) bool) {
	if l.pruned == nil {
		return
	}
	for _, x := range l.pruned {
		if !yield(x) {
			return
		}
	}
	for _, x := range l.macs {
		if !yield(x) {
			return
		}
	}
}

// listFor returns the list for a frame. A frame that is not Ethernet, or has no MAC, counts as broadcast.
func (l *floodList) listFor(f *frame.Frame) *floodList {
	if l.pruned == nil {
		return l
	}
	if b := f.Bytes(); f.Kind == frame.Ethernet && len(b) >= len(frame.MAC{}) {
		if b[0]&1 == 0 {
			return l.pruned[1]
		}
		if x := l.macs[frame.MAC(b)]; x != nil {
			return x
		}
	}
	return l.pruned[0]
}

// HasGroup reports whether the flood list of a tag has entries for a group MAC; see [FloodPeer].
func (v *VTEP) HasGroup(tag uint32, mac frame.MAC) bool {
	n, ok := v.networks.Load(vniKey(tag))
	return ok && n.flood.Load().macs[mac] != nil
}

// FloodPeers returns the flood list of a VNI in the order of [VTEP.Flood], then the entries for single MACs.
func (v *VTEP) FloodPeers(vni frame.VNI) (list []FloodPeer) {
	n, ok := v.networks.Load(vniKey(vni))
	if !ok {
		return nil
	}
	for _, e := range n.flood.Load().entries() {
		list = append(list, FloodPeer{v.addr(e.Endpoint), e.mac, e.no&noBroadcast != 0, e.no&noUnknown != 0})
	}
	return list
}
