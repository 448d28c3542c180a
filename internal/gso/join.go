package gso

import (
	"bytes"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/wire"
)

// A Joiner joins consecutive segments into superframes. It has scratch memory for their headers. The zero value joins TCP
// only. Use it from one goroutine.
type Joiner struct {
	UDP bool // also join UDP datagrams of one size: the device takes USO

	headers [headersMax]byte
	parts   [][]byte
}

const (
	// Segments of a superframe. A TAP refuses a UDP superframe of more with EINVAL
	// (UDP_MAX_SEGMENTS, Linux 6.18); it would take more of TCP.
	joinMax = 128

	packetMax = 0xffff // longest IP packet, header included
)

// Join joins the first n frames of out into one superframe. It returns the metadata for the device and the pieces: the
// headers in scratch memory and the payloads, borrowed from the frames. They are valid until the next Join. Offsets of g
// are from the start of the packet.
//
// Join joins frames only if Cut would restore them and their checksums are right, so that it never hides a wrong one. They
// have the same Tag and Peer; the same MACs, VLAN tags, addresses, ports and other header fields; consecutive TCP
// sequence numbers and, unless DF is set, IPv4 identifications; and equal sizes, except that the last may be shorter and
// have PSH or FIN. Join does not join packets with IPv4 options or IPv6 extension headers, or UDP without a checksum.
//
// If nothing can be joined to out[0], n is 1 and there is one piece, the bytes of the frame with its own GSO. If out is
// empty, n is 0.
func (j *Joiner) Join(out []frame.Out) (n int, g frame.GSO, parts [][]byte) {
	if len(out) == 0 {
		return 0, frame.GSO{}, nil
	}
	first := &out[0]
	p := first.F.Bytes()
	h, ok := j.joinable(first)
	if !ok {
		return j.alone(first)
	}
	size := len(p) - h.data
	total := len(p) - h.l3
	last := p
	j.parts = append(j.parts[:0], nil, p[h.data:])
	for n = 1; n < len(out) && n < joinMax && len(last) == len(p) && !h.ends(last); n++ {
		o := &out[n]
		q := o.F.Bytes()
		if len(q) > len(p) || total+len(q)-h.data > packetMax ||
			o.Tag != first.Tag || o.Peer != first.Peer || o.Skip != first.Skip || o.F.Kind != first.F.Kind || o.F.Priority != first.F.Priority ||
			!plain(o) || !h.follows(p, q, n, size) {
			break
		}
		if n == 1 && !h.verify(p) || !h.verify(q) {
			break
		}
		j.parts = append(j.parts, q[h.data:])
		total += len(q) - h.data
		last = q
	}
	if n == 1 {
		return j.alone(first)
	}

	q := j.headers[:copy(j.headers[:], p[:h.data])]
	payload := total - (h.data - h.l3)
	h.setLen(q, payload)
	if h.is4 {
		ip := wire.IPv4(q[h.l3:h.l4])
		ip.SetChecksum(0)
		ip.SetChecksum(wire.Checksum(wire.Sum(ip, 0)))
	}
	if h.proto == wire.ProtoTCP {
		wire.TCP(q[h.l4:]).SetFlags(wire.TCP(last[h.l4:]).Flags())
	}
	h.setChecksum(q, wire.Fold(h.pseudo(q, h.data-h.l4+payload)))
	j.parts[0] = q
	return n, frame.GSO{
		Flags: frame.NeedsCsum, Type: h.gsoType(), Size: uint16(size),
		CsumStart: uint16(h.l4), CsumOffset: uint16(h.csumOffset()), DataStart: uint16(h.data),
	}, j.parts
}

// alone returns the result of Join for one frame.
func (j *Joiner) alone(o *frame.Out) (n int, g frame.GSO, parts [][]byte) {
	j.parts = append(j.parts[:0], o.F.Bytes())
	return 1, o.F.GSO.Moved(-o.F.Headroom()), j.parts
}

