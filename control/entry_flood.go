package control

import (
	"cmp"
	"errors"
	"fmt"
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
	list  []vtep.FloodPeer
	shown []vtep.FloodPeer // as the VTEP returned it
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

// list returns the VTEPs of rows, sorted. Each gets what one of its rows says.
func (t *tx) list(rows []ref) (list []vtep.FloodPeer) {
	for _, n := range rows {
		r := t.p.at(n).place.row.(Flood)
		list = append(list, vtep.FloodPeer{Addr: r.VTEP, MAC: r.MAC, NoBroadcast: r.NoBroadcast, NoUnknown: r.NoUnknown})
	}
	slices.SortFunc(list, compareFlood)
	i := 0
	for _, x := range list {
		if i > 0 && keyOfEntry(list[i-1]) == keyOfEntry(x) {
			y := &list[i-1]
			y.NoBroadcast, y.NoUnknown = y.NoBroadcast && x.NoBroadcast, y.NoUnknown && x.NoUnknown
			continue
		}
		list[i] = x
		i++
	}
	return list[:i]
}

// compareFlood orders by address and MAC; a port counts before none.
func compareFlood(a, b vtep.FloodPeer) int {
	return cmp.Or(a.Addr.Addr().Compare(b.Addr.Addr()), cmp.Compare(a.MAC.Uint64(), b.MAC.Uint64()), cmp.Compare(b.Addr.Port(), a.Addr.Port()))
}

// An entryKey says which entry of a list it is.
type entryKey struct {
	addr netip.Addr
	mac  frame.MAC
}

func keyOfEntry(x vtep.FloodPeer) entryKey { return entryKey{x.Addr.Addr(), x.MAC} }

// within returns a list without the groups that are too many, which it adds to bad. Those that were there before stay.
func within(list []vtep.FloodPeer, was *floodList, bad map[entryKey]error) []vtep.FloodPeer {
	groups, kept := map[frame.MAC]bool{}, map[frame.MAC]bool{}
	for _, x := range list {
		if !x.MAC.IsZero() {
			groups[x.MAC] = true
		}
	}
	if len(groups) <= vtep.MaxGroups {
		return list
	}
	keep := func(list []vtep.FloodPeer) {
		for _, x := range list {
			if groups[x.MAC] && len(kept) < vtep.MaxGroups {
				kept[x.MAC] = true
			}
		}
	}
	if was != nil {
		keep(was.list)
	}
	keep(list)
	err := fmt.Errorf("Flood.MAC: %w", vtep.ErrGroups)
	return slices.DeleteFunc(list, func(x vtep.FloodPeer) bool {
		over := groups[x.MAC] && !kept[x.MAC]
		if over {
			bad[keyOfEntry(x)] = err
		}
		return over
	})
}

// listed returns the list of a segment at a target, nil if there is none.
func (t *tx) listed(vni frame.VNI, at floodTarget) *floodList {
	if l := t.p.lists[at]; l != nil && l.vni == vni {
		return l
	}
	return nil
}

// changed reports whether a list has to be written, and whether it only becomes shorter.
func (t *tx) changed(was *floodList, at floodTarget, list []vtep.FloodPeer) (changed, shorter bool) {
	if was == nil {
		return true, false
	}
	if slices.Equal(list, was.list) {
		return t.again && !slices.Equal(at.tunnel.FloodPeers(at.vni), was.shown), false
	}
	return true, !slices.ContainsFunc(list, func(x vtep.FloodPeer) bool { return !slices.Contains(was.list, x) })
}

// setFlood writes a list, unless it only becomes shorter: clearFloods does that.
func (t *tx) setFlood(vni frame.VNI, at floodTarget, rows []ref) {
	was, bad := t.listed(vni, at), map[entryKey]error{}
	list := within(t.list(rows), was, bad)
	if changed, shorter := t.changed(was, at, list); changed && !shorter {
		t.tryFlood(vni, at, list, was, bad)
	}
	for _, n := range rows {
		r := t.p.at(n).place.row.(Flood)
		if err := bad[entryKey{r.VTEP.Addr(), r.MAC}]; err != nil {
			t.fail(n, err)
		}
	}
}

// tryFlood writes a list, or those of its entries that the VTEP takes.
func (t *tx) tryFlood(vni frame.VNI, at floodTarget, list []vtep.FloodPeer, was *floodList, bad map[entryKey]error) {
	err := t.putFlood(vni, at, list)
	if err == nil {
		return
	}
	if errors.Is(err, vtep.ErrNotOpen) || errors.Is(err, net.ErrClosed) {
		for _, x := range list {
			bad[keyOfEntry(x)] = err
		}
		return
	}
	var good []vtep.FloodPeer
	if was != nil {
		good = was.list
	}
	isGood := func(x vtep.FloodPeer) bool { return slices.Contains(good, x) }
	both := slices.DeleteFunc(slices.Clone(list), func(x vtep.FloodPeer) bool { return !isGood(x) })
	rest := slices.DeleteFunc(slices.Clone(list), isGood)
	if len(rest) == 0 {
		both, rest = nil, list
	}
	t.fit(vni, at, both, rest, err, bad)
}

// fit adds those of more to a list that the VTEP takes. With all of more it does not, for err.
func (t *tx) fit(vni frame.VNI, at floodTarget, list, more []vtep.FloodPeer, err error, bad map[entryKey]error) []vtep.FloodPeer {
	if len(more) == 1 {
		bad[keyOfEntry(more[0])] = err
		return list
	}
	for _, half := range [][]vtep.FloodPeer{more[:len(more)/2], more[len(more)/2:]} {
		all := slices.Concat(list, half)
		slices.SortFunc(all, compareFlood)
		if err := t.putFlood(vni, at, all); err == nil {
			list = all
		} else {
			list = t.fit(vni, at, list, half, err, bad)
		}
	}
	return list
}

func (t *tx) putFlood(vni frame.VNI, at floodTarget, list []vtep.FloodPeer) error {
	if err := at.tunnel.SetFloodPeers(at.vni, list...); err != nil {
		return err
	}
	t.p.stats.Floods++
	t.p.lists[at] = &floodList{vni, list, at.tunnel.FloodPeers(at.vni)}
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
			at.tunnel.SetFloodPeers(at.vni)
			t.p.stats.Floods++
			delete(t.p.lists, at)
		}
		t.p.targets[vni] = slices.DeleteFunc(t.p.targets[vni], func(x floodTarget) bool { return x == at })
	}
	if len(t.p.targets[vni]) == 0 {
		delete(t.p.targets, vni)
	}
}
