package arp

import (
	"runtime"
	"slices"

	"github.com/vxswitch/vxswitch/frame"
)

// sweepSlice is how many rows are looked at under one lock.
const sweepSlice = 1024

// Sweep forgets snooped entries that have not been heard for the ageing time, and tells of
// them. With due it says which of the others have not been heard for three quarters of it, and
// have not been asked since: those that due reports as asked are Probing from then on, the
// others are due the next time too. due may be nil, and is called without the lock.
func (t *Table) Sweep(now frame.Tick, due func(Entry) bool) {
	if t.ageing == never {
		return
	}
	var gone, ask []Entry
	for i := int32(0); ; {
		gone, ask = gone[:0], ask[:0]
		t.mu.Lock()
		end := min(i+sweepSlice, int32(len(t.rows)))
		for i < end {
			e := &t.rows[i].Entry
			age := e.Age(now)
			if e.Origin == Snooped && age >= t.ageing {
				gone = append(gone, *e)
				t.remove(i)
				end = min(end, int32(len(t.rows)))
				continue
			}
			if due != nil && e.State == Reachable && age >= t.ageing-t.ageing/4 {
				ask = append(ask, *e)
			}
			i++
		}
		done := i >= int32(len(t.rows))
		t.mu.Unlock()
		t.aged.Add(uint64(len(gone)))
		for _, e := range gone {
			t.notify(frame.Event{Kind: frame.EventNeighbourAged, IP: e.IP, MAC: e.MAC, Dest: e.From})
		}
		t.probing(slices.DeleteFunc(ask, func(e Entry) bool { return !due(e) }))
		if done {
			return
		}
		runtime.Gosched()
	}
}

// probing marks entries that have been asked, unless they have been heard since.
func (t *Table) probing(asked []Entry) {
	if len(asked) == 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, e := range asked {
		if i, ok := t.index[e.IP]; ok && t.rows[i].State == Reachable && t.rows[i].Seen == e.Seen {
			t.rows[i].State = Probing
		}
	}
}
