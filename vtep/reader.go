package vtep

import (
	"net/netip"

	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/gso"
	"github.com/vxswitch/vxswitch/internal/hostaddr"
)

// reader turns datagrams into frames of the overlay, in place.
type reader struct {
	v    *VTEP
	in   frame.Reader
	side *side

	// What the packet before was, good for one batch: most come in runs.
	src   frame.Endpoint
	bad   frame.Reason // of src: why nothing from it is taken
	from  *hop         // nil: none, or unknown
	run   uint64
	vni   frame.VNI
	open  bool     // vni is open
	net   *network // of vni
	heard *hop     // one that may send frames of vni, where peers are listed for each

	local frame.Endpoint // own address, as of the batch at hand
}

// noVNI is the VNI of a packet whose header was not understood: no attachment has
// it, so that the drop counts for none.
const noVNI = frame.MaxVNI + 1

// Read reads one batch from the underlay. A refused packet stays in it with its
// Drop set, and with noVNI unless its VNI was understood.
func (r *reader) Read(b *frame.Batch) error {
	if err := r.in.Read(b); err != nil {
		return err
	}
	b.Gone, b.Known = &r.v.gone, r.v.gone.Load()
	r.open, r.heard, r.local = false, nil, r.side.local.Load().Endpoint
	for i := range b.Frames {
		f := &b.Frames[i]
		f.VNI = noVNI
		if f.Drop == frame.NotDropped {
			f.Drop = r.accept(f, &b.Outer[i])
			if f.Kind != frame.Ethernet && f.Drop == frame.NotDropped {
				b.Room(f, encap.EthernetLen) // for a gateway's header: more than the tunnel's took
			}
		}
	}
	r.peer(&frame.Endpoint{})
	return nil
}

// accept checks in this order, which decides what a packet is dropped for: source, the
// tunnel's header, VNI, the VNI's peers, reserved bits, inner length, ECN. The inner MACs are
// the switch's business. A refused packet teaches nothing.
func (r *reader) accept(f *frame.Frame, outer *frame.Outer) frame.Reason {
	v, src := r.v, &outer.Src
	f.Tunnel = true
	if src.IP != r.src.IP || src.Scope != r.src.Scope {
		r.peer(src)
	}
	if r.bad != frame.NotDropped {
		return r.refuse(f, r.bad)
	}
	if v.cfg.Peers != AnyPeer && (r.from == nil || !r.from.known.Load()) {
		return r.refuse(f, frame.UnknownPeer)
	}
	p, drop := r.unwrap(f)
	if drop != frame.NotDropped {
		return drop
	}
	// Of most addresses two bytes say that they are no group, without a copy being made.
	if ip := &outer.Dst.IP; (ip[0] == 0xff || ip[12] >= 0xe0) && outer.Dst.IsMulticast() {
		f.Replicated = true // a hub does not send it round: all in the group have it
	}
	if f.GSO.Flags != 0 { // what the underlay was told is about the inner frame
		if drop := gso.Check(f); drop != frame.NotDropped {
			return drop
		}
	} else if gso.Pending(p, f.Kind) || f.GSO.Type != 0 {
		gso.Received(f, r.mtu())
	}
	if ecn := outer.TOS & 3; ecn != notECT {
		if drop := v.congestion(f, ecn); drop != frame.NotDropped {
			return drop
		}
	}
	if r.from == nil {
		if badSource(f) {
			return frame.BadSourceMAC // before it makes a peer of its sender
		}
		if r.from = v.learn(r.src); r.from == nil {
			return frame.NotDropped
		}
	}
	f.From = frame.NewDest(0, r.from.num)
	r.run++
	return frame.NotDropped
}

// mtu returns the longest inner frame on the way to the sender.
func (r *reader) mtu() int {
	if r.from == nil {
		return r.side.mtu
	}
	return r.v.mtuTo(r.from)
}

// badSource reports whether a frame is from no single host's MAC.
func badSource(f *frame.Frame) bool {
	return f.Kind == frame.Ethernet && !frame.MAC(f.Bytes()[6:12]).IsHost()
}

// peer makes src the sender of the packets that follow, and counts those of the one
// before.
func (r *reader) peer(src *frame.Endpoint) {
	if r.run > 0 {
		r.from.rx.Add(r.run)
		r.from.clearFailures()
	}
	r.src, r.run, r.from, r.bad = src.Host(), 0, nil, frame.NotDropped
	switch {
	case hostaddr.Check(netip.AddrFrom16(r.src.IP)) != nil: // nobody's
		r.bad = frame.Martian
	case r.src == r.local:
		r.bad = frame.OwnAddress
	default:
		r.from, _ = r.v.byHost.Load(hostKey(r.src))
	}
}
