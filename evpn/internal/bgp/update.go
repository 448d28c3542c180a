package bgp

import (
	"bytes"
	"encoding/binary"

	"github.com/vxswitch/vxswitch/evpn/internal/route"
)

// agreement is what the two ends of a session have agreed on, as reading and writing UPDATEs needs it.
type agreement struct {
	as, peerAS uint32
	id         [4]byte // ours
	as4        bool    // four-octet AS numbers
	extended   bool    // messages of up to 65535 bytes
	ownAS      int     // how often our AS may be in a path
}

func (s *agreement) external() bool { return s.as != s.peerAS }

func (s *agreement) limit() int {
	if s.extended {
		return maxExtended
	}
	return maxMessage
}

// A sink takes what UPDATEs say.
type sink interface {
	learned(*route.Route)
	withdrawn(*route.Key)
	ended()
	malformed(reason string) // of one route, or of what is not about routes
}

// decoder reads the UPDATEs of one session.
type decoder struct {
	agreement
	pool  pool
	attrs attributes
	route route.Route // the one at hand
}

// update reads the body of an UPDATE. An error ends the session.
func (d *decoder) update(b []byte, h sink) *Notification {
	n := int(binary.BigEndian.Uint16(b))
	if n > len(b)-4 {
		return notify(errUpdate, 1)
	}
	at := b[2+n:]
	m := int(binary.BigEndian.Uint16(at))
	if m > len(at)-2 {
		return notify(errUpdate, 1)
	}
	if n > 0 || m < len(at)-2 {
		h.malformed("family") // IPv4 unicast, which was not agreed on
	}
	a := &d.attrs
	if err := a.parse(at[2:2+m], &d.agreement); err != nil {
		return err
	}
	if a.has(attrUnreach) {
		if err := d.unreach(h); err != nil {
			return err
		}
	}
	if a.has(attrReach) {
		return d.reach(h)
	}
	return nil
}

func (d *decoder) unreach(h sink) *Notification {
	b := d.attrs.unreach
	if len(b) < 3 {
		return notify(errUpdate, 9)
	}
	if b[0] != 0 || b[1] != afi || b[2] != safi {
		h.malformed("family")
		return nil
	}
	if len(b) == 3 {
		if !d.attrs.has(attrReach) {
			h.ended() // RFC 4724, section 2
		}
		return nil
	}
	return d.each(b[3:], false, h)
}

func (d *decoder) reach(h sink) *Notification {
	a, b := &d.attrs, d.attrs.reach
	if len(b) < 5 {
		return notify(errUpdate, 9)
	}
	if b[0] != 0 || b[1] != afi || b[2] != safi {
		h.malformed("family")
		return nil
	}
	n := int(b[3])
	if n != 4 && n != 16 && n != 32 || len(b) < 5+n {
		return notify(errUpdate, 9) // RFC 7606, section 7.11
	}
	if n == 32 {
		n = 16 // a link-local address follows
	}
	d.route.NextHop = route.AddrOf(b[4 : 4+n])
	if !a.has(attrOrigin) || !a.has(attrASPath) {
		a.bad("attribute-missing")
	}
	d.route.Communities = ""
	if a.withdraw == "" {
		d.route.Communities = d.pool.get(a.communities)
	}
	return d.each(b[5+int(b[3]):], true, h)
}

// each reads routes. That their lengths fill b exactly is looked at before any of them is passed on.
func (d *decoder) each(b []byte, reach bool, h sink) *Notification {
	for rest := b; len(rest) > 0; rest = rest[2+int(rest[1]):] {
		if len(rest) < 2 || int(rest[1]) > len(rest)-2 {
			return notify(errUpdate, 10)
		}
	}
	a, r := &d.attrs, &d.route
	reason := a.withdraw
	if reason == "" {
		reason = a.loop
	}
	for len(b) > 0 {
		kind, v := b[0], b[2:2+int(b[1])]
		b = b[2+len(v):]
		why, known := parseNLRI(kind, v, r, reach)
		if reach && why == "" {
			why = reason
		}
		switch {
		case why != "":
			h.malformed(why)
			if known {
				h.withdrawn(&r.Key)
			}
		case reach:
			a.tunnel(r)
			h.learned(r)
		default:
			h.withdrawn(&r.Key)
		}
	}
	return nil
}

// maxPool is how many bytes of communities are kept in order to be shared.
const maxPool = 256 << 10

// pool makes equal communities share memory. When it is full it begins anew: what routes hold lives on with them.
type pool struct {
	seen map[string]route.Communities
	size int
	last route.Communities
}

func (p *pool) get(b []byte) route.Communities {
	if len(b) == 0 {
		return ""
	}
	if string(p.last) == string(b) {
		return p.last
	}
	c, ok := p.seen[string(b)]
	if !ok {
		if p.seen == nil || p.size+len(b) > maxPool {
			p.seen, p.size = make(map[string]route.Communities), 0
		}
		c = route.Communities(bytes.Clone(b))
		p.seen[string(c)] = c
		p.size += len(c)
	}
	p.last = c
	return c
}
