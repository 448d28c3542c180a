package metrics

import (
	"net/netip"
	"strconv"

	"github.com/vxswitch/vxswitch/vtep"
)

func (s sink) vtep(name string, st vtep.Stats, peers bool) {
	s = s.with("vtep", name)
	s.counter("vtep_transmit_frames", "Copies the underlay took: a frame flooded to n peers is n.")(st.Tx.Frames)
	s.counter("vtep_transmit_bytes", "Bytes of the inner frames of copies the underlay took.")(st.Tx.Bytes)
	unlearned := s.counter("vtep_unlearned_frames", "Frames forwarded without learning their peer: no room (limit), or the table was being changed (busy).", "cause")
	unlearned(st.PeerLimit, "limit")
	unlearned(st.PeerBusy, "busy")
	s.counter("vtep_ecn_conflicts", "Packets whose two ECN fields no tunnel should combine (RFC 6040, section 4.2), those dropped included.")(st.ECN)
	s.counter("vtep_handled_packets", "OAM packets, and packets with an NSH, that the program's handlers took.")(st.Handled)
	s.counter("vtep_lost_frames", "Copies the underlay did not take of frames of which it took others.")(st.Lost.Total())
	s.counter("vtep_losses", "Of vxswitch_vtep_lost_frames_total, by reason. A reason appears with its first loss.", "reason").drops(st.Lost)
	rx := s.counter("vtep_peer_receive_frames", "Frames accepted from the peer.", "peer", "number")
	rxBytes := s.counter("vtep_peer_receive_bytes", "Bytes of frames accepted from the peer.", "peer", "number")
	tx := s.counter("vtep_peer_transmit_frames", "Frames handed to the underlay for the peer, copies of flooded ones included.", "peer", "number")
	txBytes := s.counter("vtep_peer_transmit_bytes", "Bytes of frames handed to the underlay for the peer.", "peer", "number")
	heard := s.gauge("vtep_peer_last_heard_timestamp_seconds", "When the last frame was accepted from the peer. Absent if none was.", "peer", "number")
	mtu := s.gauge("vtep_peer_mtu_bytes", "Longest inner frame towards the peer.", "peer", "number")
	listed := uint64(0)
	for i := range st.Peers {
		p := &st.Peers[i]
		if p.Listed {
			listed++
		}
		if peers {
			addr, num := text(peerName(p.Addr)), strconv.Itoa(int(p.Peer))
			rx(p.Rx.Frames, addr, num)
			rxBytes(p.Rx.Bytes, addr, num)
			tx(p.Tx.Frames, addr, num)
			txBytes(p.Tx.Bytes, addr, num)
			if !p.LastHeard.IsZero() {
				heard(uint64(p.LastHeard.Unix()), addr, num)
			}
			mtu(uint64(p.MTU), addr, num)
		}
	}
	known := s.gauge("vtep_peers", "Peers, by where they are known from: listed, or learned and counted against MaxPeers.", "origin")
	known(listed, "listed")
	known(uint64(st.Learned), "learned")
}

// peerName leaves out the port where the encapsulation has none.
func peerName(a netip.AddrPort) string {
	if a.Port() == 0 {
		return a.Addr().String()
	}
	return a.String()
}
