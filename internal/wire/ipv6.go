package wire

import "encoding/binary"

// IPv6Len is the length of an IPv6 header without extension headers.
const IPv6Len = 40

// maxExtensions is the number of extension headers that are parsed. By RFC 8200, section 4.1, each occurs at most once,
// destination options twice.
const maxExtensions = 8

// IPv6 is a view over an IPv6 packet (RFC 8200, section 3), header and payload: out of
// [ParseIPv6] as long as its payload length says, else of at least [IPv6Len] bytes.
type IPv6 []byte

// ParseIPv6 returns the packet at the start of b without padding. ok is false if the version is wrong or the payload is
// longer than b. A jumbogram (RFC 2675) has no payload.
func ParseIPv6(b []byte) (p IPv6, ok bool) {
	if len(b) < IPv6Len || b[0]>>4 != 6 {
		return nil, false
	}
	total := IPv6Len + int(binary.BigEndian.Uint16(b[4:]))
	if total > len(b) {
		return nil, false
	}
	return b[:total:total], true
}

// PayloadLen returns the payload length.
func (p IPv6) PayloadLen() int { return int(binary.BigEndian.Uint16(p[4:])) }

// SetPayloadLen sets the payload length.
func (p IPv6) SetPayloadLen(n int) { binary.BigEndian.PutUint16(p[4:], uint16(n)) }

// NextHeader returns the number of the next protocol or extension header.
func (p IPv6) NextHeader() uint8 { return p[6] }

// Src returns the source address.
func (p IPv6) Src() [16]byte { return [16]byte(p[8:]) }

// Dst returns the destination address.
func (p IPv6) Dst() [16]byte { return [16]byte(p[24:]) }

// An IPv6Upper is the packet after the extension headers.
type IPv6Upper struct {
	Protocol uint8
	At       int  // where in the packet its header begins, at most the packet's length
	Fragment int  // where the fragment header is, 0 when there is none
	Later    bool // in a fragment other than the first: At is somewhere in the payload
}

// Upper parses the extension headers. ok is false if one is truncated or there are more than eight.
func (p IPv6) Upper() (u IPv6Upper, ok bool) {
	u = IPv6Upper{Protocol: p[6], At: IPv6Len}
	for range maxExtensions + 1 {
		size := 0
		switch u.Protocol {
		default:
			return u, true
		case ProtoHopByHop, ProtoRouting, ProtoDstOpts, protoMobility, protoHIP, protoShim6:
			if len(p) >= u.At+8 {
				size = (int(p[u.At+1]) + 1) * 8
			}
		case ProtoAuth:
			if len(p) >= u.At+8 {
				size = (int(p[u.At+1]) + 2) * 4
			}
		case ProtoFragment:
			size = 8
		}
		if size < 8 || len(p) < u.At+size {
			return u, false
		}
		if u.Protocol == ProtoFragment {
			u.Fragment = u.At
			u.Later = binary.BigEndian.Uint16(p[u.At+2:])>>3 != 0
		}
		u.Protocol, u.At = p[u.At], u.At+size
		if u.Later {
			return u, true
		}
	}
	return u, false
}

// IPv6Header has the fields of a new header.
type IPv6Header struct {
	TrafficClass, NextHeader, HopLimit uint8
	PayloadLen                         uint16
	Src, Dst                           [16]byte
}

// Put writes the 40 bytes of the header to b; the flow label is 0.
func (h *IPv6Header) Put(b []byte) {
	p := (*[IPv6Len]byte)(b)
	binary.BigEndian.PutUint32(p[:], 6<<28|uint32(h.TrafficClass)<<20)
	binary.BigEndian.PutUint16(p[4:], h.PayloadLen)
	p[6], p[7] = h.NextHeader, h.HopLimit
	*(*[16]byte)(p[8:]) = h.Src
	*(*[16]byte)(p[24:]) = h.Dst
}
