package fdb

import "github.com/vxswitch/vxswitch/frame"

// Watch has f called after each change of an entry, with the VNI of its table and its MAC. With the zero MAC it is called after a
// flush or kill, which may have removed any entry, and after a change of one with Dest 0, on which all depends that is routed. It is
// for those who keep answers of look-ups: an answer holds until f is called for its MAC. Refreshes are no changes. f is called with a
// table locked, or by a worker, so it must not block or call a table. A nil f ends the calls.
func (g *Gens) Watch(f func(vni frame.VNI, mac frame.MAC)) {
	if f == nil {
		g.watch.Store(nil)
		return
	}
	g.watch.Store(&f)
}

// changed calls the function of Watch, after the change.
func (g *Gens) changed(vni frame.VNI, mac uint64) {
	if f := g.watch.Load(); f != nil {
		(*f)(vni, frame.MACFrom(mac))
	}
}

// Touch records that a frame from mac came in at d now, if that is where the MAC is; it learns nothing. It is for frames that
// did not pass Learn. It waits for no lock.
func (t *Table) Touch(mac frame.MAC, d frame.Dest, now frame.Tick) bool {
	a := t.arr.Load()
	i, v, ok := a.find(mac.Uint64())
	if !ok || !t.live(v) || destOf(v) != d || !t.refresh(a, i, a.meta[i].Load(), now) {
		return false
	}
	t.reorder(a, i, v)
	return true
}
