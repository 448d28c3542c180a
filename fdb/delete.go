package fdb

import "github.com/vxswitch/vxswitch/frame"

// Flushed sends the event of a flush, by Flush or by [Gens], of a Dest or with 0 of everything: after the events of all
// entries that it removed.
func (t *Table) Flushed(d frame.Dest) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.notify(frame.EventFlushed, 0, d, 0, false)
}

// DeletePort removes all entries at a port and its peers, without events, after the port
// has left the VSI but not the switch. It holds the lock while it walks the table; look-ups go on.
// The caller has made sure that no frame from the port is learned any more.
func (t *Table) DeletePort(port uint16) {
	t.deletePort(port, func(uint64) bool { return true })
}

// FlushPort is DeletePort for learned entries only.
func (t *Table) FlushPort(port uint16) {
	t.deletePort(port, func(v uint64) bool { return classOf(v) == learned })
}

func (t *Table) deletePort(port uint16, selected func(v uint64) bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	a := t.arr.Load()
	for i := range a.slots {
		if a.mark != nil && destOf(a.mark[i].home).Port() == port {
			a.mark[i] = mark{} // nothing goes back there
		}
		if v := a.slots[i].val.Load(); v != 0 && destOf(v).Port() == port && selected(v) {
			t.remove(a, uint64(i), v)
		}
	}
}
