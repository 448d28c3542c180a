package table

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/evpn/internal/route"
)

func vtep(i int) route.Addr { return route.AddrOf(binary.BigEndian.AppendUint32(nil, uint32(i)+1<<24)) }

// The VTEP with the most gives way, whatever came and went before.
func TestShared(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var s shared[*slot]
	model := map[route.Addr]int{}
	var all []*slot
	drop := func(i int) {
		model[all[i].vtep]--
		s.remove(all[i])
		all[i] = all[len(all)-1]
		all = all[:len(all)-1]
	}
	for range 20_000 {
		if len(all) > 0 && r.IntN(3) == 0 {
			drop(r.IntN(len(all)))
		}
		at, limit, most := vtep(int(r.ExpFloat64()*5)), 100, 0
		for _, n := range model {
			most = max(most, n)
		}
		var gone *slot
		ok := s.room(at, limit, func(x *slot) { gone = x })
		if want := len(all) < limit || model[at]+1 < most; ok != want || (gone != nil) != (ok && len(all) >= limit) || gone != nil && model[gone.vtep] != most {
			t.Fatalf("%v of %d, the most %d: room %v, %+v goes", at, model[at], most, ok, gone)
		}
		if !ok {
			continue
		}
		for i, x := range all {
			if x == gone {
				drop(i)
				break
			}
		}
		x := &slot{}
		*x = s.add(at, x)
		all = append(all, x)
		model[at]++
	}
}

// What a route costs that finds no room does not depend on how many VTEPs there are: a peer makes them up.
func TestSharedOfManyVTEPs(t *testing.T) {
	cost := func(vteps int) time.Duration {
		var s shared[int]
		for i := range vteps {
			s.add(vtep(i), i)
		}
		least := time.Hour
		for range 20 {
			begun := time.Now()
			for i := range 100 {
				if s.room(vtep(i), vteps, func(int) {}) {
					t.Fatal("there is room")
				}
			}
			least = min(least, time.Since(begun))
		}
		return least
	}
	few, many := cost(100), cost(100_000)
	if t.Logf("%v and %v", few, many); many > 50*few {
		t.Errorf("100 routes take %v with 100 VTEPs, and %v with 100,000", few, many)
	}
}

// Routes that were left out come in when there is room, but not at each route that goes: all are imported anew for that.
func TestReliefPause(t *testing.T) {
	l := newLab(t, func(c *Config) { c.MaxVTEPs = 2 })
	from := func(i int) *route.Route {
		return with(multicast(), func(r *route.Route) { r.IP, r.Tunnel, r.NextHop = vtep(i), vtep(i), vtep(i) })
	}
	for i := range 3 {
		l.Learned(0, peer, from(i))
	}
	for i, after := range []time.Duration{0, 4 * time.Second, time.Second} {
		l.now += after
		want := 2
		if i == 0 || i == 1 {
			l.Withdrawn(l.now, peer, &from(i).Key)
		}
		if i == 1 {
			want = 1
		}
		l.flush()
		if got := len(l.list()); got != want {
			t.Errorf("step %d: %d VTEPs, want %d", i, got, want)
		}
		if i == 0 {
			l.Learned(l.now, peer, from(0))
		}
	}
}
