package port

import (
	"net/netip"
	"sync/atomic"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/absent"
)

// Underlay is what [Capture.Underlay] wraps and returns: the methods of
// vtep.Underlay.
type Underlay interface {
	Readers() []frame.Reader
	Sender(w int) frame.Sender
	LocalAddr() netip.AddrPort
	MTU() int
	PathMTU(f func(to frame.Endpoint, mtu int, quoted []byte))
	Pause()
	Resume()
	Close() error
}

// Underlay returns u with its packets captured. Give what is returned to the VTEP in
// place of u. It has SetLocal exactly if u has; what else u has beside the methods of [Underlay],
// such as multicast groups and statistics, is had from u, which Unwrap returns. Around nothing
// there is nothing: nil.
func (c *Capture) Underlay(u Underlay) Underlay {
	if absent.Is(u) {
		return nil
	}
	x := &captureUnderlay{Underlay: u, c: c}
	x.setLocal()
	if m, ok := u.(mover); ok {
		return &captureMover{x, m}
	}
	return x
}

// A mover is an underlay that can be given another local address.
type mover interface {
	SetLocal(addr netip.Addr) error
}

type captureUnderlay struct {
	Underlay
	c  *Capture
	at atomic.Pointer[capturePlace]
}

// capturePlace is a local address of an underlay, and what its packets are captured as.
type capturePlace struct {
	source *captureSource
	local  frame.Endpoint
}

func (u *captureUnderlay) setLocal() {
	a := u.LocalAddr()
	u.at.Store(&capturePlace{&captureSource{a.String()}, frame.Endpoint{IP: a.Addr().As16(), Port: a.Port()}})
}

// Unwrap returns the underlay that is captured.
func (u *captureUnderlay) Unwrap() any { return u.Underlay }

// A captureMover captures an underlay that is a mover.
type captureMover struct {
	*captureUnderlay
	to mover
}

func (u *captureMover) SetLocal(addr netip.Addr) error {
	err := u.to.SetLocal(addr)
	if err == nil {
		u.setLocal()
	}
	return err
}

func (u *captureUnderlay) Readers() []frame.Reader {
	var rs []frame.Reader
	for _, r := range u.Underlay.Readers() {
		rs = append(rs, &underlayReader{u: u, in: r})
	}
	return rs
}

func (u *captureUnderlay) Sender(w int) frame.Sender {
	return &underlaySender{u: u, to: u.Underlay.Sender(w)}
}

// raw reports whether the underlay carries IP in IP: it has no port.
func (u *captureUnderlay) raw() bool { return u.at.Load().local.Port == 0 }

type underlayReader struct {
	u     *captureUnderlay
	in    frame.Reader
	outer outerHeader
	parts [2][]byte
}

func (r *underlayReader) Read(b *frame.Batch) error {
	err := r.in.Read(b)
	if file := r.u.c.on.Load(); file != nil && err == nil {
		r.capture(file, b)
	}
	return err
}

func (r *underlayReader) capture(file *captureFile, b *frame.Batch) {
	at, place := now(), r.u.at.Load()
	for i := range b.Frames {
		o, packet := &b.Outer[i], b.Frames[i].Bytes()
		if len(packet) > maxPayload {
			continue
		}
		h := addresses{src: o.Src, dst: o.Dst, tos: o.TOS, ttl: o.TTL, raw: r.u.raw()}
		if h.dst.IP == [16]byte{} {
			h.dst.IP = place.local.IP
		}
		if h.dst.Port == 0 {
			h.dst.Port = place.local.Port
		}
		r.parts[1] = packet
		r.parts[0] = r.outer.fill(&h, r.parts[1:], len(packet))
		file.put(place.source, rawIP|outerHeaders, at, len(r.parts[0])+len(packet), r.parts[:])
	}
	r.parts = [2][]byte{} // borrowed
}

type underlaySender struct {
	u     *captureUnderlay
	to    frame.Sender
	outer outerHeader
	parts [][]byte
}

func (s *underlaySender) Send(ds []frame.Datagram) error {
	if file := s.u.c.on.Load(); file != nil {
		s.capture(file, ds)
	}
	return s.to.Send(ds)
}

const (
	firstSource = 49152 // of the dynamic ports (RFC 7348, section 5)
	sourcePorts = 16384
	defaultTTL  = 64
)

func (s *underlaySender) capture(file *captureFile, ds []frame.Datagram) {
	at, place := now(), s.u.at.Load()
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
		h := addresses{src: place.local.WithPort(firstSource + d.Flow%sourcePorts), tos: d.TOS, df: d.DF, raw: s.u.raw()}
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
				file.put(place.source, rawIP|outerHeaders, at, len(s.parts[0])+n, s.parts)
				if n == 0 {
					break
				}
			}
		}
	}
	clear(s.parts) // borrowed
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
