package fdb

// DeletePort removes every entry, of any kind, that names a port or a peer behind
// it, without events: the port has left the VSI but not the switch, so its
// generation lives on. It walks the table with the lock held, while look-ups go on.
// The caller has made sure that nobody learns at the port any more.
func (t *Table) DeletePort(port uint16) {
	t.deletePort(port, func(uint64) bool { return true })
}

// FlushPort removes what was learned at a port or a peer behind it, as DeletePort does.
func (t *Table) FlushPort(port uint16) {
	t.deletePort(port, func(v uint64) bool { return classOf(v) == learned })
}

func (t *Table) deletePort(port uint16, goes func(v uint64) bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	a := t.arr.Load()
	for i := range a.slots {
		if a.mark != nil && destOf(a.mark[i].home).Port() == port {
			a.mark[i] = mark{} // nothing goes back there
		}
		if v := a.slots[i].val.Load(); v != 0 && destOf(v).Port() == port && goes(v) {
			t.remove(a, uint64(i), v)
		}
	}
}
