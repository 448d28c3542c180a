package vtep

import (
	"fmt"
	"net/netip"

	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/frame"
)

// A multicast group in a flood list is a hop that frames are sent to but never come from: a frame to the group
// has the address of its sender (RFC 7348, section 4.2), which is an ordinary peer and is answered by unicast.

// floodEntry checks an entry of a flood list: a peer, or a multicast group.
func (v *VTEP) floodEntry(ap netip.AddrPort) (frame.Endpoint, error) {
	a := ap.Addr().Unmap()
	if !a.IsMulticast() || v.cfg.Type.Bare() {
		return v.endpoint(ap)
	}
	if a.Zone() != "" {
		return frame.Endpoint{}, fmt.Errorf("vtep: group %v: zone not allowed; the underlay's setting selects the interface", a)
	}
	e, err := frame.EndpointFrom(ap)
	if err != nil {
		return e, fmt.Errorf("vtep: group: %w", err)
	}
	return e, v.reaches(ap, e)
}

// join joins all groups of a flood list, or on an error none. v.mu is held.
func (v *VTEP) join(l *floodList) error {
	for i, h := range l.groups {
		if h.joined == 0 {
			if err := v.under(h).Join(h.address()); err != nil {
				v.leave(&floodList{groups: l.groups[:i]})
				return fmt.Errorf("vtep: group %v: %w", h.address(), err)
			}
		}
		h.joined++
	}
	return nil
}

// leave undoes join. v.mu is held.
func (v *VTEP) leave(l *floodList) {
	for _, h := range l.groups {
		if h.joined--; h.joined == 0 {
			_ = v.under(h).Leave(h.address()) // fails after Close, which has left all groups
		}
	}
}

// under returns the underlay of a hop's family.
func (v *VTEP) under(h *hop) Underlay { return v.families[h.family].link.Load().u }

// address returns the address of a multicast group.
func (h *hop) address() netip.Addr { return h.to.Load()[0].AddrPort().Addr() }

// marksCopies reports whether headers say what is a copy of a flooded frame.
func (v *VTEP) marksCopies() bool { return v.cfg.Type == encap.TypeGPE || v.cfg.Type == encap.TypeOwn }

// wrapGroups adds the tunnel header to a frame for the multicast groups of a list.
//
// VXLAN-GPE marks frames that the ingress has replicated (B bit; draft-ietf-nvo3-vxlan-gpe-13, section 3.1).
// Copies to a group are not marked, since the network makes them.
func (w *writer) wrapGroups(l *floodList, i int, o *frame.Out) (*wrapped, frame.Reason) {
	x := &w.scratch[i].wrapped
	switch {
	case w.v.marksCopies():
		x = &w.groups[i]
	case !l.noPeers():
		return x, frame.NotDropped // wrapped already
	}
	return x, w.wrap(x, o.F, frame.VNI(o.Tag), false, nil)
}

// toGroups stages one datagram for each multicast group of a list.
func (w *writer) toGroups(l *floodList, x *wrapped, i int, o *frame.Out, varied bool) {
	for _, h := range l.groups {
		if varied {
			if o.F.SegLen()+int(x.extra) > w.v.mtuTo(h) {
				p := &w.scratch[i]
				p.copies++
				p.lose(tooLong, 1, frame.TooBig)
				continue
			}
			w.counts.Of(uint32(h.num)).add(1, uint64(o.F.Len()))
		}
		w.stage(int(h.family), i, x, o.F, h.to.Load()[:], w.v.groups)
	}
}
