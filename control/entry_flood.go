package control

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/vxswitch/vxswitch/frame"
)

// A floodEntry has the flood lists of a segment, one for each local VTEP that rows name.
type floodEntry struct {
	at    floodKey
	lists []*floodList
}

// A floodList is the flood list of a segment on one VTEP.
type floodList struct {
	floodTarget
	owner string // of the row with the highest precedence
	list  []netip.AddrPort
	shown []netip.AddrPort // as the VTEP returned it
	later bool             // it only becomes shorter: written last, by finish
}

// A floodTarget identifies a list. When the tag of a segment changes, another segment may get the
// target: Plane.lists has its current list.
type floodTarget struct {
	tunnel tunnel
	vni    frame.VNI // on the VTEP
}

func (at floodKey) String() string { return fmt.Sprintf("flood vni %d", at.vni) }

// flood makes lists of the rows whose local VTEP exists.
func (t *tx) flood(at floodKey, s *slot) (entry, error) {
	x, err := t.segment(at.vni)
	if err != nil {
		return nil, err
	}
	e := &floodEntry{at: at}
	for _, c := range s.claims {
		says := c.says.(flooded)
		f, failed := x.vtep(says.tunnel)
		if failed != nil {
			err = failed
			t.lose(at, c.owner, err)
			continue
		}
		l := e.list(floodTarget{f.tunnel, f.vni()})
		if l == nil {
			l = &floodList{floodTarget: floodTarget{f.tunnel, f.vni()}, owner: c.owner}
			e.lists = append(e.lists, l)
		}
		l.list = append(l.list, says.vtep)
	}
	if len(e.lists) == 0 {
		t.losses-- // the caller counts it
		return nil, err
	}
	for _, l := range e.lists {
		slices.SortFunc(l.list, netip.AddrPort.Compare)
		l.list = slices.Compact(l.list)
	}
	return e, nil
}

// list returns the list of a target, nil if there is none.
func (e *floodEntry) list(at floodTarget) *floodList {
	for _, l := range e.lists {
		if l.floodTarget == at {
			return l
		}
	}
	return nil
}

func (e *floodEntry) same(x entry) bool {
	o := x.(*floodEntry)
	differs := func(l *floodList) bool {
		was := o.list(l.floodTarget)
		return was == nil || !slices.Equal(l.list, was.list)
	}
	return len(e.lists) == len(o.lists) && !slices.ContainsFunc(e.lists, differs)
}
func (e *floodEntry) where() any     { return e.at } // finish clears moved lists
func (e *floodEntry) peers() []held  { return nil }
func (e *floodEntry) hold(*tx) error { return nil }

func (e *floodEntry) set(t *tx, old entry) error {
	o, _ := old.(*floodEntry)
	if o == nil {
		o = new(floodEntry)
	}
	kept := make([]*floodList, 0, len(e.lists))
	for _, l := range e.lists {
		was := o.list(l.floodTarget)
		err := l.set(t, was)
		switch {
		case err == nil:
			kept = append(kept, l)
		case t.fresh[e.at] && (was == nil || slices.ContainsFunc(l.list, was.lacks)):
			return err
		default:
			t.lose(e.at, l.owner, err)
		}
	}
	e.lists = kept
	return nil
}

// finish writes the lists that only become shorter, and removes old ones.
func (e *floodEntry) finish(t *tx, old entry) {
	for _, l := range e.lists {
		if l.later {
			l.put(t)
		}
	}
	if o, ok := old.(*floodEntry); ok {
		for _, l := range o.lists {
			if e.list(l.floodTarget) == nil {
				l.clear(t)
			}
		}
	}
}

func (e *floodEntry) clear(t *tx) {
	for _, l := range e.lists {
		l.clear(t)
	}
}

func (l *floodList) lacks(a netip.AddrPort) bool { return !slices.Contains(l.list, a) }

// set writes a list that replaces another of the segment, nil for none.
func (l *floodList) set(t *tx, was *floodList) error {
	if was == nil || t.p.lists[l.floodTarget] != was {
		return l.put(t)
	}
	if slices.Equal(l.list, was.list) && slices.Equal(l.tunnel.Flood(l.vni), was.shown) {
		l.shown = was.shown
		l.own(t)
		return nil
	}
	if l.later = len(l.list) < len(was.list) && !slices.ContainsFunc(l.list, was.lacks); l.later {
		return nil
	}
	return l.put(t)
}

// put writes the list.
func (l *floodList) put(t *tx) error {
	was := l.tunnel.Flood(l.vni)
	if err := l.tunnel.SetFlood(l.vni, l.list...); err != nil {
		return err
	}
	t.p.stats.Floods++
	t.undo(func() { t.p.stats.Floods++; l.tunnel.SetFlood(l.vni, was...) })
	l.shown = l.tunnel.Flood(l.vni)
	l.own(t)
	return nil
}

// own records that the target has this list.
func (l *floodList) own(t *tx) {
	was, had := t.p.lists[l.floodTarget]
	t.p.lists[l.floodTarget] = l
	t.undo(func() {
		if delete(t.p.lists, l.floodTarget); had {
			t.p.lists[l.floodTarget] = was
		}
	})
}

// clear removes the list, if no other has replaced it.
func (l *floodList) clear(t *tx) {
	if t.p.lists[l.floodTarget] == l {
		delete(t.p.lists, l.floodTarget)
		l.tunnel.SetFlood(l.vni)
		t.p.stats.Floods++
	}
}
