package vtep

import (
	"slices"

	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/wire"
)

// fits returns why the encapsulation cannot carry a frame, or NotDropped. An IP packet needs a peer: without a
// MAC it cannot be flooded.
func (w *writer) fits(o *frame.Out) frame.Reason {
	ethernet := o.F.Kind == frame.Ethernet
	switch t := w.v.cfg.Type; {
	case ethernet && t.Bare(), !ethernet && t == encap.TypeVXLAN:
		return frame.BadKind
	case !ethernet && o.Peer == 0:
		return frame.NoPeer
	}
	return frame.NotDropped
}

// wrap adds the tunnel header to a frame, or to each segment of a superframe, which it returns BadHeader for if it
// cannot be cut. Without a hop the frame goes to several.
func (w *writer) wrap(p *wrapped, f *frame.Frame, vni frame.VNI, bum bool, to *hop) frame.Reason {
	switch w.v.cfg.Type {
	case encap.TypeVXLAN:
		if w.v.cfg.GBP {
			encap.PutVXLANGBP(p.header[:], vni, f.GBP)
		} else {
			encap.PutVXLAN(p.header[:], vni)
		}
	case encap.TypeGPE:
		encap.PutGPE(p.header[:], vni, f.Kind, bum)
		p.whole[0], p.extra = p.header[:], 0
		if w.services != nil {
			if r := w.addNSH(p, f, vni, to); r != frame.NotDropped {
				return r
			}
		}
	case encap.TypeOwn:
		own := w.v.cfg.Own
		from, most := len(w.headers), own.Header()
		w.headers = slices.Grow(w.headers, most)[:from+most]
		n, drop := own.Put(w.headers[from:], encap.Packet{VNI: vni, Kind: f.Kind, Copy: bum})
		switch {
		case drop != frame.NotDropped:
			return named(drop)
		case n < 0 || n > most:
			return frame.BadHeader
		}
		p.whole[0] = w.headers[from : from+n]
	}
	p.seg = 0
	if f.GSO == (frame.GSO{}) {
		p.whole[1] = f.Bytes()
		p.parts = p.whole[:]
		return frame.NotDropped
	}
	from, size := len(w.pieces), 0
	w.pieces, size = w.cutter.Cut(w.pieces, p.whole[0], f)
	p.parts = w.pieces[from:len(w.pieces):len(w.pieces)]
	if len(p.parts) > 2 {
		p.seg = uint16(size)
	}
	if len(p.parts) == 0 {
		return frame.BadHeader
	}
	return frame.NotDropped
}

// symmetricSeed is the seed of Config.SymmetricHash, the same at all VTEPs.
const symmetricSeed = 4789

// flow returns the flow hash of a frame.
func (v *VTEP) flow(f *frame.Frame) uint32 {
	switch ethernet := f.Kind == frame.Ethernet; {
	case v.cfg.SymmetricHash && ethernet:
		return encap.SymmetricHash(f.Bytes(), v.seed)
	case v.cfg.SymmetricHash:
		return encap.SymmetricHashIP(f.Bytes(), v.seed)
	case ethernet:
		return encap.FlowHash(f.Bytes(), v.seed)
	}
	return encap.FlowHashIP(f.Bytes(), v.seed)
}

// bare returns why a packet without Ethernet must not enter a tunnel: it is not IP, or its TTL is 0 (RFC 2003,
// section 3.1).
func (w *writer) bare() frame.Reason {
	switch {
	case !w.in.isIP:
		return frame.BadHeader
	case w.in.ttl == 0:
		return frame.TTL
	}
	return frame.NotDropped
}

// loops returns Martian for a packet that would loop through an IP-in-IP tunnel: its source is this end of the
// tunnel, or its source or destination is the other end (RFC 2003, section 3.2, which does not mention the
// destination).
func (w *writer) loops(f *frame.Frame, h *hop) frame.Reason {
	b := f.Bytes()
	local, remote := &w.v.families[h.family].link.Load().own, &h.to.Load()[0]
	if w.in.is4 != (h.family == family4) {
		return frame.NotDropped // addresses of the other family
	}
	var src, dst [16]byte
	if w.in.is4 {
		p := wire.IPv4(b)
		src, dst = wire.Mapped(p.Src()), wire.Mapped(p.Dst())
	} else {
		p := wire.IPv6(b)
		src, dst = p.Src(), p.Dst()
	}
	if src == local.IP || src == remote.IP || dst == remote.IP {
		return frame.Martian
	}
	return frame.NotDropped
}
