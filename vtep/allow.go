package vtep

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/vxswitch/vxswitch/frame"
)

// allowed is the peers that may send frames of a VNI, if they are listed for each VNI. It is immutable.
type allowed struct {
	own []*hop // by Allow, in order
	all map[*hop]struct{}
}

// lists reports whether h may send frames of the VNI.
func (n *network) lists(h *hop) bool {
	_, ok := n.allowed.Load().all[h]
	return ok
}

// allow publishes own and the flood list as the peers that may send. v.mu is held.
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

// Allow lets peers send frames of a VNI without being in its flood list, if Config.Peers is ListedPerVNI: for
// instance peers that only FDB entries or routes refer to. Ports are as in AddPeer. The peers become listed. The
// VTEP's own address and peers that are allowed already are ignored. The VNI must be open, as for SetFlood. On
// an error nothing has changed.
func (v *VTEP) Allow(vni frame.VNI, peers ...netip.AddrPort) error {
	if !vni.Valid() {
		return fmt.Errorf("vtep: VNI %d: must be 0 to %d", vni, frame.MaxVNI)
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

// Disallow undoes Allow. Peers in the flood list of the VNI may still send.
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

// Allowed returns the peers that Allow has added to a VNI.
func (v *VTEP) Allowed(vni frame.VNI) (peers []netip.AddrPort) {
	if n, ok := v.networks.Load(vniKey(vni)); ok {
		for _, h := range n.allowed.Load().own {
			peers = append(peers, h.to.Load()[0].AddrPort())
		}
	}
	return peers
}
