package vswitch

import (
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/gso"
)

// flood stages f for every member that split horizon allows. The gateway gets it last, because it may
// rewrite it.
func (w *worker) flood(f *frame.Frame, c *circuit, localOnly bool) {
	class := classOf(frame.MAC(f.Bytes()))
	if c.storm != [2]*meters{} && !w.admit(f, c, class) {
		w.drop(c, frame.Storm)
		return
	}
	if c.selector != nil && class == Multicast {
		if to, some := c.selector.Select(f); some {
			w.multicast(f, c, &to, localOnly)
			return
		}
	}
	n, mtu := 0, 0 // copies, and the smallest MTU that f exceeds
	nobody := frame.NoEgress
	for _, e := range c.vsi.view.Load().members {
		skip, ok := floodTo(c, e, f, class)
		if !ok || localOnly && e.port.tunnel != nil {
			continue
		}
		if e.role != nil && e.role.withholds(f, c) {
			nobody = frame.NotForwarder
			continue
		}
		n++
		if some, all := e.floodMTU(); f.SegLen() > all {
			some, all = e.room(f, some), e.room(f, all)
			if f.SegLen() > all && !gso.Shorten(f, all) && (mtu == 0 || all < mtu) {
				mtu = all
			}
			if f.SegLen() > some {
				w.dropOut(e, frame.TooBig)
				continue
			}
		}
		w.stage(f, e, 0, skip)
	}
	if mtu != 0 && class == UnknownUnicast && c.slots.TooBig != nil {
		// The frame is for one host, which may be where it does not fit, so the sender is told as if
		// the host were known. The copies that fit are written first, since the stage rewrites the
		// frame. It counts as flooded either way.
		w.flush()
		if v := c.tooBig(f, &w.at, 0, mtu); v.Action() == frame.ActReply {
			w.reply(f, c)
		}
	}
	if c.slots.Gateway != nil && class != UnknownUnicast {
		n += w.gatewayCopy(f, c, &nobody)
	}
	if n == 0 {
		w.drop(c, nobody)
		return
	}
	w.rx.add(floodCounter(class), 1)
	w.ofVSI(c.vsi).add(floodCounter(class), 1)
}

// floodTo reports whether a frame that came in on c is flooded to e, and which peer of e to skip: the
// one that it came from. A copy that a peer made when it flooded is not sent to other peers of the same
// tunnel. Another tunnel within reach is another fabric.
func floodTo(c, e *circuit, f *frame.Frame, class Class) (skip uint16, ok bool) {
	switch {
	case e.noFloodOut&class != 0, !c.reaches(e), c.isolates(f, e), f.Replicated && e.port == c.port:
		return 0, false
	case e.port == c.port:
		// A hub forwards to its other peers, if it knows which one to skip.
		return f.From.Peer(), f.From.Peer() != 0
	}
	return 0, true
}

// gatewayCopy gives the gateway a copy of a flooded frame. It returns the number of copies that it took, and
// sets the reason if it drops the frame. It may rewrite the frame, so what is staged is written first.
func (w *worker) gatewayCopy(f *frame.Frame, c *circuit, why *frame.Reason) int {
	if c.keepsTag(f) {
		return 0
	}
	w.flush()
	switch v := c.toGateway(f, &w.at); {
	case v == frame.Continue: // it got a copy, like a member
	case v.Action() == frame.ActDrop:
		*why = v.Reason()
		return 0
	default:
		w.frames++ // the gateway turned it into a frame of its own
		w.bytes += w.length
		w.act(f, c, v)
	}
	return 1
}
