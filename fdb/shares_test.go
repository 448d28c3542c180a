package fdb

import (
	"testing"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/worst"
)

// One place does its worst for ten minutes: half a million MACs, which it also moves to and fro
// between two of its own. Others keep what they have, and learn what they have not.
func TestWorstMACs(t *testing.T) {
	const others, each = 4, 1000
	for name, bad := range map[string][2]frame.Dest{"a port": {tap1, tap1}, "two peers": {tun5, tun6}} {
		t.Run(name, func(t *testing.T) {
			run := func(attack bool) (n int) {
				table := NewTable(&Config{Evict: true})
				tenMinutes(table, bad, attack, func(now frame.Tick) {
					for o := range others {
						for i := range each {
							if (i+int(now))%60 == 0 { // heard once a minute
								table.Learn(macAt(1<<24+o*each+i), frame.NewDest(100+uint16(o), 0), now)
							}
						}
					}
				})
				for o := range others {
					for i := range each {
						if d, ok := table.Lookup(macAt(1<<24 + o*each + i)); ok && d.Port() == 100+uint16(o) {
							n++
						}
					}
				}
				if s := table.Stats(); attack && (s.LearnedEntries > DefaultLimit || s.Learned < 500_000) {
					t.Errorf("%+v", s)
				}
				return n
			}
			worst.Kept(t, "MACs of a network", run(false), run(true))
		})
	}
}

// Likewise one table of those that share a limit: the others have their shares, and what is
// beyond the limit goes with the next sweep.
func TestWorstTable(t *testing.T) {
	const limit, others = 4000, 3
	const share = limit / (others + 1)
	run := func(attack bool) (kept int) {
		gens := NewGens()
		gens.SetLimit(limit)
		bad := NewTable(&Config{Evict: true, Gens: gens})
		var tables []*Table
		for range others {
			tables = append(tables, NewTable(&Config{Evict: true, Gens: gens}))
		}
		tenMinutes(bad, [2]frame.Dest{tap1, tap2}, attack, func(now frame.Tick) {
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
		least := share
		for _, table := range tables {
			least = min(least, table.Stats().LearnedEntries)
		}
		bad.Close()
		tables[0].Close()
		if n := gens.share(); n != limit/2 {
			t.Errorf("share of two: %d", n)
		}
		return least
	}
	worst.Kept(t, "MACs of all networks", run(false), run(true))
}

// tenMinutes learns half a million MACs, moving, in 600 ticks, if there is an attack; with every tick
// others have their turn.
func tenMinutes(table *Table, bad [2]frame.Dest, attack bool, others func(now frame.Tick)) {
	k := 0
	for now := frame.Tick(0); now < 600; now++ {
		others(now)
		for range 850 {
			if attack {
				table.Learn(macAt(k), bad[0], now)
				table.Learn(macAt(k-k%3), bad[1], now)
				k++
			}
		}
		for range 10 {
			table.Sweep(now, 4096)
		}
	}
}
