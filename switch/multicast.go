package vswitch

import (
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/gso"
)

// A Selector is a Stage for slot Multicast that knows who listens to which group. Process sees each frame to a group, other than
// broadcast, without an FDB entry; of those that are flooded, Select says how far. The type must be comparable.
type Selector interface {
	Stage

	// Select returns where f is sent, as far as split horizon and the settings of attachments allow; some is false for
	// everywhere. It must neither allocate nor wait. What it returns must not change.
	Select(f *frame.Frame) (to frame.Selection, some bool)
}

// multicast stages f for the members, and the peers of tunnels, of a selection; those of a tunnel with a list for the group are the
// peers of that list. The gateway gets a copy as of other floods.
func (w *worker) multicast(f *frame.Frame, c *circuit, to *frame.Selection, localOnly bool) {
	v, n := c.vsi.view.Load(), 0
	if !localOnly {
		for _, e := range v.tunnels {
			if to.Tunnels || e.hasGroup(f) {
				n += w.copyTo(f, c, e, 0)
			}
		}
	}
	nobody := frame.NoListener
	whole := uint16(0) // the tunnel whose flood list has got the frame
	for d, ok := to.Next(); ok; d, ok = to.Next() {
		e := v.find(d.Port())
		if e == nil || e.port.tunnel != nil && (to.Tunnels || localOnly || d.Port() == whole || e.hasGroup(f)) {
			continue
		}
		if e.port.tunnel != nil && d.Peer() == 0 {
			whole = d.Port()
		}
		if e.role != nil && e.role.withholds(f, c) {
			nobody = frame.NotForwarder
			continue
		}
		n += w.copyTo(f, c, e, d.Peer())
	}
	if c.slots.Gateway != nil {
		n += w.gatewayCopy(f, c, &nobody)
	}
	switch {
	case n > 0:
		w.rx.add(floodCounter(Multicast), 1)
		w.ofVSI(c.vsi).add(floodCounter(Multicast), 1)
	case to.Taken:
		w.rx.add(cConsumed, 1)
	default:
		w.drop(c, nobody)
	}
}

// copyTo stages a copy of a multicast frame for a peer of e, with 0 for the port or the flood list, and returns the number of
// copies: 0 if split horizon forbids it.
func (w *worker) copyTo(f *frame.Frame, c, e *circuit, peer uint16) int {
	skip, ok := floodTo(c, e, f, Multicast)
	if !ok || peer != 0 && peer == skip {
		return 0
	}
	mtu := e.longest(f, peer)
	if f.SegLen() > mtu && !gso.Shorten(f, mtu) {
		w.dropOut(e, frame.TooBig)
		return 1
	}
	if peer != 0 {
		skip = 0
	}
	w.stage(f, e, peer, skip)
	return 1
}