// plain reports whether the frame is sent without metadata.
func plain(o *frame.Out) bool { return o.Drop == frame.NotDropped && o.F.GSO == (frame.GSO{}) }

// joinable reports whether the frame could be the first segment of a superframe.
func (j *Joiner) joinable(o *frame.Out) (h headers, ok bool) {
	if !plain(o) {
		return h, false
	}
	p := o.F.Bytes()
	if h, ok = locate(p, o.F.Kind); !ok || h.data == len(p) {
		return h, false
	}
	if h.is4 && h.l4-h.l3 != wire.IPv4Len || !h.is4 && h.l4-h.l3 != wire.IPv6Len {
		return h, false
	}
	if h.proto == wire.ProtoUDP {
		return h, j.UDP && wire.UDP(p[h.l4:]).Checksum() != 0
	}
	return h, wire.TCP(p[h.l4:]).Flags()&^(wire.ECE|wire.PSH|wire.FIN) == wire.ACK
}

// ends reports whether nothing can follow p.
func (h *headers) ends(p []byte) bool {
	return h.proto == wire.ProtoTCP && wire.TCP(p[h.l4:]).Flags()&(wire.PSH|wire.FIN) != 0
}

// follows reports whether q is segment n of a superframe with the first segment p and size bytes of payload in each
// segment between. Equal headers have the same offsets.
func (h *headers) follows(p, q []byte, n, size int) bool {
	if len(q) <= h.data || !bytes.Equal(p[:h.l3], q[:h.l3]) {
		return false
	}
	same := false
	if a, b := p[h.l3:h.l4], q[h.l3:h.l4]; h.is4 {
		same = followsIPv4(a, b, n) && wire.IPv4(b).TotalLen() == len(q)-h.l3
	} else {
		same = followsIPv6(a, b) && wire.IPv6(b).PayloadLen() == len(q)-h.l4
	}
	if !same {
		return false
	}
	a, b := p[h.l4:h.data], q[h.l4:h.data]
	if h.proto == wire.ProtoTCP {
		return followsTCP(a, b, n*size)
	}
	return [4]byte(a) == [4]byte(b) && wire.UDP(b).Len() == len(q)-h.l4 && wire.UDP(b).Checksum() != 0
}

// followsIPv4 compares everything but the length and the checksum.
func followsIPv4(a, b wire.IPv4, n int) bool {
	return [2]byte(a) == [2]byte(b) && // version, header length, TOS
		[4]byte(a[6:]) == [4]byte(b[6:]) && // DF, TTL, protocol
		[8]byte(a[12:]) == [8]byte(b[12:]) &&
		(a.DF() || b.ID()-a.ID() == uint16(n)) // DF: it means nothing (RFC 6864, section 4.1)
}

// followsIPv6 compares everything but the length.
func followsIPv6(a, b wire.IPv6) bool {
	return [4]byte(a) == [4]byte(b) && [34]byte(a[6:]) == [34]byte(b[6:])
}

// followsTCP compares everything but PSH, FIN and the checksum; b is at bytes after a.
func followsTCP(a, b wire.TCP, at int) bool {
	return [4]byte(a) == [4]byte(b) && // ports
		b.Seq()-a.Seq() == uint32(at) &&
		[5]byte(a[8:]) == [5]byte(b[8:]) && // acknowledgement, header length
		(a.Flags()^b.Flags())&^(wire.PSH|wire.FIN) == 0 &&
		[2]byte(a[14:]) == [2]byte(b[14:]) && // window
		bytes.Equal(a[18:], b[18:]) // urgent pointer, options
}

// verify reports whether the checksums of p are right.
func (h *headers) verify(p []byte) bool {
	if h.is4 && wire.Fold(wire.Sum(p[h.l3:h.l4], 0)) != 0xffff {
		return false
	}
	return wire.Fold(wire.Sum(p[h.l4:], h.pseudo(p, len(p)-h.l4))) == 0xffff
}
