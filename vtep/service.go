package vtep

import (
	"fmt"

	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/absent"
)

// OAM handles the OAM packets of a VXLAN-GPE tunnel, those with the O bit (draft-ietf-nvo3-vxlan-gpe-13, section 3.1). Readers call
// it, several at a time, for packets of the peers and VNIs that may send; it must not block or keep the packet.
type OAM interface {
	OAM(p OAMPacket)
}

// OAMPacket is what came in one packet.
type OAMPacket struct {
	From frame.Endpoint // outer source address, without port
	VNI  frame.VNI
	Next encap.NextProtocol // 0 without the P bit
	Data []byte             // behind the tunnel header; borrowed
}

// Services handles packets with an NSH in a VXLAN-GPE tunnel (RFC 8300): the VTEP is a forwarder of service paths, and what is behind
// it a service, or the end of paths. Readers and Writers call it, several at a time: it must not block, allocate for each packet, or keep
// what it is given.
type Services interface {
	// Receive gets the Ethernet frame or IP packet behind an NSH, whose TTL has been counted down. Of the frame it may use
	// f.Bytes, f.Kind and f.VNI; with frame.Continue the frame goes on into the switch without the NSH, and Receive may change
	// it in place before. With frame.Consume it has been dealt with, and frame.Drop drops it. The switch has not checked the
	// frame yet, and its sender is not yet a peer. Packets with the O bit of NSH come, too: drop them unless you handle them
	// (RFC 8300, section 2.2).
	Receive(f *frame.Frame, h encap.NSH, from frame.Endpoint) frame.Verdict

	// Send appends to b the NSH for a frame that is about to be sent in a VNI, or returns b: the frame has none. With nil, or
	// what is no NSH, the frame is dropped as frame.BadHeader.
	// [encap.AppendNSH] makes one. The next protocol is set afterwards to what the frame is. A frame that is too long with its
	// NSH is dropped as frame.TooBig: lower Config.MTU by the longest one, so that hosts know.
	Send(b []byte, f *frame.Frame, vni frame.VNI) []byte
}

// SetOAM has o handle OAM packets, or with nil nobody: they are dropped as frame.GPEOAM, as at first.
func (v *VTEP) SetOAM(o OAM) error { return set(v, "SetOAM", o, &v.oam) }

// SetServices has s handle packets with NSH, or with nil nobody: they are dropped as frame.GPEProtocol, as at first, and none is
// sent. While there is one, no offload carries frames of the tunnel.
func (v *VTEP) SetServices(s Services) error {
	return set(v, "SetServices", s, &v.services)
}

func set[T any](v *VTEP, what string, x T, to interface{ Store(*T) }) error {
	switch {
	case v.cfg.Type != encap.TypeGPE:
		return fmt.Errorf("vtep: %s: Config.Type: %v has no such packets, VXLAN-GPE has", what, v.cfg.Type)
	case any(x) != nil && absent.Is(x):
		return fmt.Errorf("vtep: %s: the handler is %#v", what, x)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if err := v.errClosed(); err != nil {
		return err
	}
	if any(x) == nil {
		to.Store(nil)
	} else {
		to.Store(&x)
	}
	v.changed()
	return nil
}

// taken is the Drop of packets that a handler has dealt with, until Read takes them out of the batch. It is no Reason, and must not
// reach a counter.
const taken = frame.NumReasons

// handOver gives an OAM packet to the handler.
func (r *reader) handOver(f *frame.Frame, head encap.GPE) frame.Reason {
	o := r.v.oam.Load()
	if o == nil {
		return frame.GPEOAM
	}
	if drop := r.enter(f, head.VNI()); drop != frame.NotDropped {
		return drop
	}
	if uint64(head)&r.v.reserved != 0 {
		return frame.ReservedBits
	}
	p := OAMPacket{From: r.src, VNI: f.VNI, Data: f.Bytes()[encap.VXLANLen:]}
	if head&encap.GPEFlagProtocol != 0 {
		p.Next = head.Next()
	}
	(*o).OAM(p)
	r.took = true
	return taken
}

// receive removes the NSH of a packet, after the tunnel header, and returns what the handler says.
func (r *reader) receive(f *frame.Frame) frame.Reason {
	h, drop := encap.ParseNSH(f.Bytes())
	if drop != frame.NotDropped {
		return drop
	}
	var known bool
	switch f.Kind, known = h.Kind(); {
	case !known:
		return frame.GPEProtocol
	case h.Index() == 0:
		return frame.ServiceIndex
	}
	if drop := h.Hop(); drop != frame.NotDropped {
		return drop
	}
	f.Pull(len(h))
	if drop := whole(f); drop != frame.NotDropped {
		return drop
	}
	s := r.v.services.Load()
	if s == nil { // removed since
		return frame.GPEProtocol
	}
	switch x := (*s).Receive(f, h, r.src); x.Action() {
	case frame.ActContinue:
		return whole(f)
	case frame.ActDrop:
		return max(named(x.Reason()), frame.NotDropped+1)
	case frame.ActConsume:
		r.took = true
		return taken
	}
	return frame.GPEProtocol
}

// named returns what a program gives as a reason, if it is one.
func named(r frame.Reason) frame.Reason {
	if r >= frame.NumReasons {
		return frame.BadHeader
	}
	return r
}

// whole checks the packet behind the headers of VXLAN-GPE.
func whole(f *frame.Frame) frame.Reason {
	switch {
	case f.Kind != frame.Ethernet:
		return bareIP(f)
	case f.Len() < encap.EthernetLen:
		return frame.Short
	}
	return frame.NotDropped
}

// forget removes the packets that handlers have taken from a batch, and counts them.
func (r *reader) forget(b *frame.Batch) {
	n := 0
	for i := range b.Frames {
		if b.Frames[i].Drop != taken {
			b.Frames[n], b.Outer[n] = b.Frames[i], b.Outer[i]
			n++
		}
	}
	r.v.handled.Add(uint64(len(b.Frames) - n))
	b.Frames, b.Outer = b.Frames[:n], b.Outer[:n]
	r.took = false
}

// addNSH puts an NSH between the header and a frame, if the handler says so. To one hop the frame must fit with it.
func (w *writer) addNSH(p *wrapped, f *frame.Frame, vni frame.VNI, to *hop) frame.Reason {
	from := len(w.headers)
	b := w.services.Send(append(w.headers, p.header[:]...)[from:], f, vni)
	w.headers = append(w.headers[:from], b...)
	b = w.headers[from:]
	n := len(b) - encap.VXLANLen
	if n == 0 {
		return frame.NotDropped
	}
	if n < 0 {
		return frame.BadHeader
	}
	h, drop := encap.ParseNSH(b[encap.VXLANLen:])
	switch {
	case drop != frame.NotDropped || len(h) != n:
		return frame.BadHeader
	case h.Index() == 0:
		return frame.ServiceIndex
	case to != nil && f.SegLen()+n > w.v.mtuTo(to):
		return frame.TooBig
	}
	b[encap.GPENextAt], h[encap.NSHNextAt] = byte(encap.NextNSH), p.header[encap.GPENextAt]
	p.whole[0], p.extra = b, uint16(n)
	return frame.NotDropped
}
