package control

import (
	"fmt"
	"slices"

	"github.com/vxswitch/vxswitch/frame"
)

// A groupEntry is a group of VTEPs, with their peer numbers and its own. It exists before the first
// MAC that names it.
type groupEntry struct {
	at     groupKey
	tunnel tunnel
	vni    frame.VNI // on the tunnel
	list   []remote
	held   []held
}

func (at groupKey) String() string { return fmt.Sprintf("group %s vni %d", at.name, at.vni) }

// empty reports whether a group has no members.
func (s *slot) empty() bool { return s == nil || len(s.claims) == 0 }

// members returns the members of a group, sorted.
func (s *slot) members() (list []remote) {
	for _, c := range s.claims {
		list = append(list, c.says.(remote))
	}
	slices.SortFunc(list, remote.compare)
	return slices.Compact(list)
}

func (t *tx) group(at groupKey, s *slot) (entry, error) {
	x, err := t.segment(at.vni)
	if err != nil {
		return nil, err
	}
	f, err := x.vtep(at.tunnel)
	if err != nil {
		return nil, err
	}
	return &groupEntry{at: at, tunnel: f.tunnel, vni: f.vni(), list: s.members()}, nil
}

func (e *groupEntry) same(x entry) bool {
	o := x.(*groupEntry)
	return e.tunnel == o.tunnel && e.vni == o.vni && slices.Equal(e.list, o.list)
}
func (e *groupEntry) where() any           { return e.at }
func (e *groupEntry) peers() []held        { return e.held }
func (e *groupEntry) set(*tx, entry) error { return nil }
func (e *groupEntry) clear(*tx)            {}

func (e *groupEntry) hold(t *tx) (err error) {
	_, e.held, err = t.holdRemotes(e.tunnel, e.vni, e.list)
	return err
}

// touchUsers touches the keys of all rows that name a group.
func (t *tx) touchUsers(at groupKey) {
	for r := range t.p.users[at] {
		for _, at := range []entryKey{macKey{r.VNI, r.MAC}, neighbourKey{r.VNI, r.IP}} {
			if n, ok := at.(neighbourKey); ok && !n.ip.IsValid() {
				continue
			}
			t.touch(at)
			t.fresh[at] = true
		}
	}
}

// use records which rows name a group.
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
