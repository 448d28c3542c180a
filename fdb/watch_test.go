package fdb

import (
	"math/rand/v2"
	"testing"

	"github.com/vxswitch/vxswitch/frame"
)

// TestWatch keeps the answers of look-ups until Watch says that they have changed: they are always right.
func TestWatch(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 1))
		gens := NewGens()
		tables := []*Table{
			NewTable(&Config{VNI: 1, Gens: gens, Limit: 12, Evict: seed%2 == 0, Ageing: 5, Freeze: 4}),
			NewTable(&Config{VNI: 2, Gens: gens, Limit: 30, PerDest: 4, Evict: true, Ageing: 9}),
		}
		type answer struct {
			d  frame.Dest
			ok bool
		}
		type key struct {
			vni frame.VNI
			mac frame.MAC
		}
		kept := map[key]answer{}
		calls := 0
		gens.Watch(func(vni frame.VNI, mac frame.MAC) {
			if calls++; mac.IsZero() {
				clear(kept)
			}
			delete(kept, key{vni, mac})
		})
		dests := []frame.Dest{tap1, tun5, tun6, frame.NewDest(2, 0)}
		now := frame.Tick(0)
		for range 3000 {
			x := tables[r.IntN(2)]
			mac, d := macAt(r.IntN(40)), dests[r.IntN(len(dests))]
			switch n := r.IntN(100); {
			case n < 60:
				x.Learn(mac, d, now)
			case n < 70:
				x.Set(mac, d, []Flags{Static, Control, Control | Sticky, Filter, Control | Override}[r.IntN(5)])
			case n < 78:
				x.Delete(mac)
			case n < 85:
				now++
			case n < 92:
				x.Sweep(now, 4096)
			case n < 93:
				x.Flush()
			case n < 94:
				gens.FlushPeer(d)
			case n < 95:
				gens.KillPort(d.Port())
			case n < 96:
				gens.FlushAll()
			case n < 97:
				x.SetLimit(3 + r.IntN(40))
			case n < 98:
				x.DeletePort(d.Port())
			case n < 99:
				x.FlushPort(d.Port())
			default:
				x.Grow(100)
			}
			for _, x := range tables {
				for i := range 40 {
					k := key{x.cfg.VNI, macAt(i)}
					d, ok := x.Lookup(k.mac)
					if was, there := kept[k]; there && was != (answer{d, ok}) {
						t.Fatalf("seed %d: VNI %v, %v: was %v and is %v, %v", seed, k.vni, k.mac, was, d, ok)
					}
					kept[k] = answer{d, ok}
				}
			}
		}
		gens.Watch(nil)
		was := calls
		tables[0].Flush()
		if calls != was || calls == 0 {
			t.Errorf("%d calls, %d after Watch(nil)", was, calls-was)
		}
	}
}

// TestTouch: an entry is refreshed where it is, nothing else happens.
func TestTouch(t *testing.T) {
	table := NewTable(&Config{Ageing: 10})
	table.Learn(host, tap1, 0)
	if table.Touch(host, tun5, 5) || table.Touch(macAt(7), tap1, 5) || table.Touch(frame.MAC{}, tap1, 5) {
		t.Error("touched what is not there")
	}
	if e, _ := table.Get(host); e.Seen != 0 {
		t.Errorf("seen at %d", e.Seen)
	}
	if !table.Touch(host, tap1, 5) {
		t.Error("not touched")
	}
	if table.Sweep(12, 4096); table.Len() != 1 {
		t.Error("aged although it was touched")
	}
	if table.Sweep(15, 4096); table.Len() != 0 || table.Touch(host, tap1, 15) {
		t.Error("it has not aged")
	}
	if n := testing.AllocsPerRun(100, func() { table.Touch(host, tap1, 16) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
