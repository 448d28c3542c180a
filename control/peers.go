package control

import (
	"fmt"
	"net/netip"

	"github.com/vxswitch/vxswitch/frame"
)

// peer is a peer of a VTEP that entries name. Those that are in flood lists alone the VTEP
// counts itself.
type peer struct {
	key  peerKey
	aim  netip.AddrPort // as it was given last
	num  uint16
	refs int
}

// peerKey knows a peer as the VTEP does, by its address without the port.
type peerKey struct {
	tunnel tunnel
	host   frame.Endpoint
}

// hold returns the peer with an address, for one more entry that names it. A peer has one
// port: what comes last aims it.
func (t *tx) hold(x tunnel, addr netip.AddrPort) (*peer, error) {
	e, err := frame.EndpointFrom(addr)
	if err != nil {
		return nil, fmt.Errorf("VTEP: %w", err)
	}
	key := peerKey{x, e.Host()}
	r := t.p.peers[key]
	if r == nil {
		num, err := x.AddPeer(addr)
		if err != nil {
			return nil, fmt.Errorf("VTEP: %w", err)
		}
		t.p.stats.Peers++
		r = &peer{key: key, aim: addr, num: num}
		t.p.peers[key] = r
	} else if addr.Port() != 0 && addr.Port() != r.aim.Port() && !t.again {
		was, err := netip.ParseAddrPort(x.PeerName(r.num))
		if err == nil {
			_, err = x.AddPeer(addr)
		}
		if err != nil {
			return nil, fmt.Errorf("VTEP: %w", err)
		}
		t.p.stats.Peers++
		old := r.aim
		t.undo(func() { x.AddPeer(was); t.p.stats.Peers++; r.aim = old })
		r.aim = addr
	}
	r.refs++
	t.undo(func() { t.release(r) })
	return r, nil
}

// release is the opposite of hold. The last one deletes the peer.
func (t *tx) release(r *peer) {
	if r.refs--; r.refs == 0 {
		r.key.tunnel.DeletePeer(r.num)
		t.p.stats.Peers++
		delete(t.p.peers, r.key)
	}
}
