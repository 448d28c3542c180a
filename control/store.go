package control

import (
	"cmp"
	"iter"
	"net/netip"
	"slices"

	"github.com/vxswitch/vxswitch/frame"
)

// A record is a row. What it has in common with other rows is in its place.
type record struct {
	place *place
	seq   uint64 // when it was added or changed
	addr  [16]byte
	mac   frame.MAC
	bits  uint8 // length of the prefix; of a MAC row with an address 128
	flags uint8

	key, ip, beside link // its neighbours in lists: with the same key, the same address, the same place
}

// Flags of a record.
const (
	written  uint8 = 1 << iota // in an FDB or route, or would be but for a host that is here
	taught                     // likewise in a neighbour table
	kept                       // in the Update at hand
	advanced                   // advertised again by it
)

// Keys of records.
type (
	macKey struct {
		vni frame.VNI
		mac frame.MAC
	}
	ipKey struct {
		vni frame.VNI
		ip  [16]byte
	}
	routeKey struct {
		vrf    string
		prefix netip.Prefix
	}
	groupKey struct {
		owner  *owner
		vni    frame.VNI
		tunnel string
		name   string
	}
)

// A store has the rows of all owners, and finds them by key.
type store struct {
	pages[record]
	owners map[string]*owner
	sorted []*owner // by precedence
	seq    uint64

	macs    chain[macKey]
	ips     chain[ipKey]
	floods  chain[frame.VNI]
	groups  chain[groupKey]
	routes  chain[routeKey]
	places  chain[*place]
	routers map[macKey][]*place   // prefixes with the MAC of a router, by owner and VTEP
	named   map[groupKey][]*place // MACs behind a group
}

func newStore() store {
	byKey, byIP, byPlace := func(r *record) *link { return &r.key }, func(r *record) *link { return &r.ip }, func(r *record) *link { return &r.beside }
	return store{
		owners: map[string]*owner{}, routers: map[macKey][]*place{}, named: map[groupKey][]*place{},
		macs:   newChain(func(r *record) macKey { return macKey{r.place.row.(MAC).VNI, r.mac} }, byKey),
		ips:    newChain(func(r *record) ipKey { return ipKey{r.place.row.(MAC).VNI, r.addr} }, byIP),
		floods: newChain(func(r *record) frame.VNI { return r.place.row.(Flood).VNI }, byKey),
		groups: newChain((*record).group, byKey),
		routes: newChain(func(r *record) routeKey { return routeKey{r.place.row.(Prefix).VRF, r.prefix()} }, byKey),
		places: newChain(func(r *record) *place { return r.place }, byPlace),
	}
}

// group returns the group that a row is of.
func (r *record) group() groupKey {
	g := r.place.row.(Group)
	return groupKey{r.place.owner, g.VNI, g.Tunnel, g.Name}
}

// An owner has rows.
type owner struct {
	name   string
	rank   int // in Config.Owners
	static bool
	rows   int
	places map[Row]*place
	last   *place // found last
}

// before reports whether rows of o precede those of x.
func (o *owner) before(x *owner) bool { return o != x && compareOwners(o, x) < 0 }

func compareOwners(a, b *owner) int {
	return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.name, b.name))
}

// place returns the place of a row, and makes it if necessary.
func (o *owner) place(r Row) *place {
	r = common(r)
	if o.last != nil && o.last.row == r {
		return o.last
	}
	p := o.places[r]
	if p == nil {
		p = &place{owner: o, row: r}
		o.places[r] = p
	}
	o.last = p
	return p
}

// common returns a row without the addresses in which the rows of a place differ.
func common(r Row) Row {
	switch r := r.(type) {
	case MAC:
		r.MAC, r.IP = frame.MAC{}, netip.Addr{}
		return r
	case Prefix:
		r.Prefix = netip.Prefix{}
		return r
	}
	return r
}

// row returns the row of a record.
func (r *record) row() Row {
	switch x := r.place.row.(type) {
	case MAC:
		if x.MAC = r.mac; r.bits != 0 {
			x.IP = netip.AddrFrom16(r.addr).Unmap()
		}
		return x
	case Prefix:
		x.Prefix = r.prefix()
		return x
	}
	return r.place.row
}

func (r *record) prefix() netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom16(r.addr).Unmap(), int(r.bits))
}

