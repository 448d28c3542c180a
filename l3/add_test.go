package l3

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"testing"

	"github.com/gaissmai/bart"

	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// subnet returns network i of 10.0.0.0/8, with 26 bits.
func subnet(i int) netip.Prefix {
	i = 10<<24 + i<<6
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{byte(i >> 24), byte(i >> 16), byte(i >> 8), byte(i)}), 26)
}

// Add and DeleteAll copy the parts of a table that change once, not all of it: beside ten times as many routes they cost the same.
func TestAddCost(t *testing.T) {
	l := newLab(t, nil)
	const batch = 500
	cost := func(beside int) (add, del uint64) {
		v := l.g.VRF(fmt.Sprint(beside))
		for i := 0; i < beside; i += batch {
			check.OK(t, v.Add(blackholes(i, batch)...))
		}
		list := blackholes(beside, batch)
		prefixes := make([]netip.Prefix, batch)
		for i, r := range list {
			prefixes[i] = r.Prefix
		}
		add = check.Allocated(func() { check.OK(t, v.Add(list...)) })
		del = check.Allocated(func() { check.Equal(t, "deleted", v.DeleteAll(prefixes...), batch) })
		return add, del
	}
	add, del := cost(10_000)
	manyAdd, manyDel := cost(100_000)
	t.Logf("%d and %d bytes beside 10,000, %d and %d beside 100,000", add, del, manyAdd, manyDel)
	if manyAdd > 2*add || manyDel > 2*del || del > 2*add {
		t.Error("want the same")
	}
}

func blackholes(first, n int) []Route {
	list := make([]Route, n)
	for i := range list {
		list[i].Prefix = subnet(first + i)
	}
	return list
}

// Who routes by a table while routes are added or deleted sees none of it.
func TestAddLeavesOldTable(t *testing.T) {
	l := newLab(t, nil)
	routesOf := func(x *bart.Table[*route]) map[netip.Prefix]*route {
		all := map[netip.Prefix]*route{}
		for p, r := range x.All() {
			all[p] = r
		}
		return all
	}
	random := func() netip.Prefix {
		if rand.IntN(2) == 0 {
			return netip.PrefixFrom(netip.AddrFrom4([4]byte{172, byte(rand.IntN(3)), byte(rand.IntN(3)), byte(rand.IntN(256))}), 8+rand.IntN(25)).Masked()
		}
		return netip.PrefixFrom(netip.AddrFrom16([16]byte{0x20, 1, byte(rand.IntN(3)), byte(rand.IntN(256)), 15: byte(rand.IntN(3))}), 16+rand.IntN(113)).Masked()
	}
	for range 300 {
		old := l.vrf.routes.Load()
		was := routesOf(old)
		want := map[netip.Prefix]bool{}
		for p := range was {
			want[p] = true
		}
		var list []Route
		for range rand.IntN(40) {
			list = append(list, Route{Prefix: random()})
			want[list[len(list)-1].Prefix] = true
		}
		check.OK(t, l.vrf.Add(list...))
		now := l.vrf.routes.Load()
		if len(list) > 0 && len(want) != now.Size() {
			t.Fatalf("%d routes, want %d", now.Size(), len(want))
		}
		check.True(t, maps.Equal(routesOf(old), was), "the old table has changed")
		for _, r := range list {
			if got, ok := l.vrf.Route(r.Prefix); !ok || got.Prefix != r.Prefix {
				t.Fatalf("%v: %v, %v", r.Prefix, got, ok)
			}
		}
		var gone []netip.Prefix
		for p := range want {
			if rand.IntN(2) == 0 {
				gone = append(gone, p)
				if rand.IntN(20) == 0 {
					gone = append(gone, random(), p)
				}
			}
		}
		before := routesOf(now)
		l.vrf.DeleteAll(gone...)
		check.True(t, maps.Equal(routesOf(now), before), "the table with all has changed")
		for _, p := range gone {
			if r := before[p]; r == nil || r.self == nil {
				delete(before, p)
			}
		}
		check.True(t, maps.Equal(routesOf(l.vrf.routes.Load()), before), "other routes are left")
		check.True(t, maps.Equal(routesOf(old), was), "the old table has changed")
		check.Equal(t, "routes", len(routesOf(l.vrf.routes.Load())), l.vrf.routes.Load().Size())
	}
}
