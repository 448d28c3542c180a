package fdb

import (
	"sync"
	"testing"

	"github.com/vxswitch/vxswitch/frame"
)

// "Deleting a port or a peer, or flushing by port, peer, VSI or all, is O(1)."
func TestFlushAndKill(t *testing.T) {
	far := frame.NewDest(65535, 65535)
	tests := []struct {
		name    string
		do      func(*Gens, *Table)
		learned [4]bool // left at tap1, tun5, tun6, far
		static  [4]bool
	}{
		{"all", func(g *Gens, _ *Table) { g.FlushAll() }, [4]bool{}, [4]bool{true, true, true, true}},
		{"table", func(_ *Gens, t *Table) { t.Flush() }, [4]bool{}, [4]bool{true, true, true, true}},
		{"port", func(g *Gens, _ *Table) { g.FlushPort(9) }, [4]bool{true, false, false, true}, [4]bool{true, true, true, true}},
		{"peer", func(g *Gens, _ *Table) { g.FlushPeer(tun5) }, [4]bool{true, false, true, true}, [4]bool{true, true, true, true}},
		{"no peer", func(g *Gens, _ *Table) { g.FlushPeer(tap1); g.KillPeer(tap1) }, [4]bool{true, true, true, true}, [4]bool{true, true, true, true}},
		{"kill port", func(g *Gens, _ *Table) { g.KillPort(9) }, [4]bool{true, false, false, true}, [4]bool{true, false, false, true}},
		{"kill peer", func(g *Gens, _ *Table) { g.KillPeer(tun5) }, [4]bool{true, false, true, true}, [4]bool{true, false, true, true}},
		{"kill far peer", func(g *Gens, _ *Table) { g.KillPeer(far) }, [4]bool{true, true, true, false}, [4]bool{true, true, true, false}},
		{"kill far port", func(g *Gens, _ *Table) { g.KillPort(65535) }, [4]bool{true, true, true, false}, [4]bool{true, true, true, false}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			gens := NewGens()
			quiet := true
			table := NewTable(&Config{Gens: gens, Notify: func(e frame.Event) {
				if !quiet {
					t.Errorf("no late event names a deleted thing: %v", e)
				}
			}})
			want := 0
			for i, d := range []frame.Dest{tap1, tun5, tun6, far} {
				table.Learn(macAt(i), d, 0)
				table.Set(macAt(10+i), d, Static)
			}
			quiet = false
			tt.do(gens, table)
			look := func() {
				t.Helper()
				want = 0
				for i := range 4 {
					_, l := table.Lookup(macAt(i))
					_, s := table.Lookup(macAt(10 + i))
					if l != tt.learned[i] || s != tt.static[i] {
						t.Errorf("%d: learned %v, static %v", i, l, s)
					}
					for _, left := range []bool{l, s} {
						if left {
							want++
						}
					}
				}
			}
			look()
			table.Sweep(1, 4096)
			look()
			if table.Len() != want {
				t.Errorf("%d left, want %d", table.Len(), want)
			}
			if err := table.check(true); err != nil {
				t.Error(err)
			}
		})
	}
}

// A generation has 15 bits. The table asks to be swept long before a dead entry
// could come back, and after that it cannot.
func TestWrap(t *testing.T) {
	gens := NewGens()
	table := NewTable(&Config{Gens: gens})
	table.Learn(host, tap1, 0)
	table.Set(macAt(7), tap1, Static)
	asked := 0
	for range 5 << 15 {
		gens.FlushPort(1)
		if _, ok := table.Lookup(host); ok {
			t.Fatal("back from the dead")
		}
		if table.MustSweep() {
			asked++
			for table.MustSweep() {
				table.Sweep(0, 5)
			}
		}
	}
	if _, ok := table.Lookup(macAt(7)); !ok || asked != 10 {
		t.Errorf("static entry there: %v; swept %d times", ok, asked)
	}
	// What the test stands on: unswept it does come back.
	other := NewTable(&Config{Gens: gens})
	other.Learn(host, tap1, 0)
	for range 1 << 15 {
		other.Flush()
	}
	if _, ok := other.Lookup(host); !ok || !other.MustSweep() {
		t.Error("a generation that does not wrap")
	}
}

// Flushes by many at once are all counted, also while pages are made.
func TestGensConcurrent(t *testing.T) {
	gens := NewGens()
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for i := range 2000 {
				gens.FlushPort(uint16(i * 37))
				gens.KillPeer(frame.NewDest(uint16(i%3), uint16(1+i*31)))
				gens.sum(frame.NewDest(uint16(i%3), uint16(1+i*31)), pinned)
			}
		})
	}
	wg.Wait()
	if n := gens.bumps.Load(); n != 16000 {
		t.Error(n)
	}
	// port 1 was flushed by no i of the first loop but that with i*37 = 1 modulo 2^16
	if n := gens.sum(frame.NewDest(1, 1+31), pinned); n != 4 {
		t.Error(n)
	}
}
