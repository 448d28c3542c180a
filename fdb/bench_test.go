package fdb

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/frame"
)

// Every benchmark of look-ups asks for random MACs of the table, in an order made
// beforehand, at Dests of 4 ports and 64 peers whose generations have moved.
type bench struct {
	macs  []frame.MAC
	order []asked
}

type asked struct {
	mac frame.MAC
	d   frame.Dest
}

func newBench(n int) *bench {
	r := rand.New(rand.NewPCG(1, 7))
	b := &bench{macs: make([]frame.MAC, n), order: make([]asked, 1<<20)}
	for i := range b.macs {
		b.macs[i] = frame.MACFrom(r.Uint64()>>16&^(1<<40) | 2<<40)
	}
	for i := range b.order {
		n := r.IntN(n)
		b.order[i] = asked{b.macs[n], destAt(n)}
	}
	return b
}

func destAt(i int) frame.Dest { return frame.NewDest(uint16(1+i&3), uint16(i>>2&63)) }

func (b *bench) table(cfg Config) *Table {
	cfg.Limit = -1
	cfg.Gens = NewGens()
	for i := range 256 {
		cfg.Gens.FlushPeer(destAt(i))
		cfg.Gens.FlushPort(destAt(i).Port())
	}
	t := NewTable(&cfg)
	t.Grow(len(b.macs))
	for i, mac := range b.macs {
		if o := t.Learn(mac, destAt(i), 0); o != New {
			panic(o)
		}
	}
	return t
}

// each runs f with MACs in random order on every core. One goroutine starts
// somewhere else than another.
func (b *bench) each(tb *testing.B, f func(n uint32, q *asked)) {
	var starts atomic.Uint32
	tb.ReportAllocs()
	tb.ResetTimer()
	tb.RunParallel(func(pb *testing.PB) {
		for n := starts.Add(1) * 400009; pb.Next(); n++ {
			f(n, &b.order[n&(1<<20-1)])
		}
	})
}

var sizes = []int{1000, 1000000}

// BenchmarkLookup: readers alone, on every core. "flushed" is a table that was not
// swept since the last flush, so that every look-up compares generations.
func BenchmarkLookup(b *testing.B) {
	for _, n := range sizes {
		w := newBench(n)
		name := func(s string) string { return fmt.Sprintf("%s/%d", s, n) }
		b.Run(name("table"), func(b *testing.B) {
			t := w.table(Config{})
			w.each(b, func(_ uint32, q *asked) { t.Lookup(q.mac) })
		})
		b.Run(name("flushed"), func(b *testing.B) {
			t := w.table(Config{})
			t.gens.FlushPort(9)
			w.each(b, func(_ uint32, q *asked) { t.Lookup(q.mac) })
		})
		b.Run(name("rwmutex"), func(b *testing.B) {
			var mu sync.RWMutex
			m := make(map[frame.MAC]frame.Dest, n)
			for i, mac := range w.macs {
				m[mac] = destAt(i)
			}
			w.each(b, func(_ uint32, q *asked) {
				mu.RLock()
				d := m[q.mac]
				mu.RUnlock()
				_ = d
			})
		})
		b.Run(name("syncmap"), func(b *testing.B) {
			var m sync.Map
			for i, mac := range w.macs {
				m.Store(mac, destAt(i))
			}
			w.each(b, func(_ uint32, q *asked) { m.Load(q.mac) })
		})
	}
}

