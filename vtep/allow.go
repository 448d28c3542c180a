package vtep

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/vxswitch/vxswitch/frame"
)

// allowed is who may send frames of a VNI where peers are listed for each: immutable.
type allowed struct {
	own []*hop // by Allow, in the order they came
	all map[*hop]struct{}
}

// lists reports whether h may send frames of the VNI.
func (n *network) lists(h *hop) bool {
	_, ok := n.allowed.Load().all[h]
	return ok
}

// allow publishes who may send: own, and the flood list as it is. v.mu is held.
func (v *VTEP) allow(n *network, own []*hop) {
	a := &allowed{own: own}
	if v.cfg.Peers != ListedPerVNI {
		n.allowed.Store(a)
		return
	}
	a.all = make(map[*hop]struct{}, len(own))
	for _, h := range own {
		a.all[h] = struct{}{}
	}
	for h := range n.flood.Load().all {
		a.all[h] = struct{}{}
	}
	n.allowed.Store(a)
}

// Allow lets peers send frames of a VNI that are not in its flood list, where Config.Peers
// is ListedPerVNI: those that entries of the FDB or routes name, and that get nothing that
// is flooded. Ports are as in AddPeer. The peers become listed; our own address, and one that
// is allowed already, changes nothing. The VNI must be open, as in SetFlood. On an error nobody
// has been added.
func (v *VTEP) Allow(vni frame.VNI, peers ...netip.AddrPort) error {
	if !vni.Valid() {
		return fmt.Errorf("vtep: VNI %d, allowed are 0 to %d", vni, frame.MaxVNI)
	}
	var es []frame.Endpoint
	for _, p := range peers {
		e, err := v.endpoint(p)
		if err != nil {
			return err
		}
		if !v.isLocal(e) {
			es = append(es, e)
		}
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if err := v.isOpen(vni); err != nil {
		return err
	}
	var more []*hop
	n := v.network(vni)
	own := n.allowed.Load().own
	for _, e := range es {
		h, err := v.peer(e)
		if err != nil {
			v.forget(vni, n)
			return err
		}
		if !slices.Contains(own, h) && !slices.Contains(more, h) {
			more = append(more, h)
		}
	}
	v.allow(n, slices.Concat(own, more))
	for _, h := range more {
		v.list(h, func() { h.refs++ })
	}
	v.forget(vni, n)
	return nil
}

// Disallow ends Allow. Peers that are in the flood list of the VNI go on.
func (v *VTEP) Disallow(vni frame.VNI, peers ...netip.AddrPort) {
	v.mu.Lock()
	defer v.mu.Unlock()
	n, ok := v.networks.Load(vniKey(vni))
	if !ok {
		return
	}
	own := slices.Clone(n.allowed.Load().own)
	for _, p := range peers {
		e, err := frame.EndpointFrom(p)
		if err != nil {
			continue
		}
		h, ok := v.byHost.Load(hostKey(e.Host()))
		if i := slices.Index(own, h); ok && i >= 0 {
			own = slices.Delete(own, i, i+1)
			v.list(h, func() { h.refs-- })
		}
	}
	v.allow(n, own)
	v.forget(vni, n)
}

// Allowed returns who was allowed for a VNI.
func (v *VTEP) Allowed(vni frame.VNI) (peers []netip.AddrPort) {
	if n, ok := v.networks.Load(vniKey(vni)); ok {
		for _, h := range n.allowed.Load().own {
			peers = append(peers, h.to.Load()[0].AddrPort())
		}
	}
	return peers
}
