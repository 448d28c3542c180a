package arp

import (
	"runtime"
	"slices"

	"github.com/vxswitch/vxswitch/frame"
)

// sweepSlice is how many rows Sweep visits under one lock.
const sweepSlice = 1024

// Sweep deletes snooped entries that have been silent for the ageing time, and sends an event
// for each. It calls due, which may be nil, for Reachable entries that have been silent for
// three quarters of that time, without the lock. If due returns true, the neighbour has been
// asked and its entry becomes Probing; else Sweep calls due again the next time.
func (t *Table) Sweep(now frame.Tick, due func(Entry) bool) {
	if t.ageing == never {
		return
	}
	var ask []Entry
	for i := int32(0); ; {
		ask = ask[:0]
		t.mu.Lock()
		end := min(i+sweepSlice, t.rows.n)
		for i < end {
			e := &t.rows.at(i).Entry
			age := e.Age(now)
			if e.Origin == Snooped && age >= t.ageing {
				ev := frame.Event{Kind: frame.EventNeighbourAged, IP: e.IP, MAC: e.MAC, Dest: e.From}
				t.aged.Add(1)
				t.remove(i)
				t.notify(ev)
				end = min(end, t.rows.n)
				continue
			}
			if due != nil && e.State == Reachable && age >= t.ageing-t.ageing/4 {
				ask = append(ask, *e)
			}
			i++
		}
		done := i >= t.rows.n
		t.mu.Unlock()
		t.probing(slices.DeleteFunc(ask, func(e Entry) bool { return !due(e) }))
		if done {
			return
		}
		runtime.Gosched()
	}
}

// probing marks entries as asked, unless a message has come since.
func (t *Table) probing(asked []Entry) {
	if len(asked) == 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, e := range asked {
		if i, ok := t.index[e.IP]; ok && t.rows.at(i).State == Reachable && t.rows.at(i).Seen == e.Seen {
			t.rows.at(i).State = Probing
		}
	}
}
