package fdb

import (
	"testing"

	"github.com/vxswitch/vxswitch/frame"
)

// One place does its worst for ten minutes: a million MACs, which it also moves to and fro
// between two of its own. Others keep what they have, and learn what they have not.
func TestOnePlaceDoesNotStarveOthers(t *testing.T) {
	const others, each = 4, 1000
	for name, bad := range map[string][2]frame.Dest{"a port": {tap1, tap1}, "two peers": {tun5, tun6}} {
		table := NewTable(&Config{Evict: true})
		attack(t, table, bad, func(now frame.Tick) {
			for o := range others {
				for i := range each {
					if (i+int(now))%60 == 0 { // heard once a minute
						table.Learn(macAt(1<<24+o*each+i), frame.NewDest(100+uint16(o), 0), now)
					}
				}
			}
		})
		n := 0
		for o := range others {
			for i := range each {
				if d, ok := table.Lookup(macAt(1<<24 + o*each + i)); ok && d.Port() == 100+uint16(o) {
					n++
				}
			}
		}
		if n < others*each*95/100 {
			t.Errorf("%s: others keep %d of %d", name, n, others*each)
		}
		if s := table.Stats(); s.LearnedEntries > DefaultLimit || s.Learned < 1_000_000 {
			t.Errorf("%s: %+v", name, s)
		}
	}
}

// Likewise one table of those that share a limit: the others have their shares, and what is
// beyond the limit goes with the next sweep.
func TestOneTableDoesNotStarveOthers(t *testing.T) {
	const limit, others = 4000, 3
	gens := NewGens()
	gens.SetLimit(limit)
	bad := NewTable(&Config{Evict: true, Gens: gens})
	var tables []*Table
	for range others {
		tables = append(tables, NewTable(&Config{Evict: true, Gens: gens}))
	}
	share := limit / (others + 1)
	attack(t, bad, [2]frame.Dest{tap1, tap2}, func(now frame.Tick) {
		for o, table := range tables {
			if o > 0 || now >= 300 { // one comes late
				for i := range share {
					if (i+int(now))%60 == 0 {
						table.Learn(macAt(i), tap1, now)
					}
				}
			}
			table.Sweep(now, 4096)
		}
		if n := gens.Learned(); now%60 == 0 && n > limit+others*share/60+others {
			t.Errorf("tick %d: %d learned in all", now, n)
		}
	})
	for o, table := range tables {
		if n := table.Stats().LearnedEntries; n < share*95/100 {
			t.Errorf("table %d keeps %d of %d", o, n, share)
		}
	}
	bad.Close()
	tables[0].Close()
	if n := gens.share(); n != limit/2 {
		t.Errorf("share of two: %d", n)
	}
}

// attack learns a million MACs, moving, in 600 ticks; with every tick others have their turn.
func attack(t *testing.T, table *Table, bad [2]frame.Dest, others func(now frame.Tick)) {
	t.Helper()
	if testing.Short() {
		t.Skip("ten minutes of one table take seconds")
	}
	k := 0
	for now := frame.Tick(0); now < 600; now++ {
		others(now)
		for range 1700 {
			table.Learn(macAt(k), bad[0], now)
			table.Learn(macAt(k-k%3), bad[1], now)
			k++
		}
		for range 10 {
			table.Sweep(now, 4096)
		}
	}
}
