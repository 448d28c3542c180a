package control

import (
	"cmp"
	"errors"
	"net"
	"net/netip"
	"slices"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/vtep"
)

// A floodTarget identifies a flood list of a VTEP.
type floodTarget struct {
	tunnel tunnel
	vni    frame.VNI // on the VTEP
}

// A floodList is a list that was written.
type floodList struct {
	vni   frame.VNI // the segment; when tags change, another segment may get the target
	list  []netip.AddrPort
	shown []netip.AddrPort // as the VTEP returned it
}

// A floodChange is the change of the flood lists of a segment.
type floodChange struct {
	want map[floodTarget][]ref
}

// setFloods writes the flood lists of a segment, one for each local VTEP that rows name.
func (t *tx) setFloods(vni frame.VNI, c *floodChange) {
	c.want = map[floodTarget][]ref{}
	for n, r := range t.p.floods.all(&t.p.store, vni) {
		if t.usable(n, t.find) {
			at := floodTarget{r.place.tunnel, r.place.tag}
			c.want[at] = append(c.want[at], n)
		}
	}
	for at, rows := range c.want {
		t.setFlood(vni, at, rows)
	}
}

// list returns the VTEPs of rows, sorted.
func (t *tx) list(rows []ref) (list []netip.AddrPort) {
	for _, n := range rows {
		list = append(list, t.p.at(n).place.row.(Flood).VTEP)
	}
	slices.SortFunc(list, func(a, b netip.AddrPort) int { // a port counts before none
		return cmp.Or(a.Addr().Compare(b.Addr()), cmp.Compare(b.Port(), a.Port()))
	})
	return slices.CompactFunc(list, func(a, b netip.AddrPort) bool { return a.Addr() == b.Addr() })
}

// listed returns the list of a segment at a target, nil if there is none.
func (t *tx) listed(vni frame.VNI, at floodTarget) *floodList {
	if l := t.p.lists[at]; l != nil && l.vni == vni {
		return l
	}
	return nil
}

// changed reports whether a list has to be written, and whether it only becomes shorter.
func (t *tx) changed(was *floodList, at floodTarget, list []netip.AddrPort) (changed, shorter bool) {
	if was == nil {
		return true, false
	}
	if slices.Equal(list, was.list) {
		return t.again && !slices.Equal(at.tunnel.Flood(at.vni), was.shown), false
	}
	return true, !slices.ContainsFunc(list, func(a netip.AddrPort) bool { return !slices.Contains(was.list, a) })
}

// setFlood writes a list, unless it only becomes shorter: clearFloods does that.
func (t *tx) setFlood(vni frame.VNI, at floodTarget, rows []ref) {
	list, was := t.list(rows), t.listed(vni, at)
	if changed, shorter := t.changed(was, at, list); !changed || shorter {
		return
	}
	err := t.putFlood(vni, at, list)
	if err == nil {
		return
	}
	bad := map[netip.Addr]error{}
	if errors.Is(err, vtep.ErrNotOpen) || errors.Is(err, net.ErrClosed) {
		for _, a := range list {
			bad[a.Addr()] = err
		}
	} else {
		var good []netip.AddrPort
		if was != nil {
			good = was.list
		}
		isGood := func(a netip.AddrPort) bool { return slices.Contains(good, a) }
		both := slices.DeleteFunc(slices.Clone(list), func(a netip.AddrPort) bool { return !isGood(a) })
		rest := slices.DeleteFunc(slices.Clone(list), isGood)
		if len(rest) == 0 {
			both, rest = nil, list
		}
		t.fit(vni, at, both, rest, err, bad)
	}
	for _, n := range rows {
		if err := bad[t.p.at(n).place.row.(Flood).VTEP.Addr()]; err != nil {
			t.fail(n, err)
		}
	}
}

// fit adds those of more to a list that the VTEP takes. With all of more it does not, for err.
func (t *tx) fit(vni frame.VNI, at floodTarget, list, more []netip.AddrPort, err error, bad map[netip.Addr]error) []netip.AddrPort {
	if len(more) == 1 {
		bad[more[0].Addr()] = err
		return list
	}
	for _, half := range [][]netip.AddrPort{more[:len(more)/2], more[len(more)/2:]} {
		all := slices.Concat(list, half)
		slices.SortFunc(all, netip.AddrPort.Compare)
		if err := t.putFlood(vni, at, all); err == nil {
			list = all
		} else {
			list = t.fit(vni, at, list, half, err, bad)
		}
	}
	return list
}

func (t *tx) putFlood(vni frame.VNI, at floodTarget, list []netip.AddrPort) error {
	if err := at.tunnel.SetFlood(at.vni, list...); err != nil {
		return err
	}
	t.p.stats.Floods++
	t.p.lists[at] = &floodList{vni, list, at.tunnel.Flood(at.vni)}
	t.p.targets[vni] = append(slices.DeleteFunc(t.p.targets[vni], func(x floodTarget) bool { return x == at }), at)
	return nil
}

// clearFloods writes lists that became shorter, and removes those without rows.
func (t *tx) clearFloods(vni frame.VNI, c *floodChange) {
	for _, at := range slices.Clone(t.p.targets[vni]) {
		was := t.listed(vni, at)
		list := t.list(c.want[at])
		if was != nil && len(list) > 0 {
			if changed, _ := t.changed(was, at, list); changed {
				t.putFlood(vni, at, list)
			}
			continue
		}
		if was != nil {
			at.tunnel.SetFlood(at.vni)
			t.p.stats.Floods++
			delete(t.p.lists, at)
		}
		t.p.targets[vni] = slices.DeleteFunc(t.p.targets[vni], func(x floodTarget) bool { return x == at })
	}
	if len(t.p.targets[vni]) == 0 {
		delete(t.p.targets, vni)
	}
}
