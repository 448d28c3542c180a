package control

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/vxswitch/vxswitch/frame"
)

// floodEntry is the flood list of a segment.
type floodEntry struct {
	floodTarget
	list  []netip.AddrPort
	shown []netip.AddrPort // what the VTEP says that it is
	later bool             // it only gets shorter: when the rest has gone
}

// floodTarget is the place of a list.
type floodTarget struct {
	tunnel tunnel
	vni    frame.VNI // as the VTEP calls it
}

func (at floodPlace) String() string {
	if at.tunnel != "" {
		return fmt.Sprintf("flood vni %d tunnel %s", at.vni, at.tunnel)
	}
	return fmt.Sprintf("flood vni %d", at.vni)
}

func (t *tx) flood(at floodPlace, s *slot) (entry, error) {
	list := s.flooded()
	if len(list) == 0 {
		return nil, nil
	}
	x, err := t.segment(at.vni)
	if err != nil {
		return nil, err
	}
	f, err := x.far(at.tunnel)
	if err != nil {
		return nil, err
	}
	return &floodEntry{floodTarget: floodTarget{f.tunnel, f.vni()}, list: list}, nil
}

func (e *floodEntry) same(x entry) bool {
	o := x.(*floodEntry)
	return e.floodTarget == o.floodTarget && slices.Equal(e.list, o.list)
}
func (e *floodEntry) where() any     { return e.floodTarget }
func (e *floodEntry) peers() []held  { return nil }
func (e *floodEntry) hold(*tx) error { return nil }

func (e *floodEntry) set(t *tx, old entry) error {
	if o, ok := old.(*floodEntry); ok {
		if slices.Equal(e.list, o.list) && slices.Equal(e.tunnel.Flood(e.vni), o.shown) {
			e.shown = o.shown
			return nil
		}
		added := func(a netip.AddrPort) bool { return !slices.Contains(o.list, a) }
		if e.later = !slices.ContainsFunc(e.list, added) && len(e.list) < len(o.list); e.later {
			return nil
		}
	}
	return e.put(t)
}

// put writes the list.
func (e *floodEntry) put(t *tx) error {
	was := e.tunnel.Flood(e.vni)
	if err := e.tunnel.SetFlood(e.vni, e.list...); err != nil {
		return err
	}
	t.p.stats.Floods++
	t.undo(func() { t.p.stats.Floods++; e.tunnel.SetFlood(e.vni, was...) })
	e.shown = e.tunnel.Flood(e.vni)
	return nil
}

func (e *floodEntry) clear(t *tx) {
	e.tunnel.SetFlood(e.vni)
	t.p.stats.Floods++
}
