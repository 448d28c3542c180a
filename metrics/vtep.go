package metrics

import (
	"net/netip"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/vxswitch/vxswitch/vtep"
)

// vtepFamilies show vtep.Stats.
type vtepFamilies struct {
	txFrames, txBytes, peers, unlearned, ecn, lost, losses family
	peerRx, peerTx, peerMTU                                family
}

func (v *vtepFamilies) describe(fs *families) {
	v.txFrames = fs.counter("vtep_transmit_frames", "Copies the underlay took: a frame flooded to n peers is n.", "vtep")
	v.txBytes = fs.counter("vtep_transmit_bytes", "Bytes of the inner frames of copies the underlay took.", "vtep")
	v.peers = fs.gauge("vtep_peers", "Peers, by where they are known from: listed, or learned and counted against MaxPeers.", "vtep", "origin")
	v.unlearned = fs.counter("vtep_unlearned_frames", "Frames forwarded without learning their peer: no room (limit), or the table was being changed (busy).", "vtep", "cause")
	v.ecn = fs.counter("vtep_ecn_conflicts", "Packets whose two ECN fields no tunnel should combine (RFC 6040, section 4.2), those dropped included.", "vtep")
	v.lost = fs.counter("vtep_lost_frames", "Copies the underlay did not take of frames of which it took others.", "vtep")
	v.losses = fs.counter("vtep_losses", "Of vxswitch_vtep_lost_frames_total, by reason. A reason appears with its first loss.", "vtep", "reason")

	v.peerRx = fs.counter("vtep_peer_receive_frames", "Frames accepted from the peer.", "vtep", "peer", "number")
	v.peerTx = fs.counter("vtep_peer_transmit_frames", "Frames handed to the underlay for the peer, copies of flooded ones included.", "vtep", "peer", "number")
	v.peerMTU = fs.gauge("vtep_peer_mtu_bytes", "Longest inner frame towards the peer.", "vtep", "peer", "number")
}

func (v *vtepFamilies) collect(ch chan<- prometheus.Metric, name string, s vtep.Stats, peers bool) {
	put(ch, v.txFrames, s.Tx.Frames, name)
	put(ch, v.txBytes, s.Tx.Bytes, name)
	put(ch, v.unlearned, s.PeerLimit, name, "limit")
	put(ch, v.unlearned, s.PeerBusy, name, "busy")
	put(ch, v.ecn, s.ECN, name)
	put(ch, v.lost, s.Lost.Total(), name)
	for r, n := range s.Lost.All() {
		put(ch, v.losses, n, name, r.String())
	}
	listed := 0
	for i := range s.Peers {
		p := &s.Peers[i]
		if p.Listed {
			listed++
		}
		if peers {
			addr, num := text(peerName(p.Addr)), strconv.Itoa(int(p.Peer))
			put(ch, v.peerRx, p.Rx, name, addr, num)
			put(ch, v.peerTx, p.Tx, name, addr, num)
			put(ch, v.peerMTU, p.MTU, name, addr, num)
		}
	}
	put(ch, v.peers, listed, name, "listed")
	put(ch, v.peers, s.Learned, name, "learned")
}

// peerName leaves out the port where the encapsulation has none.
func peerName(a netip.AddrPort) string {
	if a.Port() == 0 {
		return a.Addr().String()
	}
	return a.String()
}
