package gso

import (
	"encoding/binary"

	"github.com/vxswitch/vxswitch/frame"
)

// What this package does, once more: byte by byte, with copies, and from the packet's
// beginning each time.

// refSum adds up 16-bit words, the last filled up with zero (RFC 1071), and inverts.
func refSum(b []byte) uint16 {
	sum := 0
	for i, c := range b {
		if i%2 == 0 {
			sum += int(c) << 8
		} else {
			sum += int(c)
		}
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return ^uint16(sum)
}

// refPseudo is the checksum over the pseudo header of p, whose transport packet is
// p[l4:], and more.
func refPseudo(p []byte, l3, l4 int, is4 bool, more []byte) uint16 {
	var b []byte
	n := len(p) - l4
	if is4 {
		b = append(b, p[l3+12:l3+20]...)
		b = append(b, 0, p[l3+9], byte(n>>8), byte(n))
	} else {
		b = append(b, p[l3+8:l3+40]...)
		proto := p[l3+6]
		if l4 > l3+40 {
			proto = p[l3+40] // one extension header
		}
		b = append(b, 0, 0, byte(n>>8), byte(n), 0, 0, 0, proto)
	}
	return refSum(append(b, more...))
}

// refChecksums writes the checksums of p.
func refChecksums(p []byte, l3, l4 int, is4 bool, proto byte) {
	if is4 {
		p[l3+10], p[l3+11] = 0, 0
		binary.BigEndian.PutUint16(p[l3+10:], refSum(p[l3:l4]))
	}
	at := l4 + 16
	if proto == 17 {
		at = l4 + 6
	}
	p[at], p[at+1] = 0, 0
	sum := refPseudo(p, l3, l4, is4, p[l4:])
	if sum == 0 && proto == 17 {
		sum = 0xffff
	}
	binary.BigEndian.PutUint16(p[at:], sum)
}

// refLayout finds the IP header, by the first byte that can be one.
func refLayout(p []byte, kind frame.Kind) (l3 int, is4 bool) {
	if kind == frame.Ethernet {
		for l3 = 12; p[l3] == 0x81 || p[l3] == 0x88; l3 += 4 {
		}
		l3 += 2
	}
	return l3, p[l3]>>4 == 4
}

// refCut cuts a superframe; offsets of g count from the start of p.
func refCut(p []byte, kind frame.Kind, g frame.GSO) (segments [][]byte) {
	l3, is4 := refLayout(p, kind)
	l4, data := int(g.CsumStart), int(g.DataStart)
	proto := byte(6)
	if g.Type == frame.GSOUDP {
		proto = 17
	}
	for at := data; at < len(p); at += int(g.Size) {
		end := at + int(g.Size)
		if end > len(p) {
			end = len(p)
		}
		s := append([]byte(nil), p[:data]...)
		s = append(s, p[at:end]...)
		if is4 {
			binary.BigEndian.PutUint16(s[l3+2:], uint16(len(s)-l3))
			id := binary.BigEndian.Uint16(p[l3+4:]) + uint16(len(segments))
			binary.BigEndian.PutUint16(s[l3+4:], id)
		} else {
			binary.BigEndian.PutUint16(s[l3+4:], uint16(len(s)-l3-40))
		}
		if proto == 17 {
			binary.BigEndian.PutUint16(s[l4+4:], uint16(len(s)-l4))
		} else {
			binary.BigEndian.PutUint32(s[l4+4:], binary.BigEndian.Uint32(p[l4+4:])+uint32(at-data))
			if end < len(p) {
				s[l4+13] &^= fin | psh
			}
			if at > data {
				s[l4+13] &^= cwr
			}
		}
		refChecksums(s, l3, l4, is4, proto)
		segments = append(segments, s)
	}
	return segments
}

// refSegment is what decides whether a frame joins its predecessor.
type refSegment struct {
	ok      bool   // can be a segment at all
	same    string // everything that has to be equal
	id      uint16
	seq     uint32
	payload int
	ip      int // length of the IP packet
	end     bool
	udp, df bool
}

func refParse(o frame.Out, udp bool) (s refSegment) {
	p := append([]byte(nil), o.F.Bytes()...)
	if o.Drop != 0 || o.F.GSO != (frame.GSO{}) {
		return s
	}
	l3 := 0
	is4 := o.F.Kind == frame.IPv4
	if o.F.Kind == frame.Ethernet {
		tags := 0
		for l3 = 12; ; l3 += 4 {
			if len(p) < l3+2 {
				return s
			}
			t := int(p[l3])<<8 | int(p[l3+1])
			if t == 0x0800 || t == 0x86dd {
				is4 = t == 0x0800
				break
			}
			if t != 0x8100 && t != 0x88a8 || tags == 2 {
				return s
			}
			tags++
		}
		l3 += 2
	}
	var l4 int
	var proto byte
	if is4 {
		if len(p) < l3+20 || p[l3] != 0x45 || int(p[l3+2])<<8+int(p[l3+3]) != len(p)-l3 || p[l3+6]&0x3f != 0 || p[l3+7] != 0 || refSum(p[l3:l3+20]) != 0 {
			return s
		}
		l4, proto = l3+20, p[l3+9]
		s.df = p[l3+6]&0x40 != 0
		s.id = binary.BigEndian.Uint16(p[l3+4:])
	} else {
		if len(p) < l3+40 || p[l3]>>4 != 6 || int(p[l3+4])<<8+int(p[l3+5]) != len(p)-l3-40 {
			return s
		}
		l4, proto = l3+40, p[l3+6]
		s.df = true
	}
	s.ip = len(p) - l3
	data := 0
	switch proto {
	case 6:
		if len(p) < l4+20 {
			return s
		}
		data = l4 + int(p[l4+12]>>4)*4
		fl := p[l4+13]
		if data < l4+20 || fl&ack == 0 || fl&(syn|rst|urg|cwr) != 0 {
			return s
		}
		s.end = fl&(psh|fin) != 0
		s.seq = binary.BigEndian.Uint32(p[l4+4:])
	case 17:
		if !udp || len(p) < l4+8 || int(p[l4+4])<<8+int(p[l4+5]) != len(p)-l4 || p[l4+6] == 0 && p[l4+7] == 0 {
			return s
		}
		data = l4 + 8
		s.udp = true
	default:
		return s
	}
	if data >= len(p) || refPseudo(p, l3, l4, is4, p[l4:]) != 0 {
		return s
	}
	s.payload = len(p) - data
	// What may differ is overwritten; what is left has to be equal.
	if is4 {
		copy(p[l3+2:], make([]byte, 4))  // length, identification
		copy(p[l3+10:], make([]byte, 2)) // checksum
	} else {
		copy(p[l3+4:], make([]byte, 2))
	}
	if s.udp {
		copy(p[l4+4:], make([]byte, 4))
	} else {
		copy(p[l4+4:], make([]byte, 4))
		copy(p[l4+16:], make([]byte, 2))
		p[l4+13] &^= psh | fin
	}
	s.same = string(p[:data]) + string([]byte{byte(o.F.Kind), byte(o.Tag >> 16), byte(o.Tag >> 8), byte(o.Tag), byte(o.Peer >> 8), byte(o.Peer), byte(o.Skip >> 8), byte(o.Skip), o.F.Priority})
	s.ok = true
	return s
}

// refJoin says how many are joined.
func refJoin(out []frame.Out, udp bool) int {
	first := refParse(out[0], udp)
	if !first.ok {
		return 1
	}
	prev, total := first, first.ip
	n := 1
	for ; n < len(out) && n < 128; n++ {
		s := refParse(out[n], udp)
		total += s.payload
		if !s.ok || prev.end || prev.payload < first.payload || s.payload > first.payload || s.same != first.same || total > 65535 {
			break
		}
		if !s.udp && s.seq != prev.seq+uint32(prev.payload) {
			break
		}
		if !s.df && s.id != prev.id+1 {
			break
		}
		prev = s
	}
	return n
}
