package vtep

import (
	"net/netip"

	"github.com/vxswitch/vxswitch/frame"
)

// A FloodPeer is an entry of a flood list that some frames are not sent to (RFC 9574, section 4: pruned flooding lists). An
// entry with both settings gets no frames, and may send (see ListedPerVNI).
type FloodPeer struct {
	Addr        netip.AddrPort
	NoBroadcast bool // gets no broadcast and multicast frames: flag BM
	NoUnknown   bool // gets no unknown unicast: flag U
}

// pruning is the set of frames that an entry does not get. Bit i is about those of floodList.pruned[i].
type pruning uint8

const (
	noBroadcast pruning = 1 << iota
	noUnknown
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
	no pruning
}

// prune makes the lists for broadcast and multicast, and for unknown unicast, if some entry does not get all.
func (l *floodList) prune() {
	if len(l.no) == 0 {
		return
	}
	l.pruned = new([2]*floodList)
	for i := range l.pruned {
		x := &floodList{}
		gets := func(h *hop) bool { return l.no[h]&(1<<i) == 0 }
		for s, hops := range l.hops {
			for k, h := range hops {
				if gets(h) {
					x.hops[s], x.to[s] = append(x.hops[s], h), append(x.to[s], l.to[s][k])
				}
			}
		}
		for _, h := range l.groups {
			if gets(h) {
				x.groups = append(x.groups, h)
			}
		}
		l.pruned[i] = x
	}
}

// listFor returns the list for a frame. A frame that is not Ethernet, or has no MAC, counts as broadcast.
func (l *floodList) listFor(f *frame.Frame) *floodList {
	if l.pruned == nil {
		return l
	}
	if b := f.Bytes(); f.Kind == frame.Ethernet && len(b) > 0 && b[0]&1 == 0 {
		return l.pruned[1]
	}
	return l.pruned[0]
}

// FloodPeers returns the flood list of a VNI in the order of [VTEP.Flood].
func (v *VTEP) FloodPeers(vni frame.VNI) (list []FloodPeer) {
	n, ok := v.networks.Load(vniKey(vni))
	if !ok {
		return nil
	}
	for _, e := range n.flood.Load().entries() {
		list = append(list, FloodPeer{v.addr(e.Endpoint), e.no&noBroadcast != 0, e.no&noUnknown != 0})
	}
	return list
}
