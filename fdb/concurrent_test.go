package fdb

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/frame"
)

// macAt and its Dests, whose port names the MAC: any word of one MAC read with
// one of another shows.
func macAt(i int) frame.MAC { return frame.MACFrom(0x02_0000_000000 + uint64(i)) }

// station is the history of one MAC with one writer: odd states are entries with
// the state as peer, even ones are absence. A reader notes the last state that was
// complete before it looked and the last that was begun after; what it saw has to
// lie between.
type station struct{ begun, done atomic.Uint32 }

// TestLinearizable lets few slots change hands all the time: 64 MACs, about eight
// of them present at any time, in 16 slots that are also copied to new arrays and
// swept.
func TestLinearizable(t *testing.T) {
	const macs, writers, readers = 64, 2, 3
	table := NewTable(&Config{Evict: false, Ageing: Never})
	var stations [macs]station
	var stop atomic.Bool
	var wg sync.WaitGroup
	run := func(f func(r *rand.Rand)) {
		r := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 3))
		wg.Go(func() {
			for !stop.Load() {
				f(r)
			}
		})
	}
	for w := range writers {
		present := []int{}
		run(func(r *rand.Rand) {
			i := r.IntN(macs/writers)*writers + w
			if len(present) >= 4 {
				i = present[r.IntN(len(present))]
			}
			s, mac := &stations[i], macAt(i)
			next := s.done.Load() + 1
			if next > 65000 {
				stop.Store(true)
				return
			}
			s.begun.Store(next)
			switch d := frame.NewDest(uint16(i+1), uint16(next)); {
			case next&1 == 0:
				if !table.Delete(mac) {
					t.Errorf("%v was not there", mac)
				}
				present = remove(present, i)
			case r.IntN(2) == 0:
				if err := table.Set(mac, d, Static); err != nil {
					t.Error(err)
				}
				present = append(present, i)
			default:
				for table.Learn(mac, d, 0) != New {
					runtime.Gosched()
				}
				present = append(present, i)
			}
			s.done.Store(next)
		})
	}
	reads := atomic.Uint64{}
	for n := range readers {
		run(func(r *rand.Rand) {
			i := r.IntN(macs)
			s, mac := &stations[i], macAt(i)
			lo := s.done.Load()
			var d frame.Dest
			var ok bool
			if n == 0 {
				var e Entry
				e, ok = table.Get(mac)
				d = e.Dest
			} else {
				d, ok = table.Lookup(mac)
			}
			hi := s.begun.Load()
			state := uint32(d.Peer())
			switch {
			case ok && (d.Port() != uint16(i+1) || state < lo || state > hi):
				t.Errorf("%v is at %v; its port is %d, its states %d to %d", mac, d, i+1, lo, hi)
				stop.Store(true)
			case !ok && lo == hi && lo&1 == 1:
				t.Errorf("%v is nowhere; its state is %d", mac, lo)
				stop.Store(true)
			}
			reads.Add(1)
		})
	}
	run(func(r *rand.Rand) {
		table.Sweep(0, 64)
		if r.IntN(50) == 0 {
			table.mu.Lock()
			table.rebuild(16 << r.IntN(2))
			table.mu.Unlock()
		}
		for e := range table.All() {
			if e.MAC != macAt(int(e.Dest.Port())-1) {
				t.Errorf("All has %v", e)
			}
		}
		runtime.Gosched()
	})
	time.Sleep(patience())
	stop.Store(true)
	wg.Wait()
	if err := table.check(false); err != nil {
		t.Error(err)
	}
	t.Logf("%d reads", reads.Load())
}

func remove(list []int, x int) []int {
	for i := range list {
		if list[i] == x {
			return append(list[:i], list[i+1:]...)
		}
	}
	return list
}

func patience() time.Duration {
	if testing.Short() {
		return 200 * time.Millisecond
	}
	return time.Second
}

// TestEverythingAtOnce does everything from everywhere, in tables that refuse and
// in ones that evict, and looks inside afterwards. Readers must not see a Dest of
// another MAC.
func TestEverythingAtOnce(t *testing.T) {
	for _, evict := range []bool{false, true} {
		gens := NewGens()
		gens.SetLimit(250)
		var now atomic.Uint32
		events := 0 // guarded by the table's lock
		table := NewTable(&Config{Gens: gens, Evict: evict, Limit: 200, PerDest: 8, Ageing: 3, Freeze: 100,
			Notify: func(frame.Event) { events++ }})
		const macs = 300
		var stop atomic.Bool
		var wg sync.WaitGroup
		for w := range 4 {
			wg.Go(func() {
				r := rand.New(rand.NewPCG(uint64(w), 4))
				for !stop.Load() {
					i := r.IntN(macs)
					mac, d, tick := macAt(i), frame.NewDest(uint16(i/16+1), uint16(r.IntN(3))), frame.Tick(now.Load())
					switch op := r.IntN(1000); {
					case op < 600:
						table.Learn(mac, d, tick)
					case op < 900:
						if at, ok := table.Lookup(mac); ok && at.Port() != d.Port() {
							t.Errorf("%v at %v", mac, at)
						}
					case op < 920:
						table.Set(mac, d, Flags(r.IntN(32))&^Filter)
					case op < 960:
						table.Delete(mac)
					case op < 970:
						gens.FlushPort(d.Port())
					case op < 975:
						gens.FlushPeer(d)
					case op < 977:
						gens.KillPort(d.Port())
					case op < 979:
						gens.KillPeer(d)
					case op < 980:
						table.Flush()
					case op < 984:
						table.SetLimit(150 + r.IntN(100))
					case op < 988:
						table.SetPerDest(d.Port(), r.IntN(10)-1)
					case op < 990:
						now.Add(1)
					case op < 991:
						table.Len()
					case op < 992:
						for e := range table.All() {
							if want := uint16((int(e.MAC.Uint64()&0xffff))/16 + 1); e.Dest.Port() != want {
								t.Errorf("All has %+v, want port %d", e, want)
							}
						}
					default:
						table.Sweep(tick, 100)
					}
				}
			})
		}
		time.Sleep(patience() / 2)
		stop.Store(true)
		wg.Wait()
		for r := table.Rounds(); table.Rounds() < r+2; {
			table.Sweep(frame.Tick(now.Load()), 4096)
		}
		if err := table.check(false); err != nil {
			t.Errorf("evict %v: %v", evict, err)
		}
		if s := table.Stats(); s.LearnedEntries != gens.Learned() {
			t.Errorf("evict %v: %d learned here, %d in all", evict, s.LearnedEntries, gens.Learned())
		}
	}
}

// TestRefreshIsNotLost: whenever Learn says Known at a tick, Sweep at that tick
// does not age the entry, however close they come.
func TestRefreshIsNotLost(t *testing.T) {
	table := NewTable(&Config{Ageing: 1})
	mac, d := macAt(1), frame.NewDest(1, 0)
	for tick := range frame.Tick(20000) {
		table.Learn(mac, d, tick*2)
		var wg sync.WaitGroup
		var o Outcome
		wg.Go(func() { o = table.Learn(mac, d, tick*2+1) })
		for range 2 {
			table.Sweep(tick*2+1, 64)
		}
		wg.Wait()
		if _, ok := table.Lookup(mac); !ok && o == Known {
			t.Fatalf("tick %d: %v, and gone", tick, o)
		}
	}
}