// BenchmarkMixed: readers on every core, and one operation in a hundred learns: a
// MAC moves.
func BenchmarkMixed(b *testing.B) {
	for _, n := range sizes {
		w := newBench(n)
		name := func(s string) string { return fmt.Sprintf("%s/%d", s, n) }
		mixed := func(b *testing.B, read func(mac frame.MAC), learn func(mac frame.MAC, d frame.Dest)) {
			w.each(b, func(n uint32, q *asked) {
				if n%100 == 0 {
					learn(q.mac, destAt(int(n/100)))
				} else {
					read(q.mac)
				}
			})
		}
		b.Run(name("table"), func(b *testing.B) {
			t := w.table(Config{})
			mixed(b, func(mac frame.MAC) { t.Lookup(mac) }, func(mac frame.MAC, d frame.Dest) { t.Learn(mac, d, 0) })
		})
		b.Run(name("rwmutex"), func(b *testing.B) {
			var mu sync.RWMutex
			m := make(map[frame.MAC]frame.Dest, n)
			for i, mac := range w.macs {
				m[mac] = destAt(i)
			}
			mixed(b, func(mac frame.MAC) {
				mu.RLock()
				d := m[mac]
				mu.RUnlock()
				_ = d
			}, func(mac frame.MAC, d frame.Dest) {
				mu.Lock()
				m[mac] = d
				mu.Unlock()
			})
		})
		b.Run(name("syncmap"), func(b *testing.B) {
			var m sync.Map
			for i, mac := range w.macs {
				m.Store(mac, destAt(i))
			}
			mixed(b, func(mac frame.MAC) { m.Load(mac) }, func(mac frame.MAC, d frame.Dest) { m.Store(mac, d) })
		})
	}
}

// BenchmarkLearn: MACs known where they are, all in one tick, and each in a new one.
func BenchmarkLearn(b *testing.B) {
	for _, n := range sizes {
		w := newBench(n)
		for _, evict := range []bool{false, true} {
			t := w.table(Config{Evict: evict})
			b.Run(fmt.Sprintf("known/evict=%v/%d", evict, n), func(b *testing.B) {
				w.each(b, func(_ uint32, q *asked) { t.Learn(q.mac, q.d, 0) })
			})
			var ticks atomic.Uint32
			b.Run(fmt.Sprintf("tick/evict=%v/%d", evict, n), func(b *testing.B) {
				now := frame.Tick(ticks.Add(1))
				w.each(b, func(_ uint32, q *asked) { t.Learn(q.mac, q.d, now) })
			})
		}
	}
	b.Run("churn/evict", func(b *testing.B) {
		t := NewTable(&Config{Limit: 100000, Evict: true})
		t.Grow(140000)
		i := 0
		b.ReportAllocs()
		for b.Loop() {
			t.Learn(frame.MACFrom(2<<40|uint64(i)), destAt(i), frame.Tick(i>>16))
			if i++; t.MustSweep() {
				t.Sweep(0, 1)
			}
		}
	})
}

// BenchmarkSweep: one reader, alone, beside a sweep as an owner runs it (4096 slots
// each millisecond: a million entries in half a second), and beside one that never
// rests.
func BenchmarkSweep(b *testing.B) {
	for _, n := range sizes {
		w := newBench(n)
		t := w.table(Config{})
		for _, how := range []string{"none", "paced", "always"} {
			b.Run(fmt.Sprintf("%s/%d", how, n), func(b *testing.B) {
				var stop atomic.Bool
				var wg sync.WaitGroup
				if how != "none" {
					wg.Go(func() {
						for !stop.Load() {
							if t.Sweep(1, 4096); how == "paced" {
								time.Sleep(time.Millisecond)
							}
						}
					})
				}
				i := uint32(0)
				for b.Loop() {
					t.Lookup(w.order[i&(1<<20-1)].mac)
					i++
				}
				stop.Store(true)
				wg.Wait()
			})
		}
	}
}

// BenchmarkGrow is how long a table of a million is locked when it doubles.
func BenchmarkGrow(b *testing.B) {
	w := newBench(1000000)
	for _, evict := range []bool{false, true} {
		t := w.table(Config{Evict: evict})
		b.Run(fmt.Sprintf("evict=%v", evict), func(b *testing.B) {
			for b.Loop() {
				t.mu.Lock()
				t.rebuild(1 << 22)
				t.mu.Unlock()
				runtime.GC()
			}
		})
	}
}
