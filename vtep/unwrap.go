package vtep

import (
	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/gso"
)

// unwrap removes the tunnel header of a packet, sets its VNI and kind, and returns the inner frame.
func (r *reader) unwrap(f *frame.Frame) ([]byte, frame.Reason) {
	switch r.v.cfg.Type {
	case encap.TypeGPE:
		drop := r.unwrapGPE(f)
		return f.Bytes(), drop
	case encap.TypeIPIP, encap.TypeFOU:
		drop := r.unwrapIP(f)
		return f.Bytes(), drop
	case encap.TypeOwn:
		drop := r.unwrapOwn(f)
		return f.Bytes(), drop
	}
	head, drop := encap.ParseVXLAN(f.Bytes())
	if drop != frame.NotDropped {
		return nil, drop
	}
	f.Kind = frame.Ethernet
	if vni := head.VNI(); vni == r.vni && r.open && r.v.cfg.Peers != ListedPerVNI {
		f.VNI = vni // the same as before
	} else if drop := r.enter(f, vni); drop != frame.NotDropped {
		return nil, drop
	}
	if uint64(head)&r.v.reserved != 0 {
		return nil, frame.ReservedBits
	}
	if r.v.cfg.GBP {
		f.GBP = head.GBP()
	}
	p := f.Pull(encap.VXLANLen)
	if len(p) < encap.EthernetLen {
		return nil, frame.Short
	}
	return p, frame.NotDropped
}

// enter sets the VNI of f, if the VNI is open and the peer may send frames of it.
func (r *reader) enter(f *frame.Frame, vni frame.VNI) frame.Reason {
	f.VNI = vni
	if !r.open || vni != r.vni {
		n, ok := r.v.networks.Load(vniKey(vni))
		if r.vni, r.open = vni, ok && n.open.Load(); !r.open {
			return frame.UnknownVNI
		}
		r.net, r.allowed, r.dscp = n, nil, r.v.dscpOf(n)
	}
	if r.v.cfg.Peers == ListedPerVNI && r.from != r.allowed {
		if !r.net.lists(r.from) {
			return frame.UnknownPeer
		}
		r.allowed = r.from
	}
	return frame.NotDropped
}

// refuse returns why, and sets the VNI of f, for which the drop counts, if it can be read.
func (r *reader) refuse(f *frame.Frame, why frame.Reason) frame.Reason {
	if own := r.v.cfg.Own; own != nil {
		if p, _, drop := own.Parse(f.Bytes()); drop == frame.NotDropped && p.VNI.Valid() {
			f.VNI = p.VNI
		}
	} else if r.v.cfg.Type.Bare() {
		f.VNI = 0
	} else if head, drop := encap.ParseVXLAN(f.Bytes()); drop == frame.NotDropped { // GPE has it there, too
		f.VNI = head.VNI()
	}
	return why
}

// unwrapGPE is unwrap for VXLAN-GPE. Packets of a batch may have different kinds.
func (r *reader) unwrapGPE(f *frame.Frame) frame.Reason {
	head, drop := encap.ParseGPE(f.Bytes())
	if drop == frame.NotDropped || drop == frame.GPEOAM {
		f.VNI = head.VNI() // for which the drop counts
	}
	switch drop {
	case frame.NotDropped:
	case frame.GPEOAM:
		return r.handOver(f, head)
	default:
		return drop
	}
	var known, service bool
	switch {
	case head&encap.GPEFlagProtocol != 0:
		f.Kind, known = head.Kind()
	default:
		f.Kind, known = frame.Ethernet, r.v.cfg.EthernetWithoutP
	}
	if !known {
		service = head&encap.GPEFlagProtocol != 0 && head.Next() == encap.NextNSH && r.v.services.Load() != nil
		if !service {
			return frame.GPEProtocol
		}
	}
	if drop := r.enter(f, head.VNI()); drop != frame.NotDropped {
		return drop
	}
	if uint64(head)&r.v.reserved != 0 {
		return frame.ReservedBits
	}
	f.Replicated = head&encap.GPEFlagBUM != 0
	f.Pull(encap.VXLANLen)
	if service {
		return r.receive(f)
	}
	return whole(f)
}

// unwrapOwn is unwrap for an encapsulation of the program's own, which is not trusted to check what it says.
func (r *reader) unwrapOwn(f *frame.Frame) frame.Reason {
	p, n, drop := r.v.cfg.Own.Parse(f.Bytes())
	switch {
	case drop != frame.NotDropped:
		if p.VNI.Valid() && p.VNI != 0 {
			f.VNI = p.VNI // for which the drop counts
		}
		return named(drop)
	case n < 0 || n > f.Len() || p.Kind > frame.IPv6 || !p.VNI.Valid():
		return frame.BadHeader
	}
	if drop := r.enter(f, p.VNI); drop != frame.NotDropped {
		return drop
	}
	f.Kind, f.Replicated, r.head = p.Kind, p.Copy, n
	f.Pull(n)
	return whole(f)
}

// unwrapIP is unwrap for IP without a tunnel header. The underlay has removed the outer headers, and set the kind by the
// protocol number of IP-in-IP; else the version says it. There is only one network.
func (r *reader) unwrapIP(f *frame.Frame) frame.Reason {
	if r.v.cfg.Type == encap.TypeFOU {
		f.Kind = kindOf(f.Bytes())
	}
	if drop := r.enter(f, 0); drop != frame.NotDropped {
		return drop
	}
	drop := bareIP(f)
	if drop == frame.NotDropped && r.v.cfg.Type == encap.TypeIPIP && f.GSO.Flags == 0 && f.Len() > r.family.longest() { // a raw socket does not tell
		gso.Merged(f, r.mtu())
	}
	return drop
}

// superframe reports whether the payload p, which the underlay cannot tell from several datagrams or frames, is
// one superframe.
func (v *VTEP) superframe(p []byte) bool {
	kind := frame.Ethernet
	switch v.cfg.Type {
	case encap.TypeIPIP:
		return false
	case encap.TypeFOU:
		return gso.Superframe(p, kindOf(p))
	case encap.TypeOwn:
		x, n, drop := v.cfg.Own.Parse(p)
		return drop == frame.NotDropped && n >= 0 && n < len(p) && gso.Superframe(p[n:], x.Kind)
	case encap.TypeGPE:
		head, drop := encap.ParseGPE(p)
		if drop != frame.NotDropped {
			return false
		}
		if head&encap.GPEFlagProtocol != 0 {
			var known bool
			if kind, known = head.Kind(); !known {
				return false
			}
		}
	}
	return len(p) > encap.VXLANLen && gso.Superframe(p[encap.VXLANLen:], kind)
}

// kindOf returns the kind of an IP packet by its version; without one it is none, which bareIP refuses.
func kindOf(p []byte) frame.Kind {
	if len(p) > 0 && p[0]>>4 == 6 {
		return frame.IPv6
	}
	return frame.IPv4
}

// bareIP checks an IP packet without an Ethernet header.
func bareIP(f *frame.Frame) frame.Reason {
	n, drop := encap.ParseIP(f.Bytes(), f.Kind)
	if drop == frame.NotDropped {
		f.Trim(n)
	}
	return drop
}
