package capture

import (
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/absent"
	"github.com/vxswitch/vxswitch/vtep"
)

// Underlay returns an underlay to give to the VTEP in place of u, whose packets it captures. Closing it
// closes u. Underlay returns nil if u is nil.
func (c *Capture) Underlay(u vtep.Underlay) vtep.Underlay { return c.Tunnel("", u) }

// Tunnel is Underlay for a VTEP with a name, for Selection.Tunnel. A VTEP may have several underlays.
func (c *Capture) Tunnel(name string, u vtep.Underlay) vtep.Underlay {
	if absent.Is(u) {
		return nil
	}
	a := u.LocalAddr()
	return &captured{
		u, c, name, iface{a.String(), rawIP | outerHeaders}, frame.Endpoint{IP: a.Addr().As16(), Port: a.Port()}, a.Port() == 0,
	}
}

type captured struct {
	vtep.Underlay
	c    *Capture
	name string // of the tunnel
	iface
	local frame.Endpoint
	raw   bool // the underlay carries IP in IP: it has no port
}

func (u *captured) Readers() []frame.Reader {
	var rs []frame.Reader
	for _, r := range u.Underlay.Readers() {
		rs = append(rs, &underlayReader{u: u, in: r})
	}
	return rs
}

// Inside returns the underlay that this one is around, nil if packets may pass here only.
func (u *captured) Inside() any { return u.c.look(u.Underlay) }

func (u *captured) Sender(w int) frame.Sender {
	return &underlaySender{u: u, to: u.Underlay.Sender(w)}
}

type underlayReader struct {
	u     *captured
	in    frame.Reader
	outer outerHeader
	parts [2][]byte
	join  []byte
}

func (r *underlayReader) Read(b *frame.Batch) error {
	err := r.in.Read(b)
	if files := r.u.c.on.Load(); files != nil && err == nil {
		for _, file := range *files {
			if file.ofTunnel(r.u.name) {
				r.capture(file, b)
			}
		}
	}
	return err
}

func (r *underlayReader) capture(file *File, b *frame.Batch) {
	at, here := now(), r.u
	for i := range b.Frames {
		o, packet := &b.Outer[i], b.Frames[i].Bytes()
		if len(packet) > maxPayload {
			continue
		}
		h := addresses{src: o.Src, dst: o.Dst, tos: o.TOS, ttl: o.TTL, raw: here.raw}
		if h.dst.IP == [16]byte{} {
			h.dst.IP = here.local.IP
		}
		if h.dst.Port == 0 {
			h.dst.Port = here.local.Port
		}
		r.parts[1] = packet
		r.parts[0] = r.outer.fill(&h, r.parts[1:], len(packet))
		file.put(here.iface, kindOf(&h), at, len(r.parts[0])+len(packet), r.parts[:], &r.join)
	}
	r.parts = [2][]byte{} // borrowed
}

type underlaySender struct {
	u     *captured
	to    frame.Sender
	outer outerHeader
	parts [][]byte
	join  []byte
}

func (s *underlaySender) Send(ds []frame.Datagram) error {
	if files := s.u.c.on.Load(); files != nil {
		for _, file := range *files {
			if file.ofTunnel(s.u.name) {
				s.capture(file, ds)
			}
		}
	}
	return s.to.Send(ds)
}

const (
	firstSource = 49152 // of the dynamic ports (RFC 7348, section 5)
	sourcePorts = 16384
	defaultTTL  = 64
)

func (s *underlaySender) capture(file *File, ds []frame.Datagram) {
	at, here := now(), s.u
	for i := range ds {
		d := &ds[i]
		length := 0
		for _, p := range d.Parts {
			length += len(p)
		}
		seg := int(d.Seg)
		if seg == 0 || seg > length {
			seg = length
		}
		if seg > maxPayload {
			continue
		}
		h := addresses{src: here.local.WithPort(firstSource + d.Flow%sourcePorts), tos: d.TOS, df: d.DF, raw: here.raw}
		for k := range d.To {
			h.dst = d.To[k]
			switch {
			case d.TTL != 0:
				h.ttl = d.TTL
			case h.dst.IsMulticast():
				h.ttl = 1
			default:
				h.ttl = defaultTTL
			}
			for off := 0; off < length || off == 0; off += seg {
				n := min(seg, length-off)
				s.parts = window(append(s.parts[:0], nil), d.Parts, off, n)
				s.parts[0] = s.outer.fill(&h, s.parts[1:], n)
				file.put(here.iface, kindOf(&h), at, len(s.parts[0])+n, s.parts, &s.join)
				if n == 0 {
					break
				}
			}
		}
	}
	clear(s.parts) // borrowed
}

// kindOf returns the kind of a packet with these addresses.
func kindOf(a *addresses) frame.Kind {
	if a.dst.Is4() {
		return frame.IPv4
	}
	return frame.IPv6
}

// window appends the pieces of the n bytes from off on in parts.
func window(pieces, parts [][]byte, off, n int) [][]byte {
	for _, p := range parts {
		if off >= len(p) {
			off -= len(p)
			continue
		}
		p = p[off:min(off+n, len(p))]
		off, n = 0, n-len(p)
		if len(p) > 0 {
			pieces = append(pieces, p)
		}
	}
	return pieces
}
