package vtep

import (
	"net/netip"

	"github.com/vxswitch/vxswitch/frame"
)

// PeerStats is one peer, or one multicast group, and its traffic, in inner frames.
type PeerStats struct {
	Peer   uint16         `json:"-"`
	Addr   netip.AddrPort `json:"addr"`
	Listed bool           `json:"listed"` // configured, as opposed to learned
	Rx     uint64         `json:"rx"`     // accepted from it
	MTU    int            `json:"mtu"`    // longest inner frame
	Tx     uint64         `json:"tx"`     // handed to the underlay for it, copies of flooded frames included
}

// Stats is a snapshot of a VTEP's tables and counters.
type Stats struct {
	Peers     []PeerStats `json:"peers"`
	Tx        frame.Count `json:"tx"`         // copies the underlay took: a frame flooded to n peers is n
	Learned   int         `json:"learned"`    // peers that count against Config.MaxPeers
	PeerLimit uint64      `json:"peer_limit"` // frames forwarded without learning their peer: no room
	PeerBusy  uint64      `json:"peer_busy"`  // likewise: the table was being changed at that moment
	ECN       uint64      `json:"ecn"`        // packets whose two ECN fields no tunnel should combine (RFC 6040, section 4.2); those dropped included
	Lost      frame.Drops `json:"lost"`       // copies the underlay did not take of frames of which it took others; a frame lost as a whole is in its Out.Drop
}

// Stats returns a snapshot.
func (v *VTEP) Stats() Stats {
	v.mu.Lock()
	defer v.mu.Unlock()
	s := Stats{
		Tx:      frame.Count{Frames: v.txFrames.Load(), Bytes: v.txBytes.Load()},
		Learned: v.learned, PeerLimit: v.peerLimit.Load(), PeerBusy: v.peerBusy.Load(), ECN: v.ecn.Load(),
	}
	for h := range v.hops.all {
		if h.side >= 0 && !h.retired && (!h.mcast || h.listed()) {
			s.Peers = append(s.Peers, PeerStats{
				Peer: h.num, Addr: v.addr(h.to.Load()[0]), Listed: h.listed(), Rx: h.rx.Load(), Tx: h.tx.Load(), MTU: v.mtuTo(h),
			})
		}
	}
	for r := range v.lost {
		s.Lost[r] = v.lost[r].Load()
	}
	return s
}
