package vtep

import (
	"net/netip"
	"time"

	"github.com/vxswitch/vxswitch/frame"
)

// PeerStats describes a peer, or a multicast group, and counts its inner frames. Their bytes are from the inner
// destination MAC on, and a superframe is one frame, as in the counters of ports.
type PeerStats struct {
	Peer   uint16         `json:"-"`
	Addr   netip.AddrPort `json:"addr"`
	Listed bool           `json:"listed"`        // configured, not learned
	Rx     frame.Count    `json:"rx"`            // accepted frames
	MTU    int            `json:"mtu"`           // length of the longest inner frame
	VNI    frame.VNI      `json:"vni,omitzero"`  // of a next hop: what it sends with
	Dead   bool           `json:"dead,omitzero"` // by SetDown
	Tx     frame.Count    `json:"tx"`            // frames given to the underlay, including copies of flooded frames

	LastHeard time.Time `json:"last_heard,omitzero"` // when the last frame in Rx came in, to the second; zero = never
}

// Stats is a snapshot of a VTEP's tables and counters.
type Stats struct {
	Peers     []PeerStats `json:"peers"`
	Tx        frame.Count `json:"tx"`         // copies that the underlay took: a frame flooded to n peers counts n times
	Learned   int         `json:"learned"`    // peers that count towards Config.MaxPeers
	PeerLimit uint64      `json:"peer_limit"` // frames whose peer was not learned for lack of room; they were forwarded
	PeerBusy  uint64      `json:"peer_busy"`  // frames whose peer was not learned because the table was being changed; they were forwarded
	ECN       uint64      `json:"ecn"`        // packets with a combination of ECN fields that should not occur (RFC 6040, section 4.2), including dropped ones
	Handled   uint64      `json:"handled"`    // packets that the handlers of SetOAM and SetServices took; they are in no count of frames
	Lost      frame.Drops `json:"lost"`       // copies that the underlay did not take, of frames with other copies that it took; a frame that is lost as a whole has its Out.Drop set
}

// Stats returns a snapshot.
func (v *VTEP) Stats() Stats {
	for _, n := range v.networks.All() {
		n.flood.Load().pass()
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	s := Stats{
		Tx:      frame.Count{Frames: v.txFrames.Load(), Bytes: v.txBytes.Load()},
		Learned: v.learned, PeerLimit: v.peerLimit.Load(), PeerBusy: v.peerBusy.Load(), ECN: v.ecn.Load(), Handled: v.handled.Load(),
	}
	for h := range v.hops.all {
		if h.family >= 0 && !h.retired && (!h.mcast || h.listed()) {
			rx, last := v.rx(h)
			p := PeerStats{Peer: h.num, Addr: v.addr(h.to.Load()[0]), Listed: h.listed(), Rx: rx, Tx: v.tx(h), MTU: v.mtuTo(h), VNI: h.vni, Dead: h.down.Load()}
			if last != 0 {
				p.LastHeard = time.Unix(last, 0)
			}
			s.Peers = append(s.Peers, p)
		}
	}
	for r := range v.lost {
		s.Lost[r] = v.lost[r].Load()
	}
	return s
}
