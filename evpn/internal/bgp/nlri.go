package bgp

import (
	"encoding/binary"

	"github.com/vxswitch/vxswitch/evpn/internal/route"
)

// routeTypes names those that are skipped (RFC 9251, RFC 9572 and drafts before it).
var routeTypes = map[uint8]string{6: "type-6", 7: "type-7", 8: "type-8", 9: "type-9", 10: "type-10", 11: "type-11"}

// skippedType is the name under which a route of a type we do not use is counted.
func skippedType(t uint8) string {
	if s := routeTypes[t]; s != "" {
		return s
	}
	return "type-other"
}

// parseNLRI reads what follows type and length into r: its key, ESI, labels and gateway. It returns "" or why not. With whole
// set, the labels have to be there; a withdrawal may lack them. known says that the key is right all the same.
func parseNLRI(kind uint8, b []byte, r *route.Route, whole bool) (reason string, known bool) {
	r.Key, r.ESI, r.Labels, r.NumLabels, r.Gateway = route.Key{Kind: route.Kind(kind)}, route.ESI{}, [2]uint32{}, 0, route.Addr{}
	if kind < 1 || kind > 5 {
		return skippedType(kind), false
	}
	if len(b) < 8 {
		return "length", false
	}
	copy(r.RD[:], b)
	b = b[8:]
	switch r.Kind {
	case route.AutoDiscovery:
		if len(b) != 17 && (whole || len(b) != 14) {
			return "length", false
		}
		copy(r.Segment[:], b)
		r.Tag = binary.BigEndian.Uint32(b[10:])
		return labels(r, b[14:], whole), true
	case route.MACIP:
		return macIP(r, b, whole)
	case route.Multicast:
		if len(b) < 5 {
			return "length", false
		}
		r.Tag = binary.BigEndian.Uint32(b)
		return ipOf(r, b[4], b[5:])
	case route.Segment:
		if len(b) < 11 {
			return "length", false
		}
		copy(r.Segment[:], b)
		return ipOf(r, b[10], b[11:])
	}
	return prefix(r, b, whole)
}

// ipOf reads an address whose length in bits precedes it, and which ends the route.
func ipOf(r *route.Route, bits uint8, b []byte) (string, bool) {
	if bits != 32 && bits != 128 {
		return "ip-length", false
	}
	if len(b) != int(bits/8) {
		return "length", false
	}
	r.IP = route.AddrOf(b)
	return "", true
}

func macIP(r *route.Route, b []byte, whole bool) (string, bool) {
	if len(b) < 22 {
		return "length", false
	}
	copy(r.ESI[:], b)
	r.Tag = binary.BigEndian.Uint32(b[10:])
	if b[14] != 48 {
		return "mac-length", false
	}
	copy(r.MAC[:], b[15:])
	bits := b[21]
	b = b[22:]
	if bits != 0 && bits != 32 && bits != 128 {
		return "ip-length", false
	}
	if len(b) < int(bits/8) {
		return "length", false
	}
	r.IP = route.AddrOf(b[:bits/8])
	return labels(r, b[bits/8:], whole), true
}

// prefix reads a route of type 5 (RFC 9136, section 3.1).
func prefix(r *route.Route, b []byte, whole bool) (string, bool) {
	var n int
	switch {
	case len(b) == 26 || !whole && len(b) == 23:
		n = 4
	case len(b) == 50 || !whole && len(b) == 47:
		n = 16
	default:
		return "length", false
	}
	copy(r.ESI[:], b)
	r.Tag, r.Bits = binary.BigEndian.Uint32(b[10:]), b[14]
	if int(r.Bits) > 8*n {
		return "prefix-length", false
	}
	r.IP = route.AddrOf(b[15 : 15+n])
	if gw := b[15+n : 15+2*n]; !zero(gw) {
		r.Gateway = route.AddrOf(gw)
	}
	return labels(r, b[15+2*n:], whole), true
}

func zero(b []byte) bool {
	for _, v := range b {
		if v != 0 {
			return false
		}
	}
	return true
}

// labels reads one label, or of a MACIP one or two.
func labels(r *route.Route, b []byte, whole bool) string {
	n := len(b) / 3
	if len(b)%3 != 0 || n > 2 || n == 0 && whole || n == 2 && r.Kind != route.MACIP {
		return "labels"
	}
	r.NumLabels = uint8(n)
	for i := range n {
		r.Labels[i] = uint32(b[3*i])<<16 | uint32(b[3*i+1])<<8 | uint32(b[3*i+2])
	}
	return ""
}

// appendNLRI appends a route with its type and length.
func appendNLRI(b []byte, r *route.Route) []byte {
	at := len(b)
	b = append(b, byte(r.Kind), 0)
	b = append(b, r.RD[:]...)
	switch r.Kind {
	case route.AutoDiscovery, route.Segment:
		b = append(b, r.Segment[:]...)
	case route.MACIP, route.Prefix:
		b = append(b, r.ESI[:]...)
	}
	if r.Kind != route.Segment {
		b = binary.BigEndian.AppendUint32(b, r.Tag)
	}
	ip := r.IP.Bytes()
	switch r.Kind {
	case route.MACIP:
		b = append(append(b, 48), r.MAC[:]...)
		b = append(append(b, byte(8*len(ip))), ip...)
	case route.Multicast, route.Segment:
		b = append(append(b, byte(8*len(ip))), ip...)
	case route.Prefix:
		b = append(append(b, r.Bits), ip...)
		if gw := r.Gateway.Bytes(); len(gw) == len(ip) {
			b = append(b, gw...)
		} else {
			b = append(b, make([]byte, len(ip))...)
		}
	}
	if r.Kind == route.MACIP || r.Kind == route.Prefix || r.Kind == route.AutoDiscovery {
		for _, l := range r.Labels[:max(r.NumLabels, 1)] {
			b = append(b, byte(l>>16), byte(l>>8), byte(l))
		}
	}
	b[at+1] = byte(len(b) - at - 2)
	return b
}
