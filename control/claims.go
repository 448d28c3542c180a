package control

import (
	"cmp"
	"net/netip"
	"slices"

	"github.com/vxswitch/vxswitch/frame"
)

// Keys of table entries, for which rows have claims.
type (
	entryKey interface{ String() string }

	macKey struct {
		vni frame.VNI
		mac frame.MAC
	} // in an FDB
	neighbourKey struct {
		vni frame.VNI
		ip  netip.Addr
	}
	floodKey struct{ vni frame.VNI } // all flood lists of a segment
	groupKey struct {
		owner  string
		vni    frame.VNI
		tunnel string // in rows
		name   string
	} // of a group, which is in no table
	routeKey struct {
		vrf    string
		prefix netip.Prefix
	}
)

// The contents of claims. Those for a routeKey are a Via.
type (
	flooded struct {
		vtep   netip.AddrPort
		tunnel string
	}
	remote struct {
		vtep   netip.AddrPort
		farVNI frame.VNI // 0 = that of the local VTEP
	}
	location struct {
		remote
		group  groupKey // if set, instead of remote
		tunnel string
		port   string
		filter bool
		sticky bool
		vrf    string // with the prefixes of a router
	}
	neighbour struct {
		mac    frame.MAC
		router bool
		at     location
	}
)

// A slot has all claims for one key.
type slot struct {
	claims  []claim
	written entry // in the table; nil = none
}

// A claim is the content that a row of an owner has for a key.
type claim struct {
	owner string
	by    any    // the row; for MACs of routers, which prefixes share, the content
	says  any    // the content
	seq   uint64 // of the row; 0 for MACs of routers, so that a MAC row precedes them
	n     int    // number of rows
}

// stored is a row of an owner. Of several rows for one key, that with the highest seq counts.
type stored struct {
	row Row // nil = none
	seq uint64
}

// claims calls f with every claim of a row.
func (s stored) claims(owner string, f func(entryKey, claim)) {
	switch r := s.row.(type) {
	case MAC:
		at := location{remote: remote{r.VTEP, r.FarVNI}, tunnel: r.Tunnel, port: r.Port, filter: r.Filter, sticky: r.Sticky}
		if r.Group != "" {
			at.group = r.in(owner)
		}
		f(macKey{r.VNI, r.MAC}, claim{owner, r, at, s.seq, 1})
		if r.IP.IsValid() {
			f(neighbourKey{r.VNI, r.IP}, claim{owner, r, neighbour{r.MAC, r.Router, at}, s.seq, 1})
		}
	case Group:
		f(groupKey{owner, r.VNI, r.Tunnel, r.Name}, claim{owner, r, remote{r.VTEP, r.FarVNI}, s.seq, 1})
	case Flood:
		f(floodKey{r.VNI}, claim{owner, r, flooded{r.VTEP, r.Tunnel}, s.seq, 1})
	case Prefix:
		f(routeKey{r.VRF, r.Prefix}, claim{owner, r, r.Via, s.seq, 1})
		if !r.Via.MAC.IsZero() {
			at := location{remote: remote{r.Via.VTEP, r.Via.FarVNI}, tunnel: r.Via.Tunnel, sticky: true, vrf: r.VRF}
			f(macKey{r.Via.VNI, r.Via.MAC}, claim{owner, at, at, 0, 1})
		}
	}
}

// in returns the group that a row names.
func (r MAC) in(owner string) groupKey { return groupKey{owner, r.VNI, r.Tunnel, r.Group} }

// claim adds a claim for a key.
func (p *Plane) claim(at entryKey, c claim) {
	s := p.slots[at]
	if s == nil {
		s = &slot{}
		p.slots[at] = s
	}
	if c.seq == 0 {
		if i := s.find(c); i >= 0 {
			s.claims[i].n++
			return
		}
	}
	s.claims = append(s.claims, c)
}

// unclaim removes a claim. The slot stays until its entry has been removed.
func (p *Plane) unclaim(at entryKey, c claim) {
	s := p.slots[at]
	i := s.find(c)
	if s.claims[i].n--; s.claims[i].n == 0 {
		s.claims = slices.Delete(s.claims, i, i+1)
	}
}

func (s *slot) find(c claim) int {
	return slices.IndexFunc(s.claims, func(x claim) bool { return x.seq == c.seq && x.owner == c.owner && x.by == c.by })
}

// ranked sorts the claims by precedence.
func (p *Plane) ranked(s *slot) []claim {
	if len(s.claims) > 1 {
		slices.SortStableFunc(s.claims, func(a, b claim) int {
			switch {
			case p.before(&a, &b):
				return -1
			case p.before(&b, &a):
				return 1
			}
			return 0
		})
	}
	return s.claims
}

// best returns the claim with the highest precedence.
func (p *Plane) best(s *slot) *claim {
	if len(s.claims) == 0 {
		return nil
	}
	return &p.ranked(s)[0]
}

func (p *Plane) before(a, b *claim) bool {
	if a.owner != b.owner {
		return p.rank(a.owner, b.owner) < 0
	}
	if a.seq != b.seq {
		return a.seq > b.seq
	}
	x, ok := a.says.(location)
	y, _ := b.says.(location)
	return ok && x.remote.compare(y.remote) < 0 // a router behind several VTEPs: any of them
}

func (r remote) compare(x remote) int {
	return cmp.Or(r.vtep.Compare(x.vtep), cmp.Compare(r.farVNI, x.farVNI))
}

// rank compares owners by precedence.
func (p *Plane) rank(a, b string) int {
	last := len(p.cfg.Owners)
	at := func(o string) int {
		if i := slices.Index(p.cfg.Owners, o); i >= 0 {
			return i
		}
		return last
	}
	return cmp.Or(cmp.Compare(at(a), at(b)), cmp.Compare(a, b))
}

// routed returns the next hops of an owner, and whether it has a blackhole, which counts if there
// are none.
func (s *slot) routed(owner string) (list []Via, blackhole bool) {
	for _, c := range s.claims {
		switch v := c.says.(Via); {
		case c.owner != owner:
		case v == (Via{}):
			blackhole = true
		default:
			list = append(list, v)
		}
	}
	slices.SortFunc(list, compareVia)
	return list, blackhole
}
