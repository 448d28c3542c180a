package fdb

import (
	"math/rand/v2"
	"runtime"
	"testing"
	"unsafe"

	"github.com/vxswitch/vxswitch/frame"
)

func TestBytesPerEntry(t *testing.T) {
	const slotBytes = unsafe.Sizeof(slot{}) + unsafe.Sizeof(newArray(16, true).meta[0]) + unsafe.Sizeof(link{})
	if slotBytes != 32 {
		t.Errorf("%d bytes a slot", slotBytes)
	}
	if at := float64(slotBytes) / 0.75; at > 48 {
		t.Errorf("%.1f bytes an entry at 75%% load", at)
	}
}

func TestIdleTableIsCheap(t *testing.T) {
	const n = 10000
	tables := make([]*Table, n)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	gens := NewGens()
	for i := range tables {
		tables[i] = NewTable(&Config{Gens: gens})
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if each := (after.HeapAlloc - before.HeapAlloc) / n; each > 2048 {
		t.Errorf("%d bytes for an empty table", each)
	} else {
		t.Logf("%d bytes for an empty table", each)
	}
	runtime.KeepAlive(tables)
}

func TestNoAllocations(t *testing.T) {
	for _, evict := range []bool{false, true} {
		table := NewTable(&Config{Evict: evict})
		for i := range 1000 {
			table.Learn(macAt(i), tun5, 0)
		}
		table.Set(macAt(5000), tap1, Static)
		now := frame.Tick(0)
		for name, f := range map[string]func(){
			"Lookup":            func() { table.Lookup(macAt(17)) },
			"Lookup unknown":    func() { table.Lookup(macAt(7777)) },
			"Learn known":       func() { table.Learn(macAt(17), tun5, 0) },
			"Learn a tick on":   func() { now++; table.Learn(macAt(17), tun5, now) },
			"Learn pinned":      func() { table.Learn(macAt(5000), tap2, 0) },
			"Learn group":       func() { table.Learn(frame.Broadcast, tap2, 0) },
			"Sweep":             func() { table.Sweep(0, 4096) },
			"MustSweep":         func() { table.MustSweep() },
			"Learn moved":       func() { now++; table.Learn(macAt(18), frame.NewDest(9, 5+uint16(now&1)), now) },
			"forget, learn new": func() { table.Delete(macAt(19)); table.Learn(macAt(19), tun5, 0) },
		} {
			if name == "Learn moved" {
				table.Learn(macAt(20), tun6, 0) // so that no holder comes or goes
			}
			if n := testing.AllocsPerRun(200, f); n != 0 {
				t.Errorf("%s, evict %v: %v allocations", name, evict, n)
			}
		}
	}
}

// A user with nothing but Learn and Sweep gets to a quarter of a million entries, no Learn
// copies a large table, and it gives the memory back.
func TestGrows(t *testing.T) {
	n := 1 << 18
	if testing.Short() {
		n = 1 << 16
	}
	table := NewTable(&Config{Limit: n})
	learned, sweeps := 0, 0
	for learned < n {
		switch o := table.Learn(macAt(learned), tun5, 0); o {
		case New:
			learned++
		case Busy:
			before := table.arr.Load()
			if len(before.slots) <= maxDirect || !table.MustSweep() {
				t.Fatalf("Busy with %d slots", len(before.slots))
			}
			table.Sweep(0, 1)
			if sweeps++; table.arr.Load() == before {
				t.Fatal("a sweep did not help")
			}
		default:
			t.Fatal(learned, o)
		}
	}
	if o := table.Learn(macAt(learned), tun5, 0); o != Full {
		t.Error(o)
	}
	for i := range n {
		if d, ok := table.Lookup(macAt(i)); !ok || d != tun5 {
			t.Fatal(i, d, ok)
		}
	}
	if err := table.check(true); err != nil {
		t.Error(err)
	}
	slots := table.Stats().Slots
	t.Logf("%d entries after %d sweeps in %d slots", n, sweeps, slots)
	if sweeps > 8 || slots > 2*sizeFor(n) {
		t.Errorf("%d sweeps, %d slots", sweeps, slots)
	}
	table.Flush()
	for r := table.Rounds(); table.Rounds() < r+20; {
		table.Sweep(0, 4096)
	}
	if got := table.Stats().Slots; got > 2*maxDirect {
		t.Errorf("%d slots for nothing", got)
	}
	table.Grow(100000)
	for r := table.Rounds(); table.Rounds() < r+3; {
		table.Sweep(0, 4096)
	}
	if got := table.Stats().Slots; got != sizeFor(100000) {
		t.Errorf("%d slots after Grow", got)
	}
}

// Set never fails for want of room, and Grow spares it the copying.
func TestSetGrows(t *testing.T) {
	for _, first := range []int{0, 20000} {
		table := NewTable(nil)
		table.Grow(first)
		before := table.arr.Load()
		for i := range 20000 {
			if err := table.Set(macAt(i), tap1, Static); err != nil {
				t.Fatal(err)
			}
		}
		if kept := table.arr.Load() == before; kept != (first > 0) || table.Len() != 20000 {
			t.Errorf("Grow(%d): same array %v, %d entries", first, kept, table.Len())
		}
	}
}

// Entries that come and go leave no trail of dead slots behind.
func TestChurnDoesNotFill(t *testing.T) {
	table := NewTable(&Config{Limit: 1000, Evict: true})
	r := rand.New(rand.NewPCG(1, 5))
	for range 200000 {
		if o := table.Learn(macAt(r.IntN(1<<24)), tun5, 0); o != New && o != Known {
			t.Fatal(o)
		}
	}
	if s := table.Stats(); s.Slots > 4096 || s.LearnedEntries != 1000 {
		t.Errorf("%+v", s)
	}
	if err := table.check(true); err != nil {
		t.Error(err)
	}
}

// Chains stay short for the MACs people have: in rows, in strides, by vendor.
func TestChains(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 6))
	for name, mac := range map[string]func(i int) uint64{
		"row":            func(i int) uint64 { return 0x020000000000 + uint64(i) },
		"stride 256":     func(i int) uint64 { return 0x020000000000 + uint64(i)<<8 },
		"stride 65536":   func(i int) uint64 { return 0x020000000000 + uint64(i)<<16 },
		"top bits":       func(i int) uint64 { return uint64(i+1)<<29 | 1 },
		"two rows":       func(i int) uint64 { return uint64(i&1)<<41 + uint64(i)/2*3 + 1 },
		"random":         func(int) uint64 { return r.Uint64()>>17 | 1 },
		"even and a gap": func(i int) uint64 { return uint64(i)*2 + uint64(i>>10)<<30 + 4 },
	} {
		worst := 0.0
		for range 8 { // seeds
			a := newArray(1<<14, false)
			const n = 3 << 12 // three quarters
			sum, mask := 0, uint64(len(a.slots)-1)
			for i := range n {
				u := mac(i)
				at, _, _ := a.find(u)
				a.slots[at].key.Store(u<<16 | 1)
				a.slots[at].val.Store(1)
				sum += int((at-a.home(u))&mask) + 1
			}
			worst = max(worst, float64(sum)/n)
		}
		t.Logf("%s: %.2f slots a look-up, worst of 8 seeds", name, worst)
		if worst > 4 { // a perfect hash has 2.5
			t.Errorf("%s: %.2f slots a look-up", name, worst)
		}
	}
}
