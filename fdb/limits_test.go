package fdb

import (
	"testing"

	"github.com/vxswitch/vxswitch/frame"
)

// "Limits: per VSI (default 8192), per port or peer, and in all; only learned
// entries count. At the limit: refuse."
func TestLimitRefuses(t *testing.T) {
	table := NewTable(nil)
	for i := range DefaultLimit + 100 {
		table.Set(macAt(100000+i), tap1, Static)
		want := New
		if i >= DefaultLimit {
			want = Full
		}
		if table.Sweep(0, 1); table.Learn(macAt(i), tap1, 0) != want {
			t.Fatal(i, want)
		}
	}
	table.SetLimit(-1)
	if o := table.Learn(macAt(DefaultLimit), tap1, 0); o != New {
		t.Error(o)
	}
}

// "Or evict fairly: the least recently seen entry of whoever holds the most."
func TestEvictionIsFair(t *testing.T) {
	var events []frame.Event
	table := NewTable(&Config{Limit: 10, Evict: true, Notify: func(e frame.Event) {
		if e.Kind == frame.EventMACEvicted {
			events = append(events, e)
		}
	}})
	for i := range 2 {
		table.Learn(macAt(i), tap1, 0) // quiet hosts
	}
	for i := range 8 {
		table.Learn(macAt(100+i), tap2, frame.Tick(1+i))
	}
	table.Learn(macAt(100), tap2, 20) // the oldest of the largest is heard again
	for i := range 3 {
		if o := table.Learn(macAt(200+i), tun6, 21); o != New {
			t.Fatal(o)
		}
		if len(events) != i+1 || events[i].MAC != macAt(101+i) || events[i].Dest != tap2 {
			t.Fatalf("evicted %v", events)
		}
	}
	for i := range 10000 { // one attacker cannot push out the others
		table.Learn(macAt(1000+i), tun5, 22)
	}
	for i := range 2 {
		if _, ok := table.Lookup(macAt(i)); !ok {
			t.Errorf("quiet host %d was pushed out", i)
		}
	}
	if s := table.Stats(); s.LearnedEntries != 10 || s.Evicted != 10003 {
		t.Errorf("%+v", s)
	}
}

func TestPerDest(t *testing.T) {
	table := NewTable(&Config{PerDest: 2})
	table.SetPerDest(9, 3)
	learn := func(mac int, d frame.Dest, want Outcome) {
		t.Helper()
		if o := table.Learn(macAt(mac), d, 0); o != want {
			t.Errorf("Learn(%d, %v) = %v, want %v", mac, d, o, want)
		}
	}
	for i := range 4 {
		learn(i, tap1, [...]Outcome{New, New, Full, Full}[i])
		learn(10+i, tun5, [...]Outcome{New, New, New, Full}[i])
		learn(20+i, tun6, [...]Outcome{New, New, New, Full}[i]) // each Dest of the port
	}
	learn(10, tap1, Full) // a move needs room as well
	if d, _ := table.Lookup(macAt(10)); d != tun5 {
		t.Error("refused, and moved to", d)
	}
	table.SetPerDest(9, 0)
	learn(13, tun5, New)
	table.SetPerDest(9, -1)
	learn(14, tun5, Full)
}

// "In all": two tables share what one switch may hold, and what a flush freed in
// one is found when that one is swept.
func TestLimitInAll(t *testing.T) {
	gens := NewGens()
	gens.SetLimit(20)
	one, two := NewTable(&Config{Gens: gens}), NewTable(&Config{Gens: gens, Evict: true})
	for i := range 15 {
		one.Learn(macAt(i), tap1, 0)
		two.Set(macAt(1000+i), tap1, Static)
	}
	for i := range 15 {
		if o := two.Learn(macAt(i), tap2, 0); o != New {
			t.Fatal(i, o)
		}
	}
	// Half of the 20 is the second table's, though the first one gives nothing back at once.
	if two.Stats().LearnedEntries != 10 || gens.Learned() != 25 {
		t.Fatalf("%+v, %d in all", two.Stats(), gens.Learned())
	}
	if o := one.Learn(macAt(50), tap1, 0); o != Full {
		t.Fatal(o)
	}
	gens.FlushPort(1)
	if o := two.Learn(macAt(50), tap2, 0); o != New || two.Stats().Evicted != 6 {
		t.Fatal(o, two.Stats().Evicted)
	}
	one.Sweep(0, 4096)
	if gens.Learned() != 10 {
		t.Fatal(gens.Learned())
	}
	two.Flush()
	if two.Len(); gens.Learned() != 0 {
		t.Fatal(gens.Learned())
	}
	two.Close()
	three := NewTable(&Config{Gens: gens, Evict: true})
	gens.SetLimit(1)
	one.Learn(macAt(1), tap1, 0)
	if o := three.Learn(macAt(1), tap1, 0); o != Full {
		t.Error("nothing of its own to evict:", o)
	}
}
