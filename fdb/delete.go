package fdb

// DeletePort removes every entry, of any kind, that names a port or a peer behind
// it, without events: the port has left the VSI but not the switch, so its
// generation lives on. It walks the table, taking the lock for one entry at a time.
// The caller has made sure that nobody learns at the port any more.
func (t *Table) DeletePort(port uint16) {
	for a := t.arr.Load(); ; {
		for i := range a.slots {
			if v := a.slots[i].val.Load(); v != 0 && destOf(v).Port() == port {
				t.deleteAt(a, uint64(i), port)
			}
		}
		now := t.arr.Load()
		if now == a {
			return
		}
		a = now // rebuilt meanwhile
	}
}

func (t *Table) deleteAt(a *array, i uint64, port uint16) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if v := a.slots[i].val.Load(); t.arr.Load() == a && v != 0 && destOf(v).Port() == port {
		t.remove(a, i, v)
	}
}
