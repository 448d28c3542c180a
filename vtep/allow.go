package vtep

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/mix"
)

// lists reports whether h may send frames of the VNI, if peers are listed for each VNI.
func (n *network) lists(h *hop) bool {
	if _, ok := n.allowed.Load(h); ok {
		return true
	}
	_, ok := n.flooded.Load(h)
	return ok
}

// Hash implements [index.Key]. Strangers do not choose numbers, so no key is needed.
func (h *hop) Hash(*mix.Key) uint64 { return uint64(h.num) }

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
	n := v.network(vni)
	hops := make([]*hop, len(es))
	for i, e := range es {
		h, err := v.peer(e)
		if err != nil {
			v.forget(vni, n)
			return err
		}
		hops[i] = h
	}
	for _, h := range hops {
		if _, ok := n.allowed.Load(h); !ok {
			n.allowed.Store(h, struct{}{})
			v.list(h, func() { h.refs++ })
		}
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
	for _, p := range peers {
		e, err := frame.EndpointFrom(p)
		if err != nil {
			continue
		}
		h, ok := v.byHost.Load(hostKey(e.Host()))
		if !ok {
			continue
		}
		if _, ok := n.allowed.Load(h); ok {
			n.allowed.Delete(h)
			v.list(h, func() { h.refs-- })
		}
	}
	v.changed()
	v.forget(vni, n)
}

// Listed returns the addresses of the listed peers, those of next hops included, in order. It leaves out peers that
// nothing but Allow for the VNI except has listed.
func (v *VTEP) Listed(except frame.VNI) (peers []netip.Addr) {
	v.mu.Lock()
	defer v.mu.Unlock()
	n, _ := v.networks.Load(vniKey(except))
	for h := range v.hops.all {
		refs := h.refs
		if n != nil {
			if _, ok := n.allowed.Load(h); ok {
				refs--
			}
		}
		if h.family >= 0 && !h.mcast && !h.retired && (h.added || refs > 0) {
			peers = append(peers, h.address())
		}
	}
	slices.SortFunc(peers, netip.Addr.Compare)
	return slices.Compact(peers)
}

// Allowed returns the peers that Allow has added to a VNI, in order of their addresses.
func (v *VTEP) Allowed(vni frame.VNI) (peers []netip.AddrPort) {
	if n, ok := v.networks.Load(vniKey(vni)); ok {
		for h := range n.allowed.All() {
			peers = append(peers, h.to.Load()[0].AddrPort())
		}
	}
	slices.SortFunc(peers, netip.AddrPort.Compare)
	return peers
}
