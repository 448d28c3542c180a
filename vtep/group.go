package vtep

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/optional"
)

// A multicast group in a flood list is a hop like a peer's, but one that nothing comes in
// from: what is sent to the group has the address of its sender (RFC 7348, section 4.2), who
// is a peer like any other, and who is answered by unicast.

// floodEntry checks an entry of a flood list: a peer, or a multicast group.
func (v *VTEP) floodEntry(ap netip.AddrPort) (frame.Endpoint, error) {
	a := ap.Addr().Unmap()
	if !a.IsMulticast() || v.cfg.Type == encap.TypeIPIP {
		return v.endpoint(ap)
	}
	if a.Zone() != "" {
		return frame.Endpoint{}, fmt.Errorf("vtep: group %v: a multicast group has no zone, its interface is the underlay's", a)
	}
	e, err := frame.EndpointFrom(ap)
	if err != nil {
		return e, fmt.Errorf("vtep: group: %w", err)
	}
	if err := v.reaches(ap, e); err != nil {
		return e, err
	}
	if _, ok := optional.Of[grouper](v.sides[sideOf(e)].u); !ok {
		return e, fmt.Errorf("vtep: group %v: the underlay takes no multicast: %w", a, errors.ErrUnsupported)
	}
	return e, nil
}

// join makes the VTEP a member of the groups in a list of an open VNI: of all or, with an
// error, of none. v.mu is held.
func (v *VTEP) join(l *floodList) error {
	for i, h := range l.groups {
		if h.joined == 0 {
			if err := v.grouper(h).Join(h.address()); err != nil {
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
			_ = v.grouper(h).Leave(h.address()) // fails after Close, which has left them all
		}
	}
}

func (v *VTEP) grouper(h *hop) grouper {
	g, _ := optional.Of[grouper](v.sides[h.side].u) // floodEntry has seen to it
	return g
}

// address returns the address of a multicast group.
func (h *hop) address() netip.Addr { return h.to.Load()[0].AddrPort().Addr() }

// toGroups stages one datagram for each multicast group of a list. It reports false for a frame
// that cannot be cut.
//
// VXLAN-GPE marks what was replicated at the ingress (draft-ietf-nvo3-vxlan-gpe-13, section
// 3.1, B bit), and this was not: the network makes the copies.
func (w *writer) toGroups(l *floodList, i int, o *frame.Out, uneven bool) bool {
	p := &w.pkt[i]
	x := &p.wrapped
	if gpe := w.v.cfg.Type == encap.TypeGPE; gpe || l.noPeers() {
		if gpe {
			x = &p.group
		}
		if !w.wrap(x, o.F, frame.VNI(o.Tag), false) {
			return false
		}
	}
	for _, h := range l.groups {
		if uneven {
			if o.F.SegLen() > w.v.mtuTo(h) {
				p.copies++
				p.lose(tooLong, 1, frame.TooBig)
				continue
			}
			h.tx.Add(1)
		}
		w.stage(int(h.side), i, x, o.F, h.to.Load()[:], w.v.groups)
	}
	return true
}
