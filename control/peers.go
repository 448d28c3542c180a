package control

import (
	"fmt"
	"net/netip"
	"slices"
	"unique"

	"github.com/vxswitch/vxswitch/frame"
)

// A peer is a number of a VTEP that entries name: of a peer, a next hop or a group. The VTEP itself
// counts peers that are only in flood lists.
type peer struct {
	key  peerKey
	nums []uint16 // of the members of a group
	in   tally    // refs by VNI; the peer may send frames of these
	refs int32
	port uint16 // as last given to AddPeer
	num  uint16
}

// A tally counts by VNI. Most peers are in one, which needs no map.
type tally struct {
	vni  frame.VNI
	n    int32
	more map[frame.VNI]int32
}

// add adds to the number of a VNI, and returns it.
func (t *tally) add(vni frame.VNI, by int32) int32 {
	if t.vni == vni || t.n == 0 && t.more[vni] == 0 {
		t.vni = vni
		t.n += by
		return t.n
	}
	if t.more == nil {
		t.more = map[frame.VNI]int32{}
	}
	n := t.more[vni] + by
	if t.more[vni] = n; n == 0 {
		delete(t.more, vni)
	}
	return n
}

// held is the reference of one entry to a peer.
type held struct {
	*peer
	vni frame.VNI // on the VTEP
}

// A peerKey identifies a peer by its address without the port, as the VTEP does; a next hop by its
// address and VNI; a group by its key.
type peerKey struct {
	tunnel tunnel
	to     frame.Endpoint
	farVNI frame.VNI
	group  unique.Handle[groupKey] // which is small: most are none
}

// A remote is a VTEP elsewhere.
type remote struct {
	vtep   netip.AddrPort
	farVNI frame.VNI // 0 = that of the local VTEP
}

// number returns a reference to the peer with a key, for an entry of a VNI. If there is none, it calls
// add.
func (t *tx) number(key peerKey, vni frame.VNI, add func() (uint16, error)) (h held, err error) {
	r := t.p.peers[key]
	if r == nil {
		num, err := add()
		if err != nil {
			return h, fmt.Errorf("VTEP: %w", err)
		}
		t.p.stats.Peers++
		r = &peer{key: key, num: num}
		t.p.peers[key] = r
	}
	r.refs++
	r.in.add(vni, 1)
	return held{r, vni}, nil
}

// hold returns a reference to the peer with an address; even on an error it must be released if it is
// not nil. A peer has one port, which is the last one given.
func (t *tx) hold(x tunnel, vni frame.VNI, addr netip.AddrPort) (h held, err error) {
	e, err := frame.EndpointFrom(addr)
	if err != nil {
		return h, fmt.Errorf("VTEP: %w", err)
	}
	key := peerKey{tunnel: x, to: e.Host()}
	r := t.p.peers[key]
	if r != nil && addr.Port() != 0 && addr.Port() != r.port && (!t.again || r.port == 0) {
		if _, err = x.AddPeer(addr); err != nil {
			return h, fmt.Errorf("VTEP: %w", err)
		}
		t.p.stats.Peers++
		r.port = addr.Port()
	}
	if h, err = t.number(key, vni, func() (uint16, error) { return x.AddPeer(addr) }); err != nil {
		return h, err
	}
	if r == nil {
		h.port = addr.Port()
	}
	if h.in.add(vni, 0) == 1 {
		if err := x.Allow(vni, netip.AddrPortFrom(addr.Addr(), 0)); err != nil {
			return h, fmt.Errorf("VTEP: %w", err)
		}
	}
	return h, nil
}

// holdRemote returns the number of a VTEP. The references in the list must be released, even on an error.
func (t *tx) holdRemote(x tunnel, vni frame.VNI, r remote) (num uint16, list []held, err error) {
	own, addr := r.farVNI == 0 || r.farVNI == vni, r.vtep
	if !own {
		addr = netip.AddrPortFrom(addr.Addr(), 0) // the port is the next hop's
	}
	h, err := t.hold(x, vni, addr) // its frames come from this address, with any VNI
	if h.peer != nil {
		list = append(list, h)
	}
	if err == nil && !own {
		e, _ := frame.EndpointFrom(r.vtep)
		h, err = t.number(peerKey{tunnel: x, to: e, farVNI: r.farVNI}, vni, func() (uint16, error) { return x.NextHop(r.vtep, r.farVNI) })
		if err == nil {
			list = append(list, h)
		}
	}
	if err != nil {
		return 0, list, err
	}
	return h.num, list, nil
}

// holdGroup returns the number of a group, whose members are held already.
func (t *tx) holdGroup(x tunnel, vni frame.VNI, k groupKey, nums []uint16) (num uint16, list []held, err error) {
	h, err := t.number(peerKey{tunnel: x, group: unique.Make(k)}, vni, func() (uint16, error) { return x.Group(nums...) })
	if err != nil {
		return 0, nil, err
	}
	if h.nums == nil {
		h.nums = nums
	}
	return h.num, []held{h}, t.regroup(h.peer, nums)
}

// regroup changes the members of a group, in one write for all its MACs.
func (t *tx) regroup(g *peer, nums []uint16) error {
	if slices.Equal(g.nums, nums) {
		return nil
	}
	if err := g.key.tunnel.SetGroup(g.num, nums...); err != nil {
		return fmt.Errorf("VTEP: %w", err)
	}
	g.nums = nums
	t.p.stats.Peers++
	return nil
}

// release undoes number. With the last reference it deletes the peer.
func (t *tx) release(r held) {
	if r.in.add(r.vni, -1) == 0 && r.key.farVNI == 0 && r.key.group == (unique.Handle[groupKey]{}) {
		r.key.tunnel.Disallow(r.vni, netip.AddrPortFrom(r.key.to.AddrPort().Addr(), 0))
	}
	if r.refs--; r.refs == 0 {
		r.key.tunnel.DeletePeer(r.num)
		t.p.stats.Peers++
		delete(t.p.peers, r.key)
	}
}
