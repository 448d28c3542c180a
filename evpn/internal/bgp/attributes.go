package bgp

import (
	"encoding/binary"

	"github.com/vxswitch/vxswitch/evpn/internal/route"
)

// Attribute types (IANA's "BGP Path Attributes").
const (
	attrOrigin      = 1
	attrASPath      = 2
	attrNextHop     = 3
	attrMED         = 4
	attrLocalPref   = 5
	attrAtomic      = 6
	attrOriginator  = 9
	attrClusters    = 10
	attrReach       = 14
	attrUnreach     = 15
	attrCommunities = 16
	attrAS4Path     = 17
	attrPMSI        = 22
)

// Attribute flags (RFC 4271, section 4.3).
const (
	flagOptional   = 0x80
	flagTransitive = 0x40
	flagPartial    = 0x20
	flagLong       = 0x10
)

const (
	tunnelIngress  = 6  // ingress replication (RFC 6514, section 5)
	tunnelAssisted = 10 // assisted replication (RFC 9574, section 4)
)

// maxCommunities is how many extended communities a route may have; with more it is left out. It bounds what a peer's routes
// cost.
const maxCommunities = 128

// attributes is what an UPDATE says of all its routes.
type attributes struct {
	reach, unreach []byte // values of MP_REACH_NLRI and MP_UNREACH_NLRI
	communities    []byte
	pmsi           []byte
	seen           [4]uint64 // types
	withdraw       string    // why all routes are to be taken as withdrawn, or ""
	loop           string    // likewise, but nothing is wrong with them
}

func (a *attributes) has(typ uint8) bool { return a.seen[typ/64]&(1<<(typ%64)) != 0 }

// bad notes the first reason to take all routes as withdrawn.
func (a *attributes) bad(reason string) {
	if a.withdraw == "" {
		a.withdraw = reason
	}
}

// parse walks the attributes. An error ends the session.
func (a *attributes) parse(b []byte, s *agreement) *Notification {
	*a = attributes{}
	for len(b) > 0 {
		if len(b) < 3 {
			a.bad("attribute-length")
			break
		}
		flags, typ, n, head := b[0], b[1], int(b[2]), 3
		if flags&flagLong != 0 {
			if len(b) < 4 {
				a.bad("attribute-length")
				break
			}
			n, head = int(binary.BigEndian.Uint16(b[2:])), 4
		}
		if n > len(b)-head {
			a.bad("attribute-length")
			break
		}
		v := b[head : head+n]
		b = b[head+n:]
		if a.has(typ) {
			if typ == attrReach || typ == attrUnreach {
				return notify(errUpdate, 1) // RFC 7606, section 3(g)
			}
			continue // the first counts
		}
		a.seen[typ/64] |= 1 << (typ % 64)
		a.attribute(flags, typ, v, s)
	}
	if a.withdraw == "attribute-length" && !a.has(attrReach) && !a.has(attrUnreach) {
		return notify(errUpdate, 1) // whose routes these are is not to be found out (RFC 7606, section 3(j))
	}
	return nil
}

// expected is the optional and transitive flag of the attributes we read.
func expected(typ uint8) (flags uint8, known bool) {
	switch typ {
	case attrOrigin, attrASPath, attrNextHop, attrLocalPref, attrAtomic:
		return flagTransitive, true
	case attrMED, attrOriginator, attrClusters, attrReach, attrUnreach:
		return flagOptional, true
	case attrCommunities, attrPMSI, attrAS4Path:
		return flagOptional | flagTransitive, true
	}
	return 0, false
}

func (a *attributes) attribute(flags, typ uint8, v []byte, s *agreement) {
	want, known := expected(typ)
	if known && flags&(flagOptional|flagTransitive) != want || !known && flags&flagOptional == 0 {
		a.bad("attribute-flags")
		if typ != attrReach && typ != attrUnreach {
			return
		}
	}
	switch typ {
	case attrOrigin:
		if len(v) != 1 || v[0] > 2 {
			a.bad("origin")
		}
	case attrASPath:
		a.path(v, s)
	case attrMED:
		if len(v) != 4 {
			a.bad("med")
		}
	case attrLocalPref:
		if !s.external() && len(v) != 4 {
			a.bad("local-pref")
		}
	case attrOriginator: // from outside the AS it says nothing (RFC 7606, section 7.9)
		switch {
		case s.external():
		case len(v) != 4:
			a.bad("originator")
		case [4]byte(v) == s.id:
			a.loop = "originator-loop"
		}
	case attrClusters:
		switch {
		case s.external():
		case len(v) == 0 || len(v)%4 != 0:
			a.bad("cluster-list")
		default:
			for ; len(v) > 0; v = v[4:] {
				if [4]byte(v) == s.id {
					a.loop = "cluster-loop"
				}
			}
		}
	case attrReach:
		a.reach = v
	case attrUnreach:
		a.unreach = v
	case attrCommunities:
		switch {
		case len(v) == 0 || len(v)%8 != 0:
			a.bad("communities-length")
		case len(v)/8 > maxCommunities:
			a.bad("communities-many")
		}
		a.communities = v
	case attrPMSI:
		if len(v) < 5 || (v[1] == tunnelIngress || v[1] == tunnelAssisted) && len(v) != 9 && len(v) != 21 {
			a.bad("pmsi")
		}
		a.pmsi = v
	}
}

// path looks for errors, and for our own AS more often than it may be there (RFC 4271, section 9.1.2).
func (a *attributes) path(v []byte, s *agreement) {
	size := 2
	if s.as4 {
		size = 4
	}
	first, own := true, 0
	for len(v) > 0 {
		if len(v) < 2 || v[0] < 1 || v[0] > 4 || v[1] == 0 || len(v)-2 < int(v[1])*size {
			a.bad("as-path")
			return
		}
		n := int(v[1])
		if first && s.external() && v[0] > 2 {
			a.bad("as-path") // begins with a confederation (RFC 5065, section 5)
			return
		}
		first = false
		for v = v[2:]; n > 0; n-- {
			as := uint32(binary.BigEndian.Uint16(v))
			if s.as4 {
				as = binary.BigEndian.Uint32(v)
			}
			if as == 0 { // RFC 7607
				a.bad("as-path")
				return
			}
			if as == s.as {
				if own++; own > s.ownAS {
					a.loop = "as-loop"
				}
			}
			v = v[size:]
		}
	}
	if first && s.external() {
		a.bad("as-path") // the peer's own has to be there
	}
}

// tunnel copies the PMSI tunnel attribute into a Multicast (RFC 6514, section 5).
func (a *attributes) tunnel(r *route.Route) {
	r.TunnelFlags, r.TunnelType, r.Tunnel = 0, 0, route.Addr{}
	if r.Kind != route.Multicast || a.pmsi == nil {
		return
	}
	p := a.pmsi
	r.TunnelFlags, r.TunnelType, r.NumLabels = p[0], p[1], 1
	r.Labels[0] = uint32(p[2])<<16 | uint32(p[3])<<8 | uint32(p[4])
	if p[1] == tunnelIngress || p[1] == tunnelAssisted {
		r.Tunnel = route.AddrOf(p[5:])
	}
}
