package state

import (
	"cmp"
	"container/heap"
	"net/netip"
	"slices"
	"time"

	"github.com/vxswitch/vxswitch/frame"
)

// A database has advertisements by ID, in order, by age, and by what they say.
type database struct {
	held   map[ID]*held
	order  []ID // sorted
	ages   ages
	owners map[netip.Addr]int // their parts

	claims  map[frame.VNI]map[frame.MAC][]Claim // the best first
	changed map[Change]bool                     // since Changes
}

// held is an advertisement and when it ages out.
type held struct {
	Advert
	until time.Duration
	at    int // in ages
}

// A Key is a host or, with a zero MAC, a segment.
type Key struct {
	VNI frame.VNI
	MAC frame.MAC
}

func (h Host) key() Key { return Key{h.VNI, h.MAC} }

// A Change is a host of which something else is said, or a segment of which an owner says something else.
type Change struct {
	Key
	Owner netip.Addr // of a segment
}

// A Claim is what an owner says of a host.
type Claim struct {
	Owner netip.Addr
	Kind  Kind
	Moves uint16
	part  uint8
}

// compare orders claims: static ones, then what has moved most often, then the lower address.
func (c Claim) compare(o Claim) int {
	return cmp.Or(cmp.Compare(o.Kind, c.Kind), cmp.Compare(o.Moves, c.Moves), c.Owner.Compare(o.Owner), cmp.Compare(c.part, o.part))
}

func newDatabase() database {
	return database{held: map[ID]*held{}, owners: map[netip.Addr]int{}, claims: map[frame.VNI]map[frame.MAC][]Claim{}, changed: map[Change]bool{}}
}

// full reports whether there is no room for a new ID.
func (d *database) full(id ID) bool {
	if d.held[id] != nil {
		return false
	}
	return len(d.held) >= MaxAdverts || d.owners[id.Owner] == 0 && len(d.owners) >= MaxOwners
}

// put keeps an advertisement instead of an older one.
func (d *database) put(a Advert, until time.Duration) {
	h := d.held[a.ID]
	if h == nil {
		h = &held{Advert: Advert{ID: a.ID}, until: until}
		d.held[a.ID] = h
		d.owners[a.Owner]++
		i, _ := slices.BinarySearchFunc(d.order, a.ID, ID.Compare)
		d.order = slices.Insert(d.order, i, a.ID)
		heap.Push(&d.ages, h)
	}
	d.claim(a.ID, h.Hosts, a.Hosts)
	h.Advert, h.until = a, until
	heap.Fix(&d.ages, h.at)
}

// drop forgets an advertisement.
func (d *database) drop(h *held) {
	d.claim(h.ID, h.Hosts, nil)
	delete(d.held, h.ID)
	if d.owners[h.Owner]--; d.owners[h.Owner] == 0 {
		delete(d.owners, h.Owner)
	}
	i, _ := slices.BinarySearchFunc(d.order, h.ID, ID.Compare)
	d.order = slices.Delete(d.order, i, i+1)
	heap.Remove(&d.ages, h.at)
}

// claim replaces what an advertisement said of hosts. Both lists are sorted.
func (d *database) claim(id ID, was, is []Host) {
	for len(was)+len(is) > 0 {
		switch {
		case len(was) > 0 && len(is) > 0 && was[0] == is[0]:
			was, is = was[1:], is[1:]
		case len(is) == 0 || len(was) > 0 && was[0].compare(is[0]) <= 0:
			d.unclaim(id, was[0])
			was = was[1:]
		default:
			d.assert(id, is[0])
			is = is[1:]
		}
	}
}

func (d *database) assert(id ID, h Host) {
	at := d.claims[h.VNI]
	if at == nil {
		at = map[frame.MAC][]Claim{}
		d.claims[h.VNI] = at
	}
	list, c := at[h.MAC], Claim{id.Owner, h.Kind, h.Moves, id.Part}
	i, _ := slices.BinarySearchFunc(list, c, Claim.compare)
	at[h.MAC] = slices.Insert(list, i, c)
	d.note(id, h)
}

func (d *database) unclaim(id ID, h Host) {
	at := d.claims[h.VNI]
	list := at[h.MAC]
	if i, ok := slices.BinarySearchFunc(list, Claim{id.Owner, h.Kind, h.Moves, id.Part}, Claim.compare); ok {
		list = slices.Delete(list, i, i+1)
	}
	if at[h.MAC] = list; len(list) == 0 {
		delete(at, h.MAC)
	}
	if len(at) == 0 {
		delete(d.claims, h.VNI)
	}
	d.note(id, h)
}

func (d *database) note(id ID, h Host) {
	c := Change{Key: h.key()}
	if h.MAC.IsZero() {
		c.Owner = id.Owner
	}
	d.changed[c] = true
}

// within returns the IDs of a range.
func (d *database) within(from, to ID) []ID {
	i, _ := slices.BinarySearchFunc(d.order, from, ID.Compare)
	j, ok := slices.BinarySearchFunc(d.order, to, ID.Compare)
	if ok {
		j++
	}
	return d.order[i:j]
}

// ages is a heap, what ages out next first.
type ages []*held

func (a ages) Len() int           { return len(a) }
func (a ages) Less(i, j int) bool { return a[i].until < a[j].until }
func (a ages) Swap(i, j int) {
	a[i], a[j] = a[j], a[i]
	a[i].at, a[j].at = i, j
}
func (a *ages) Push(x any) {
	h := x.(*held)
	h.at = len(*a)
	*a = append(*a, h)
}
func (a *ages) Pop() any {
	h := (*a)[len(*a)-1]
	*a = (*a)[:len(*a)-1]
	return h
}
