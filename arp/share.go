package arp

import (
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/shares"
)

// A row is an entry in the list of its place, a port or a peer behind it, if it was snooped; at
// most 64 bytes. Places that hold many give way to those that hold few.
type row struct {
	Entry
	at *shares.Item[int32] // in Table.held
}

// enter puts snooped row i at the end of its place's list. t.mu is held.
func (t *Table) enter(i int32) { t.rows[i].at = t.snooped.Add(t.rows[i].From, i, 1) }

// room reports whether a snooped row may be from a place: a new one, or e, which may have been
// heard elsewhere, or not at all; and which row has to go for it, or -1. A full table makes
// room at the place that holds the most, if that holds more than the newcomer's would. For an
// answer to an open question there is always room: at the newcomer's own place if that has its
// share, else at that of the most. t.mu is held.
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
