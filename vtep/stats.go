package vtep

import (
	"net/netip"

	"github.com/vxswitch/vxswitch/frame"
)

// PeerStats is one peer and its traffic, in inner frames.
type PeerStats struct {
	Peer   uint16         `json:"-"`
	Addr   netip.AddrPort `json:"addr"`
	Listed bool           `json:"listed"` // configured, as opposed to learned
	Rx     uint64         `json:"rx"`     // accepted from it
	Tx     uint64         `json:"tx"`     // handed to the underlay for it, copies of flooded frames included
}

// Count is a number of inner frames and the bytes in them, from the destination MAC
// on.
type Count struct {
	Frames uint64 `json:"frames"`
	Bytes  uint64 `json:"bytes"`
}

// Stats is a snapshot of a VTEP's tables and counters.
type Stats struct {
	Peers     []PeerStats `json:"peers"`
	Tx        Count       `json:"tx"`         // copies the underlay took: a frame flooded to n peers is n
	Learned   int         `json:"learned"`    // peers that count against Config.MaxPeers
	PeerLimit uint64      `json:"peer_limit"` // frames forwarded without learning their peer: no room
	Lost      frame.Drops `json:"lost"`       // copies the underlay did not take
}

// Stats returns a snapshot.
func (v *VTEP) Stats() Stats {
	v.mu.Lock()
	defer v.mu.Unlock()
	s := Stats{
		Tx:      Count{v.txFrames.Load(), v.txBytes.Load()},
		Learned: v.learned, PeerLimit: v.peerLimit.Load(),
	}
	for h := range v.hops.all {
		if h.side >= 0 && !h.retired {
			s.Peers = append(s.Peers, PeerStats{
				Peer: h.num, Addr: h.to.Load()[0].AddrPort(), Listed: h.listed(), Rx: h.rx.Load(), Tx: h.tx.Load(),
			})
		}
	}
	for r := range v.lost {
		s.Lost[r] = v.lost[r].Load()
	}
	return s
}
