package bgp

import (
	"encoding/binary"

	"github.com/vxswitch/vxswitch/evpn/internal/route"
)

// shared is what the routes of one UPDATE have in common.
type shared struct {
	nextHop     route.Addr
	communities route.Communities
	pmsi        bool
	label       uint32
	tunnel      route.Addr
	tunnelType  uint8
	tunnelFlags uint8
}

func sharedOf(r *route.Route) (s shared) {
	s.nextHop, s.communities = r.NextHop, r.Communities
	if r.Kind == route.Multicast && r.NumLabels > 0 {
		s.pmsi, s.label, s.tunnel, s.tunnelType, s.tunnelFlags = true, r.Labels[0], r.Tunnel, r.TunnelType, r.TunnelFlags
	}
	return s
}

func appendAttr(b []byte, flags, typ uint8, v ...byte) []byte {
	if len(v) > 255 {
		b = append(b, flags|flagLong, typ, byte(len(v)>>8), byte(len(v)))
	} else {
		b = append(b, flags, typ, byte(len(v)))
	}
	return append(b, v...)
}

// reach returns an UPDATE that announces routes, which appendNLRI has made. They fit: see room.
func (s *agreement) reach(a *shared, nlri []byte) []byte {
	b := append(appendHeader(nil, typeUpdate), 0, 0, 0, 0)
	nh := a.nextHop.Bytes()
	b = append(b, flagOptional|flagLong, attrReach, 0, 0) // first, so that it is found whatever follows (RFC 7606, section 5.1)
	at := len(b)
	b = append(append(append(b, 0, afi, safi, byte(len(nh))), nh...), 0)
	b = append(b, nlri...)
	binary.BigEndian.PutUint16(b[at-2:], uint16(len(b)-at))
	b = appendAttr(b, flagTransitive, attrOrigin, 0)
	b = s.appendPath(b)
	if !s.external() {
		b = appendAttr(b, flagTransitive, attrLocalPref, 0, 0, 0, 100)
	}
	if len(a.communities) > 0 {
		b = appendAttr(b, flagOptional|flagTransitive, attrCommunities, []byte(a.communities)...)
	}
	if a.pmsi {
		v := []byte{a.tunnelFlags, a.tunnelType, byte(a.label >> 16), byte(a.label >> 8), byte(a.label)}
		b = appendAttr(b, flagOptional|flagTransitive, attrPMSI, append(v, a.tunnel.Bytes()...)...)
	}
	binary.BigEndian.PutUint16(b[headerLen+2:], uint16(len(b)-headerLen-4))
	return setLength(b)
}

// appendPath appends AS_PATH: nothing within the AS, our AS to another. A peer without four-octet numbers gets AS_TRANS, and the
// number in AS4_PATH (RFC 6793, section 4.2.2).
func (s *agreement) appendPath(b []byte) []byte {
	if !s.external() {
		return appendAttr(b, flagTransitive, attrASPath)
	}
	as := binary.BigEndian.AppendUint32([]byte{2, 1}, s.as)
	switch {
	case s.as4:
		return appendAttr(b, flagTransitive, attrASPath, as...)
	case s.as <= 0xffff:
		return appendAttr(b, flagTransitive, attrASPath, 2, 1, as[4], as[5])
	}
	b = appendAttr(b, flagTransitive, attrASPath, 2, 1, asTrans>>8, asTrans&0xff)
	return appendAttr(b, flagOptional|flagTransitive, attrAS4Path, as...)
}

// unreach returns an UPDATE that withdraws routes. Without any it is the end of RIB (RFC 4724, section 2).
func unreach(nlri []byte) []byte {
	b := append(appendHeader(nil, typeUpdate), 0, 0, 0, 0, flagOptional|flagLong, attrUnreach, 0, 0, 0, afi, safi)
	b = append(b, nlri...)
	binary.BigEndian.PutUint16(b[headerLen+2:], uint16(len(b)-headerLen-4))
	binary.BigEndian.PutUint16(b[headerLen+6:], uint16(len(nlri)+3))
	return setLength(b)
}

// room is how many bytes of routes fit into a message beside their attributes: without the communities, these and the header take less
// than 160 bytes.
func (s *agreement) room(a *shared) int { return s.limit() - 160 - len(a.communities) }
