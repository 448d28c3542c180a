package arp

import (
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/shares"
)

// A row is an entry in at most 64 bytes. A snooped row is in the list of its Dest, a port or a
// peer behind it. A Dest with many rows gives way to a Dest with few.
type row struct {
	Entry
	at *shares.Item[int32] // in Table.snooped
}

// enter appends snooped row i to the list of its Dest. t.mu is held.
func (t *Table) enter(i int32) {
	r := t.rows.at(i)
	r.at = t.snooped.Add(r.From, i, 1)
}

// room reports whether a Dest may have another snooped row, and which row it replaces, -1 for
// none. The row is new, or e, which may be another Dest's or not snooped. In a full table the
// Dest with the most rows loses one if it has more than from would. An answer to an open
// question always finds room: from replaces a row of its own if it has its share, else one of
// the Dest with the most. t.mu is held.
func (t *Table) room(from frame.Dest, e *row, asked bool) (victim int32, ok bool) {
	counted := e != nil && e.Origin == Snooped
	if counted && e.From == from {
		return -1, true
	}
	mine, n := t.snooped.Of(from)
	switch {
	case n >= t.cfg.PerDest:
		return mine, asked
	case counted || t.snooped.Size() < t.cfg.Limit:
		return -1, true
	}
	other, most := t.snooped.Most()
	switch {
	case n+1 < most:
		return other, true
	case n > 0:
		return mine, asked
	}
	return other, asked
}
