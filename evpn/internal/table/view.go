package table

import (
	"iter"
	"maps"
	"net/netip"

	"github.com/vxswitch/vxswitch/evpn/internal/route"
	"github.com/vxswitch/vxswitch/frame"
)

// Left returns how many routes of peers are used nowhere, by reason.
func (t *Table) Left() map[string]int { return maps.Clone(t.left) }

// Advertised returns how many routes are ours.
func (t *Table) Advertised() int { return len(t.said) }

// A Network is what is known of a segment.
type Network struct {
	Segment
	RD    route.RD
	Hosts int // MACs that are here
	Far   int // MACs of peers
	VTEPs int // in its flood list
}

// Networks iterates over the segments, in no order.
func (t *Table) Networks() iter.Seq[Network] {
	return func(yield func(Network) bool) {
		for _, s := range t.segments {
			n := Network{Segment: s.Segment, RD: t.rdOf(s), VTEPs: len(s.floods)}
			for _, h := range s.hosts {
				if h.claimed {
					n.Hosts++
				} else if len(h.claims) > 0 {
					n.Far++
				}
			}
			if !yield(n) {
				return
			}
		}
	}
}

// Duplicates iterates over the MACs that have moved too often, in no order, with the VTEP where each stays, none for here.
func (t *Table) Duplicates() iter.Seq2[netip.Addr, MACOf] {
	return func(yield func(netip.Addr, MACOf) bool) {
		for _, s := range t.segments {
			for _, h := range s.hosts {
				if h.moves == nil || !h.moves.Duplicate() {
					continue
				}
				var at netip.Addr
				if best := h.best(); best != nil && !h.claimed {
					at = best.VTEP.Netip()
				}
				if !yield(at, MACOf{s.VNI, h.mac}) {
					return
				}
			}
		}
	}
}

// A Said is a route that a peer has said, or we.
type Said struct {
	route.Route
	Peer  netip.Addr // none = we
	Left  string     // why it is used nowhere, "" if it is
	Stale bool       // of a session before, and not said again yet
}

// Routes returns the routes, in no order.
func (t *Table) Routes() (list []Said) {
	n := len(t.said)
	for _, in := range t.peers {
		n += len(in)
	}
	list = make([]Said, 0, n)
	for _, r := range t.said {
		list = append(list, Said{Route: r.Route})
	}
	for peer, in := range t.peers {
		for _, p := range in {
			list = append(list, Said{p.Route, peer, p.left, p.stale})
		}
	}
	return list
}

// MACOf is a MAC of a segment.
type MACOf struct {
	VNI frame.VNI
	MAC frame.MAC
}