// find returns the record of an owner with the key of a row. It looks through the shorter of two lists: for a MAC with
// an address those with the MAC and those with the address, for a prefix its next hops and the prefixes of its next hop.
func (s *store) find(o *owner, row Row) ref {
	switch x := row.(type) {
	case MAC:
		a := s.macs.first(&s.pages, o, macKey{x.VNI, x.MAC})
		switch {
		case !x.IP.IsValid():
			for ; a != 0 && s.at(a).bits != 0; a = s.at(a).key.next {
			}
			return a
		case x.IP.Zone() != "":
			return 0
		}
		ip := x.IP.As16()
		return s.either(a, s.ips.first(&s.pages, o, ipKey{x.VNI, ip}), s.macs.link, s.ips.link, func(r *record) bool {
			return r.mac == x.MAC && r.bits != 0 && r.addr == ip
		})
	case Flood:
		for no := range 4 { // its key says nothing of these
			x.NoBroadcast, x.NoUnknown = no&1 != 0, no&2 != 0
			if p := o.places[x]; p != nil {
				return s.places.first(&s.pages, o, p)
			}
		}
		return 0
	case Prefix:
		p := o.places[common(row)]
		if p == nil || !x.Prefix.IsValid() {
			return 0
		}
		a, b := s.routes.first(&s.pages, o, routeKey{x.VRF, x.Prefix}), s.places.first(&s.pages, o, p)
		return s.either(a, b, s.routes.link, s.places.link, func(r *record) bool { return r.place == p && r.prefix() == x.Prefix })
	}
	if p := o.places[row]; p != nil {
		return s.places.first(&s.pages, o, p)
	}
	return 0
}

// either looks for a record that is in two lists.
func (s *store) either(a, b ref, nextA, nextB func(*record) *link, is func(*record) bool) ref {
	for a != 0 && b != 0 {
		if is(s.at(a)) {
			return a
		}
		if is(s.at(b)) {
			return b
		}
		a, b = nextA(s.at(a)).next, nextB(s.at(b)).next
	}
	return 0
}

// insert adds a row to a place.
func (s *store) insert(p *place, row Row) ref {
	n := s.alloc()
	s.seq++
	r := s.at(n)
	*r = record{place: p, seq: s.seq}
	switch x := row.(type) {
	case MAC:
		if r.mac = x.MAC; x.IP.IsValid() {
			r.addr, r.bits = x.IP.As16(), 128
		}
	case Prefix:
		r.addr, r.bits = x.Prefix.Addr().As16(), uint8(x.Prefix.Bits())
	}
	s.list(n, true)
	p.n++
	p.owner.rows++
	if p.n == 1 {
		s.index(p, true)
	}
	return n
}

// drop removes a row.
func (s *store) drop(n ref) {
	r := s.at(n)
	p := r.place
	s.list(n, false)
	p.owner.rows--
	if p.n--; p.n == 0 {
		delete(p.owner.places, p.row)
		p.owner.last = nil
		s.index(p, false)
	}
	s.release(n)
}

// index adds a place to those that are found by the MAC of a router or by a group, or removes it.
func (s *store) index(p *place, in bool) {
	if k, ok := p.router(); ok {
		list := s.routers[k]
		i, _ := slices.BinarySearchFunc(list, p, comparePlaces)
		if in {
			s.routers[k] = slices.Insert(list, i, p)
		} else {
			i += slices.Index(list[i:], p) // others may be at the same VTEP
			if s.routers[k] = slices.Delete(list, i, i+1); len(s.routers[k]) == 0 {
				delete(s.routers, k)
			}
		}
	}
	if k, ok := p.in(); ok {
		if in {
			s.named[k] = append(s.named[k], p)
		} else if s.named[k] = slices.DeleteFunc(s.named[k], func(x *place) bool { return x == p }); len(s.named[k]) == 0 {
			delete(s.named, k)
		}
	}
}

// list adds a record to the lists of its keys, or removes it.
func (s *store) list(n ref, in bool) {
	switch r := s.at(n); r.place.row.(type) {
	case MAC:
		s.macs.set(&s.pages, n, in)
		if r.bits != 0 {
			s.ips.set(&s.pages, n, in)
		}
	case Flood:
		s.floods.set(&s.pages, n, in)
	case Group:
		s.groups.set(&s.pages, n, in)
	case Prefix:
		s.routes.set(&s.pages, n, in)
	}
	s.places.set(&s.pages, n, in)
}

// of iterates over the records of an owner, in no order.
func (s *store) of(o *owner) iter.Seq2[ref, *record] {
	return func(yield func(ref, *record) bool) {
		if o == nil {
			return
		}
		for _, p := range o.places {
			for n, r := range s.places.all(s, p) {
				if !yield(n, r) {
					return
				}
			}
		}
	}
}
