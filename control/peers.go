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
	in   map[frame.VNI]int // those of each VNI, which it may send frames of
}

// held is one entry's claim to a peer.
type held struct {
	*peer
	vni frame.VNI // as the VTEP calls it
}

// peerKey knows a peer as the VTEP does, by its address without the port.
type peerKey struct {
	tunnel tunnel
	host   frame.Endpoint
}

// hold returns the peer with an address, for one more entry of a VNI that names it. A peer
// has one port: what comes last aims it.
func (t *tx) hold(x tunnel, vni frame.VNI, addr netip.AddrPort) (h held, err error) {
	e, err := frame.EndpointFrom(addr)
	if err != nil {
		return h, fmt.Errorf("VTEP: %w", err)
	}
	key := peerKey{x, e.Host()}
	r := t.p.peers[key]
	if r == nil {
		num, err := x.AddPeer(addr)
		if err != nil {
			return h, fmt.Errorf("VTEP: %w", err)
		}
		t.p.stats.Peers++
		r = &peer{key: key, aim: addr, num: num, in: map[frame.VNI]int{}}
		t.p.peers[key] = r
	} else if addr.Port() != 0 && addr.Port() != r.aim.Port() && !t.again {
		was, err := netip.ParseAddrPort(x.PeerName(r.num))
		if err == nil {
			_, err = x.AddPeer(addr)
		}
		if err != nil {
			return h, fmt.Errorf("VTEP: %w", err)
		}
		t.p.stats.Peers++
		old := r.aim
		t.undo(func() { x.AddPeer(was); t.p.stats.Peers++; r.aim = old })
		r.aim = addr
	}
	h = held{r, vni}
	r.refs++
	r.in[vni]++
	t.undo(func() { t.release(h) })
	if r.in[vni] == 1 {
		if err := x.Allow(vni, netip.AddrPortFrom(addr.Addr(), 0)); err != nil {
			return h, fmt.Errorf("VTEP: %w", err)
		}
	}
	return h, nil
}

// release is the opposite of hold. The last one deletes the peer.
func (t *tx) release(r held) {
	if r.in[r.vni]--; r.in[r.vni] == 0 {
		r.key.tunnel.Disallow(r.vni, netip.AddrPortFrom(r.key.host.AddrPort().Addr(), 0))
		delete(r.in, r.vni)
	}
	if r.refs--; r.refs == 0 {
		r.key.tunnel.DeletePeer(r.num)
		t.p.stats.Peers++
		delete(t.p.peers, r.key)
	}
}
