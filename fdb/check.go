package fdb

import "github.com/vxswitch/vxswitch/frame"

// Check returns the outcome that [Table.Learn] would have, without changing anything: Known, Kept, Refused, Frozen,
// Filtered or Own if an entry decides, New if there is none, and Moved if the entry would move. It is wait-free.
func (t *Table) Check(mac frame.MAC, d frame.Dest) Outcome {
	if mac.IsGroup() || mac.IsZero() {
		return Invalid
	}
	a := t.arr.Load()
	if i, v, ok := a.find(mac.Uint64()); ok && t.live(v) {
		return t.claim(v, a.meta[i].Load(), d)
	}
	return New
}

// Pinned reports whether a MAC has a static or control entry at d, or at what leads there. It is wait-free.
func (t *Table) Pinned(mac frame.MAC, d frame.Dest) bool {
	_, v, ok := t.arr.Load().find(mac.Uint64())
	return ok && t.live(v) && classOf(v) == pinned && (destOf(v) == d || t.leads(destOf(v), d))
}
