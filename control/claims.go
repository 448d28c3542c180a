package control

import (
	"cmp"
	"net/netip"
	"slices"

	"github.com/vxswitch/vxswitch/frame"
)

// The places that rows lay claim to, each one entry of a table.
type (
	place interface{ place() }

	macPlace struct {
		vni frame.VNI
		mac frame.MAC
	} // an entry of an FDB
	neighbourPlace struct {
		vni frame.VNI
		ip  netip.Addr
	}
	floodPlace struct{ vni frame.VNI } // all flood lists of a segment
	groupPlace struct {
		owner  string
		vni    frame.VNI
		tunnel string // as rows call it
		name   string
	} // a group: in no table, it only has what its members are
	routePlace struct {
		vrf    string
		prefix netip.Prefix
	}
)

func (macPlace) place()       {}
func (neighbourPlace) place() {}
func (floodPlace) place()     {}
func (groupPlace) place()     {}
func (routePlace) place()     {}

// What rows say of a place. Of a routePlace it is a Via.
type (
	flooded struct {
		vtep   netip.AddrPort
		tunnel string
	}
	hop struct {
		vtep netip.AddrPort
		far  frame.VNI // 0: what this end's VTEP calls the segment
	}
	location struct {
		hop
		group  groupPlace // of a name: instead of hop
		tunnel string
		port   string
		filter bool
		sticky bool
		vrf    string // of a router: that has its prefixes
	}
	neighbour struct {
		mac    frame.MAC
		router bool
		at     location
	}
)

// slot is a place with all claims to it.
type slot struct {
	claims  []claim
	written entry // nil: nothing
}

// claim is what an owner says of a place.
type claim struct {
	owner string
	by    any // the row; of the MACs of routers, which many prefixes share, what is said
	says  any
	seq   uint64 // of the row; 0 for the MAC of a router, so that a MAC row comes first
	n     int    // prefixes that say so
}

// stored is a row of an owner. Which of its rows for one place is the last is told by seq.
type stored struct {
	row Row // nil: none
	seq uint64
}

// claims calls f with every claim that a row makes.
func (s stored) claims(owner string, f func(place, claim)) {
	switch r := s.row.(type) {
	case MAC:
		at := location{hop: hop{r.VTEP, r.FarVNI}, tunnel: r.Tunnel, port: r.Port, filter: r.Filter, sticky: r.Sticky}
		if r.Group != "" {
			at.group = r.in(owner)
		}
		f(macPlace{r.VNI, r.MAC}, claim{owner, r, at, s.seq, 1})
		if r.IP.IsValid() {
			f(neighbourPlace{r.VNI, r.IP}, claim{owner, r, neighbour{r.MAC, r.Router, at}, s.seq, 1})
		}
	case Group:
		f(groupPlace{owner, r.VNI, r.Tunnel, r.Name}, claim{owner, r, hop{r.VTEP, r.FarVNI}, s.seq, 1})
	case Flood:
		f(floodPlace{r.VNI}, claim{owner, r, flooded{r.VTEP, r.Tunnel}, s.seq, 1})
	case Prefix:
		f(routePlace{r.VRF, r.Prefix}, claim{owner, r, r.Via, s.seq, 1})
		if !r.Via.MAC.IsZero() {
			at := location{hop: hop{r.Via.VTEP, r.Via.FarVNI}, tunnel: r.Via.Tunnel, sticky: true, vrf: r.VRF}
			f(macPlace{r.Via.VNI, r.Via.MAC}, claim{owner, at, at, 0, 1})
		}
	}
}

// in returns the group that a row is about.
func (r MAC) in(owner string) groupPlace { return groupPlace{owner, r.VNI, r.Tunnel, r.Group} }

// claim and unclaim change the claims to a place. The slot stays until it is written.
func (p *Plane) claim(at place, c claim) {
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

func (p *Plane) unclaim(at place, c claim) {
	s := p.slots[at]
	i := s.find(c)
	if s.claims[i].n--; s.claims[i].n == 0 {
		s.claims = slices.Delete(s.claims, i, i+1)
	}
}

func (s *slot) find(c claim) int {
	return slices.IndexFunc(s.claims, func(x claim) bool { return x.seq == c.seq && x.owner == c.owner && x.by == c.by })
}

// ranked brings the claims into the order in which they count.
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

// best returns the claim that counts.
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
	return ok && x.hop.compare(y.hop) < 0 // of a router behind several VTEPs, any
}

func (h hop) compare(x hop) int {
	return cmp.Or(h.vtep.Compare(x.vtep), cmp.Compare(h.far, x.far))
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

// routed returns the next hops of an owner, and whether it has a blackhole, which counts when
// there are none.
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
