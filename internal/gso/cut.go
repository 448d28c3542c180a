package gso

import (
	"encoding/binary"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/wire"
)

// A Cutter cuts superframes into segments. It has scratch memory for their headers. The zero value works. Use it from
// one goroutine.
type Cutter struct {
	buf []byte
}

// Scratch begins with what a superframe of full-sized segments takes, and more than a
// batch of such ever needs is not kept: only a superframe cut into crumbs wants it.
const (
	scratchMin  = 8 << 10
	scratchKeep = 1 << 20
)

// Reset frees the scratch memory. Headers of earlier cuts become invalid.
func (c *Cutter) Reset() {
	if cap(c.buf) > scratchKeep {
		c.buf = nil
	}
	c.buf = c.buf[:0]
}

// room returns n bytes of scratch memory. Memory returned earlier stays valid.
func (c *Cutter) room(n int) []byte {
	if n > cap(c.buf)-len(c.buf) {
		c.buf = make([]byte, 0, max(2*cap(c.buf), n, scratchMin))
	}
	k := len(c.buf)
	c.buf = c.buf[:k+n]
	return c.buf[k : k+n : k+n]
}

// head returns the prefix and headers in scratch memory, and the headers alone.
func (c *Cutter) head(prefix, hdr []byte) (all, own []byte) {
	all = c.room(len(prefix) + len(hdr))
	own = all[copy(all, prefix):]
	copy(own, hdr)
	return all, own
}

// Cut appends two pieces for each segment of f to parts: the prefix and the headers, in scratch memory that is valid until
// Reset, and the payload, borrowed from f. Every segment but the last is size bytes long, prefix included.
//
// The headers are as in Linux: lengths of the segment, increasing IPv4 identifications, TCP sequence numbers, FIN and PSH
// in the last segment only, CWR in the first only, complete checksums.
//
// A frame without a Type is one segment of size bytes. With NeedsCsum its headers end after the checksum, otherwise they
// are empty. A frame that [Check] refuses has no segments. Cut does not write to f.
func (c *Cutter) Cut(parts [][]byte, prefix []byte, f *frame.Frame) (all [][]byte, size int) {
	if f.GSO.Type == frame.GSONone {
		return c.one(parts, prefix, f)
	}
	p := f.Bytes()
	h, ok := super(f)
	if !ok {
		return parts, 0
	}
	s := sumsOf(p, &h)
	var id uint16
	var seq uint32
	var flags uint8
	if h.is4 {
		id = wire.IPv4(p[h.l3:]).ID()
	}
	if h.proto == wire.ProtoTCP {
		seq, flags = wire.TCP(p[h.l4:]).Seq(), wire.TCP(p[h.l4:]).Flags()
	}
	hdr, rest := p[:h.data], p[h.data:]
	for n := min(int(f.GSO.Size), len(rest)); ; {
		payload := rest[:n:n]
		rest = rest[n:]
		head, q := c.head(prefix, hdr)
		h.setLen(q, n)
		if h.is4 {
			ip := wire.IPv4(q[h.l3:])
			ip.SetID(id)
			ip.SetChecksum(wire.Checksum(s.ip + uint64(ip.TotalLen()) + uint64(id)))
			id++
		}
		sum := wire.Sum(payload, s.transport+uint64(h.data-h.l4+n))
		if h.proto == wire.ProtoTCP {
			tcp := wire.TCP(q[h.l4:])
			fl := flags
			if len(rest) > 0 {
				fl &^= wire.FIN | wire.PSH
			}
			tcp.SetSeq(seq)
			tcp.SetFlags(fl)
			tcp.SetChecksum(wire.Checksum(sum + uint64(seq>>16) + uint64(seq&0xffff) + uint64(fl)))
			seq += uint32(n)
			flags &^= wire.CWR
		} else {
			udp := wire.UDP(q[h.l4:])
			udp.SetChecksum(nonzero(wire.Checksum(sum + uint64(udp.Len()))))
		}
		parts = append(parts, head, payload)
		if len(rest) == 0 {
			return parts, len(prefix) + h.data + min(int(f.GSO.Size), len(p)-h.data)
		}
		n = min(n, len(rest))
	}
}

// one is Cut for a frame without a Type.
func (c *Cutter) one(parts [][]byte, prefix []byte, f *frame.Frame) (all [][]byte, size int) {
	p := f.Bytes()
	if f.GSO.Flags&frame.NeedsCsum == 0 {
		head, _ := c.head(prefix, nil)
		return append(parts, head, p), len(prefix) + len(p)
	}
	at, ok := unfinished(f)
	if !ok {
		return parts, 0
	}
	n := at + int(f.GSO.CsumOffset) + 2
	head, own := c.head(prefix, p[:n])
	sum := wire.Checksum(wire.Sum(p[at:], 0))
	if f.GSO.CsumOffset == wire.UDPChecksum {
		sum = nonzero(sum)
	}
	binary.BigEndian.PutUint16(own[n-2:], sum)
	return append(parts, head, p[n:]), len(prefix) + len(p)
}

// sums has the parts of the checksums that are the same in every segment.
type sums struct {
	ip        uint64 // without length, identification and checksum; 0 for IPv6
	transport uint64 // with the pseudo header, without lengths, sequence number, flags and checksum
}

func sumsOf(p []byte, h *headers) (s sums) {
	if h.is4 {
		ip := wire.IPv4(p[h.l3:h.l4])
		s.ip = wire.Sum(ip[6:10], wire.Sum(ip[:2], wire.Sum(ip[12:], 0)))
	}
	s.transport = h.pseudo(p, 0)
	if t := p[h.l4:h.data]; h.proto == wire.ProtoTCP {
		s.transport = wire.Sum(t[8:12], wire.Sum(t[:4], s.transport))
		s.transport = wire.Sum(t[14:16], wire.Sum(t[18:], s.transport+uint64(t[12])<<8))
	} else {
		s.transport = wire.Sum(t[:4], s.transport)
	}
	return s
}

// nonzero replaces a checksum of 0, which means none in UDP (RFC 768), by the equivalent 0xffff.
func nonzero(c uint16) uint16 {
	if c == 0 {
		return 0xffff
	}
	return c
}
