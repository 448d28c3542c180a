package l3

import (
	"bytes"
	"maps"
	"math"
	"math/rand/v2"
	"net/netip"
	"slices"
	"sync"
	"testing"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// A star is a lab with a route for 172.16.0.0/12 through hosts 1 to n of segment 20.
type star struct {
	*lab
	hops   []NextHop
	events []frame.Event
}

var behind = netip.MustParsePrefix("172.16.0.0/12")

func newStar(t *testing.T, n byte) *star {
	s := &star{lab: newLab(t, nil)}
	s.i20.cfg.Notify = func(e frame.Event) { s.events = append(s.events, e) }
	for k := range n {
		s.knows(s.i20, k+1, 0)
		s.hops = append(s.hops, NextHop{Interface: s.i20, IP: at4(20, k+1)})
	}
	check.OK(t, s.vrf.Add(Route{behind, s.hops}))
	return s
}

// flow sends a packet of a flow.
func (s *star) flow(k int) (frame.Verdict, frame.MAC) {
	p := between(false, 1, 4)
	p.dst, p.sport = netip.MustParseAddr("172.16.1.1"), uint16(k)
	v, f := s.in(s.i10, p.bytes(s.t))
	if v != frame.Reenter {
		return v, frame.MAC{}
	}
	return v, frame.MAC(f.Bytes())
}

// ways returns where each flow goes.
func (s *star) ways() []frame.MAC {
	s.t.Helper()
	var all []frame.MAC
	for k := range 2000 {
		v, mac := s.flow(k)
		check.Need(s.t, v == frame.Reenter, "flow %d: %v", k, v)
		all = append(all, mac)
	}
	return all
}

// moved checks that of the flows before those of some hosts go elsewhere, and no others.
func (s *star) moved(before []frame.MAC, hosts ...byte) {
	s.t.Helper()
	for k, after := range s.ways() {
		if slices.ContainsFunc(hosts, func(n byte) bool { return before[k] == host(n) }) == (before[k] == after) {
			s.t.Fatalf("flow %d of %v goes to %v", k, before[k], after)
		}
	}
}

// waits sends a packet of a flow, which has to wait.
func (s *star) waits(k int) {
	s.t.Helper()
	v, _ := s.flow(k)
	check.Equal(s.t, "verdict", v, frame.Consume)
}

// pass lets seconds pass.
func (s *star) pass(seconds int) {
	for range seconds {
		s.now++
		s.i20.Housekeep(s.now)
	}
}

// forget has the MACs of hosts be unknown.
func (s *star) forget(hosts ...byte) {
	for _, n := range hosts {
		s.i20.neighbours.Delete(at4(20, n))
	}
}

func (s *star) heard(kinds ...frame.EventKind) {
	s.t.Helper()
	var got []frame.EventKind
	for _, e := range s.events {
		got = append(got, e.Kind)
	}
	check.True(s.t, slices.Equal(got, kinds), "events %v, want %v", got, kinds)
	s.events = nil
}

// Flows of a dead next hop go to the others, and come back to it. With all of them dead, nothing moves.
func TestSetDown(t *testing.T) {
	s := newStar(t, 4)
	before := s.ways()
	check.OK(t, s.vrf.SetDown(s.hops[2], true))
	check.OK(t, s.vrf.SetDown(s.hops[2], true))
	s.heard(frame.EventNextHopDown)
	s.moved(before, 3)
	check.OK(t, s.vrf.Add(Route{behind, s.hops})) // as it was
	s.moved(before, 3)
	check.Equal(t, "dead", s.vrf.NextHops()[s.hops[2]], true)
	for _, h := range s.hops {
		check.OK(t, s.vrf.SetDown(h, true))
	}
	s.moved(before)
	for _, h := range s.hops {
		check.OK(t, s.vrf.SetDown(h, false))
	}
	s.moved(before)
	s.events = nil

	// One that no route uses yet.
	other := NextHop{Interface: s.i20, IP: at4(20, 9)}
	check.OK(t, s.vrf.SetDown(other, true))
	check.OK(t, s.vrf.Add(Route{behind, append(s.hops[:4:4], other)}))
	s.moved(before)
	check.OK(t, s.vrf.SetDown(other, false))
	s.heard(frame.EventNextHopDown, frame.EventNextHopUp)
	for _, h := range []NextHop{{}, {Interface: s.i20}, {Interface: s.i20, IP: at4(20, 255)}, {Interface: s.i20, IP: at4(20, 1), Peer: 1}} {
		check.ErrorHas(t, s.vrf.SetDown(h, true), "l3: VRF red: next hop")
	}
	check.OK(t, s.i20.Close())
	check.ErrorHas(t, s.vrf.SetDown(other, true), "l3: ", "closed")
	check.Equal(t, "next hops left", len(s.vrf.nextHops.byKey), 0)
}

// Flows follow the weights, and a change of one weight moves no flow between others.
func TestWeights(t *testing.T) {
	s := newStar(t, 4)
	set := func(weights ...uint8) []frame.MAC {
		var via []NextHop
		for k, w := range weights {
			h := s.hops[k]
			h.Weight = w
			via = append(via, h)
		}
		check.OK(t, s.vrf.Add(Route{behind, via}))
		return s.ways()
	}
	count := func(ways []frame.MAC, n byte) (c int) {
		for _, m := range ways {
			if m == host(n) {
				c++
			}
		}
		return c
	}
	check.True(t, slices.Equal(set(0, 0, 0, 0), set(1, 1, 1, 1)), "0 is not 1")
	check.True(t, slices.Equal(set(1, 1, 1, 1), set(7, 7, 7, 7)), "equal weights differ")
	one := set(1, 2, 5, 12)
	for k, w := range []int{1, 2, 5, 12} {
		if c := count(one, byte(k+1)); math.Abs(float64(c)-float64(2000*w/20)) > 5*math.Sqrt(float64(2000*w/20)) {
			t.Errorf("weight %d of 20: %d of 2000 flows", w, c)
		}
	}
	for k, to := range set(1, 2, 9, 12) {
		if to != one[k] && to != host(3) {
			t.Fatalf("flow %d moves from %v to %v", k, one[k], to)
		}
	}
	for k, to := range set(1, 2, 5) {
		if (one[k] == host(4)) == (to == one[k]) {
			t.Fatalf("flow %d of %v goes to %v", k, one[k], to)
		}
	}
	r, _ := s.vrf.Route(behind)
	check.Equal(t, "weight", r.Via[2].Weight, uint8(5))
	for range 1_000_000 {
		x := rand.Uint64() >> rand.IntN(64)
		got, want := float64(negLog2(x))/(1<<24), 64-math.Log2(float64(x))
		if x != 0 && math.Abs(got-want) > 1e-5 {
			t.Fatalf("-log2 of %#x: %v, want %v", x, got, want)
		}
	}
	check.True(t, negLog2(0) >= negLog2(1), "0")
}

// After any operations, the VRF has the next hops of its routes and no others.
func TestNextHopsOfRoutes(t *testing.T) {
	l := newLab(t, nil)
	ifaces := []*Interface{l.i10, l.i20}
	for range 3000 {
		hop := func() NextHop {
			i := ifaces[rand.IntN(2)]
			return NextHop{Interface: i, IP: at4(byte(i.VNI()), byte(1+rand.IntN(5))), Weight: uint8(rand.IntN(3))}
		}
		prefix := func() netip.Prefix { return netip.PrefixFrom(netip.AddrFrom4([4]byte{172, byte(rand.IntN(4))}), 16) }
		route := func() Route {
			r := Route{Prefix: prefix()}
			for range rand.IntN(4) {
				r.Via = append(r.Via, hop())
			}
			return r
		}
		switch rand.IntN(8) {
		case 0:
			l.vrf.Delete(prefix())
		case 1:
			many := make([]Route, 300)
			for k := range many {
				many[k] = route()
			}
			check.OK(t, l.vrf.Add(many...))
		case 2:
			check.OK(t, l.vrf.Check(route()))
		case 3:
			check.ErrorHas(t, l.vrf.Add(route(), Route{Prefix: netip.MustParsePrefix("10.0.10.0/24")}), "")
		case 4:
			h := hop()
			check.OK(t, l.vrf.SetDown(h, true))
			if rand.IntN(2) == 0 {
				check.OK(t, l.vrf.SetDown(h, false))
			}
		case 5:
			if rand.IntN(20) == 0 {
				k := rand.IntN(2)
				check.OK(t, ifaces[k].Close())
				ifaces[k] = l.iface(l.vrf, byte(10*(k+1)), false)
			}
		default:
			check.OK(t, l.vrf.Add(route(), route()))
		}
		want := map[NextHop]bool{}
		for _, r := range l.vrf.Routes() {
			for _, h := range r.Via {
				h.Weight = 0
				want[h] = true
			}
		}
		got := l.vrf.NextHops()
		if !maps.EqualFunc(want, got, func(bool, bool) bool { return true }) {
			t.Fatalf("next hops %v, want %v", got, want)
		}
		for k, h := range l.vrf.nextHops.byKey {
			if !want[k] && h.down.Load()&setDown == 0 {
				t.Fatalf("%v is kept without a use", k)
			}
		}
	}
}

// A packet on its way when the interface is closed leaves nothing behind.
func TestNextHopOfClosedInterface(t *testing.T) {
	s := newStar(t, 2)
	r, _ := s.vrf.routes.Load().Get(behind)
	check.OK(t, s.i20.Close())
	s.vrf.nextHops.mark(r.paths[0].hop, unresolved, 0)
	check.Equal(t, "next hops that are ill", len(s.vrf.nextHops.ill), 0)
	check.Equal(t, "count", s.vrf.nextHops.n.Load(), 0)
	s.heard()
}

// A packet is under way to a neighbour without a MAC while its route is deleted, and perhaps added again.
func TestNextHopOfDeletedRoute(t *testing.T) {
	s := newStar(t, 2)
	s.forget(1, 2)
	s.i20.cfg.NoAsk, s.i20.cfg.Notify = true, nil
	p := between(false, 1, 4)
	p.dst = netip.MustParseAddr("172.16.1.1")
	b := p.bytes(t)
	f := frame.Make(bytes.Clone(b))
	x := packet{f: &f, ip: 14, tick: 1}
	r, _ := s.vrf.routes.Load().Lookup(p.dst)
	h := r.pick(x.flow)
	s.vrf.Delete(behind)
	s.i10.send(&x, r, h, p.dst)

	done := make(chan struct{})
	var workers sync.WaitGroup
	for w := range 2 {
		workers.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				f := frame.Make(bytes.Clone(b))
				s.i10.Process(&f, frame.At{Tick: 1, Worker: w})
			}
		})
	}
	for range 20000 {
		check.OK(t, s.vrf.Add(Route{behind, s.hops}))
		s.vrf.Delete(behind)
	}
	close(done)
	workers.Wait()
	check.Equal(t, "next hops left", len(s.vrf.nextHops.byKey), 0)
	check.Equal(t, "those with a reason", len(s.vrf.nextHops.ill), 0)
	check.Equal(t, "their number", s.vrf.nextHops.n.Load(), 0)
}
