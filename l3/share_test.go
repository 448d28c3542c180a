package l3

import (
	"runtime"
	"testing"

	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// Prefixes with the same next hops share one route, which is gone with the last of them, also if an interface goes.
func TestSharedRoutes(t *testing.T) {
	l := newLab(t, nil)
	one, two := []NextHop{{Interface: l.i10, IP: at4(10, 1)}}, []NextHop{{Interface: l.i10, IP: at4(10, 1)}, {Interface: l.i20, IP: at4(20, 2), Weight: 3}}
	add := func(first, n int, via []NextHop) {
		t.Helper()
		list := blackholes(first, n)
		for i := range list {
			list[i].Via = via
		}
		check.OK(t, l.vrf.Add(list...))
	}
	want := func(what string, routes, hops int) {
		t.Helper()
		distinct := map[*route]int{}
		for _, r := range l.vrf.routes.Load().All() {
			if r.self == nil {
				distinct[r]++
			}
		}
		check.Equal(t, what, len(distinct), routes)
		check.Equal(t, what+": made", len(l.vrf.made), routes)
		check.Equal(t, what+": next hops", len(l.vrf.NextHops()), hops)
		for r, n := range distinct {
			check.Equal(t, what+": prefixes", r.uses, n)
		}
	}
	add(1000, 100, one)
	want("one next hop", 1, 1)
	add(1200, 100, two)
	add(1150, 10, two)
	want("and two", 2, 2)
	add(1400, 20, nil)
	want("and none", 3, 2)
	add(1000, 100, two)
	want("all with two", 2, 2)
	check.ErrorHas(t, l.vrf.Add(Route{subnet(1500), one}, Route{Prefix: subnet(1501).Masked(), Via: []NextHop{{}}}), "")
	check.OK(t, l.vrf.Check(Route{subnet(1500), one}))
	want("refused", 2, 2)
	check.OK(t, l.i10.Close())
	want("without an interface", 2, 1)
	for i := 1000; i < 1420; i++ {
		l.vrf.Delete(subnet(i))
	}
	want("deleted", 0, 0)
}

// One of 100,000 routes costs its part of the table, and no next hops of its own.
func TestRouteMemory(t *testing.T) {
	l := newLab(t, nil)
	list := blackholes(1000, 100_000)
	for i := range list {
		list[i].Via = []NextHop{{Interface: l.i10, IP: at4(10, 1)}}
	}
	before := heap()
	check.OK(t, l.vrf.Add(list...))
	after := heap()
	each := int64(after-before) / int64(len(list))
	if t.Logf("%d bytes a route", each); each > 64 {
		t.Errorf("%d bytes a route, want at most 64", each)
	}
	runtime.KeepAlive(list)
}

// heap returns the bytes of objects in use.
func heap() uint64 {
	var s runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&s)
	return s.HeapAlloc
}
