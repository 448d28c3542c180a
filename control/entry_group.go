package control

import (
	"fmt"
	"slices"

	"github.com/vxswitch/vxswitch/frame"
)

// groupEntry is a group of VTEPs: their numbers, and its own. It is there before the first MAC
// that names it.
type groupEntry struct {
	at     groupPlace
	tunnel tunnel
	vni    frame.VNI // as the tunnel calls it
	hops   []hop
	held   []held
}

func (at groupPlace) String() string { return fmt.Sprintf("group %s vni %d", at.name, at.vni) }

// empty reports whether a group has no members.
func (s *slot) empty() bool { return s == nil || len(s.claims) == 0 }

// members returns those of a group, in order.
func (s *slot) members() (list []hop) {
	for _, c := range s.claims {
		list = append(list, c.says.(hop))
	}
	slices.SortFunc(list, hop.compare)
	return slices.Compact(list)
}

func (t *tx) group(at groupPlace, s *slot) (entry, error) {
	x, err := t.segment(at.vni)
	if err != nil {
		return nil, err
	}
	f, err := x.far(at.tunnel)
	if err != nil {
		return nil, err
	}
	return &groupEntry{at: at, tunnel: f.tunnel, vni: f.vni(), hops: s.members()}, nil
}

func (e *groupEntry) same(x entry) bool {
	o := x.(*groupEntry)
	return e.tunnel == o.tunnel && e.vni == o.vni && slices.Equal(e.hops, o.hops)
}
func (e *groupEntry) where() any           { return e.at }
func (e *groupEntry) peers() []held        { return e.held }
func (e *groupEntry) set(*tx, entry) error { return nil }
func (e *groupEntry) clear(*tx)            {}

func (e *groupEntry) hold(t *tx) (err error) {
	_, e.held, err = t.holdHops(e.tunnel, e.vni, e.hops)
	return err
}

// touchUsers has the places looked at of all rows that name a group.
func (t *tx) touchUsers(at groupPlace) {
	for r := range t.p.users[at] {
		for _, at := range []place{macPlace{r.VNI, r.MAC}, neighbourPlace{r.VNI, r.IP}} {
			if n, ok := at.(neighbourPlace); ok && !n.ip.IsValid() {
				continue
			}
			t.touch(at)
			t.fresh[at] = true
		}
	}
}

// use notes which rows name a group.
func (p *Plane) use(owner string, key Row, old, new stored) {
	if r, ok := old.row.(MAC); ok && r.Group != "" {
		at := r.in(owner)
		if delete(p.users[at], key.(MAC)); len(p.users[at]) == 0 {
			delete(p.users, at)
		}
	}
	if r, ok := new.row.(MAC); ok && r.Group != "" {
		at := r.in(owner)
		if p.users[at] == nil {
			p.users[at] = map[MAC]struct{}{}
		}
		p.users[at][key.(MAC)] = struct{}{}
	}
}
