package vtep

import (
	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/frame"
)

// reader turns datagrams into frames of the overlay, in place.
type reader struct {
	v    *VTEP
	in   frame.Reader
	side *side

	from *hop // whose packets are being counted
	run  uint64
}

// Read reads one batch from the underlay. A refused packet stays in it with its
// Drop set; VNI is set as far as it was understood.
func (r *reader) Read(b *frame.Batch) error {
	if err := r.in.Read(b); err != nil {
		return err
	}
	for i := range b.Frames {
		if f := &b.Frames[i]; f.Drop == frame.NotDropped {
			f.Drop = r.accept(f, b.Outer[i].Src)
		}
	}
	r.count(nil)
	return nil
}

// accept is BEHAVIOUR's order of checks: source, length, I flag, VNI, inner length.
// The inner MACs are the switch's business. A refused packet teaches nothing.
func (r *reader) accept(f *frame.Frame, src frame.Endpoint) frame.Reason {
	v := r.v
	f.Tunnel, f.Kind = true, frame.Ethernet
	src = src.Host()
	if src == r.side.local {
		return frame.OwnAddress
	}
	h, known := v.byHost.Load(hostKey(src))
	if !known && v.cfg.Peers == ListedOnly {
		return frame.UnknownPeer
	}
	head, drop := encap.ParseVXLAN(f.Bytes())
	if drop != frame.NotDropped {
		return drop
	}
	f.VNI = head.VNI()
	if n, ok := v.networks.Load(vniKey(f.VNI)); !ok || !n.open.Load() {
		return frame.UnknownVNI
	}
	f.Pull(encap.VXLANLen)
	if f.Len() < encap.EthernetLen {
		return frame.Short
	}
	if !known {
		if frame.MAC(f.Bytes()[6:12]).IsGroup() {
			return frame.BadSourceMAC // before it makes a peer of its sender
		}
		h = v.learn(src, r.side)
	}
	if h != nil {
		f.From = frame.NewDest(0, h.num)
		r.count(h)
	}
	return frame.NotDropped
}

// count adds one to the packets of h, once for each run of packets from one peer.
func (r *reader) count(h *hop) {
	if h != r.from {
		if r.from != nil {
			r.from.rx.Add(r.run)
		}
		r.from, r.run = h, 0
	}
	r.run++
}
