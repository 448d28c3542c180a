package control

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/vxswitch/vxswitch/frame"
)

// peer is a number of a VTEP that entries name: a peer's, a next hop's or a group's. Peers that are
// in flood lists alone the VTEP counts itself.
type peer struct {
	key  peerKey
	aim  netip.AddrPort // as it was given last
	num  uint16
	refs int
	in   map[frame.VNI]int // those of each VNI, which the peer may send frames of
}

// held is one entry's claim to a number.
type held struct {
	*peer
	vni frame.VNI // as the VTEP calls it
}

// peerKey knows a peer as the VTEP does, by its address without the port; a next hop by its address
// and VNI; a group by the numbers of its members.
type peerKey struct {
	tunnel tunnel
	to     frame.Endpoint
	far    frame.VNI
	group  string
}

// number returns what has a key, for one more entry of a VNI that names it; it is added if it is not
// there.
func (t *tx) number(key peerKey, vni frame.VNI, add func() (uint16, error)) (h held, err error) {
	r := t.p.peers[key]
	if r == nil {
		num, err := add()
		if err != nil {
			return h, fmt.Errorf("VTEP: %w", err)
		}
		t.p.stats.Peers++
		r = &peer{key: key, num: num, in: map[frame.VNI]int{}}
		t.p.peers[key] = r
	}
	h = held{r, vni}
	r.refs++
	r.in[vni]++
	t.undo(func() { t.release(h) })
	return h, nil
}

// hold returns the peer with an address, which is held even with an error if it is not nil. A peer
// has one port: what comes last aims it.
func (t *tx) hold(x tunnel, vni frame.VNI, addr netip.AddrPort) (h held, err error) {
	e, err := frame.EndpointFrom(addr)
	if err != nil {
		return h, fmt.Errorf("VTEP: %w", err)
	}
	key := peerKey{tunnel: x, to: e.Host()}
	r := t.p.peers[key]
	if r != nil && addr.Port() != 0 && addr.Port() != r.aim.Port() && !t.again {
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
	if h, err = t.number(key, vni, func() (uint16, error) { return x.AddPeer(addr) }); err != nil {
		return h, err
	}
	if r == nil {
		h.aim = addr
	}
	if h.in[vni] == 1 {
		if err := x.Allow(vni, netip.AddrPortFrom(addr.Addr(), 0)); err != nil {
			return h, fmt.Errorf("VTEP: %w", err)
		}
	}
	return h, nil
}

// holdHops returns the number behind which hops are: one's own, or that of a group of them. The list
// is what is held, even with an error.
func (t *tx) holdHops(x tunnel, vni frame.VNI, hops []hop) (num uint16, list []held, err error) {
	var nums []uint16
	for _, p := range hops {
		own, addr := p.far == 0 || p.far == vni, p.vtep
		if !own {
			addr = netip.AddrPortFrom(addr.Addr(), 0) // the port is the next hop's
		}
		h, err := t.hold(x, vni, addr) // who sends, whatever we send it with
		if h.peer != nil {
			list = append(list, h)
		}
		if err == nil && !own {
			e, _ := frame.EndpointFrom(p.vtep)
			h, err = t.number(peerKey{tunnel: x, to: e, far: p.far}, vni, func() (uint16, error) { return x.NextHop(p.vtep, p.far) })
			if err == nil {
				list = append(list, h)
			}
		}
		if err != nil {
			return 0, list, err
		}
		if !slices.Contains(nums, h.num) {
			nums = append(nums, h.num)
		}
	}
	if len(nums) == 1 {
		return nums[0], list, nil
	}
	slices.Sort(nums)
	h, err := t.number(peerKey{tunnel: x, group: fmt.Sprint(nums)}, vni, func() (uint16, error) { return x.Group(nums...) })
	if err != nil {
		return 0, list, err
	}
	return h.num, append(list, h), nil
}

// release is the opposite of number. The last one deletes what has it.
func (t *tx) release(r held) {
	if r.in[r.vni]--; r.in[r.vni] == 0 {
		if delete(r.in, r.vni); r.key.far == 0 && r.key.group == "" {
			r.key.tunnel.Disallow(r.vni, netip.AddrPortFrom(r.key.to.AddrPort().Addr(), 0))
		}
	}
	if r.refs--; r.refs == 0 {
		r.key.tunnel.DeletePeer(r.num)
		t.p.stats.Peers++
		delete(t.p.peers, r.key)
	}
}
