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
	"github.com/vxswitch/vxswitch/internal/wire"
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

// moved checks that between two states only the flows of one host have moved, and that they have all done so.
func moved(t *testing.T, before, after []frame.MAC, from frame.MAC) {
	t.Helper()
	for k := range before {
		if (before[k] == from) == (before[k] == after[k]) {
			t.Fatalf("flow %d of %v goes to %v", k, before[k], after[k])
		}
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
	moved(t, before, s.ways(), host(3))
	check.OK(t, s.vrf.Add(Route{behind, s.hops})) // as it was
	moved(t, before, s.ways(), host(3))
	check.Equal(t, "dead", s.vrf.NextHops()[s.hops[2]], true)
	for _, h := range s.hops {
		check.OK(t, s.vrf.SetDown(h, true))
	}
	check.True(t, slices.Equal(before, s.ways()), "flows move though all are dead")
	for _, h := range s.hops {
		check.OK(t, s.vrf.SetDown(h, false))
	}
	check.True(t, slices.Equal(before, s.ways()), "flows do not come back")
	s.events = nil

	// One that no route uses yet.
	other := NextHop{Interface: s.i20, IP: at4(20, 9)}
	check.OK(t, s.vrf.SetDown(other, true))
	check.OK(t, s.vrf.Add(Route{behind, append(s.hops[:4:4], other)}))
	check.True(t, slices.Equal(before, s.ways()), "flows move to a dead next hop")
	check.OK(t, s.vrf.SetDown(other, false))
	s.heard(frame.EventNextHopDown, frame.EventNextHopUp)
	for _, h := range []NextHop{{}, {Interface: s.i20}, {Interface: s.i20, IP: at4(20, 255)}, {Interface: s.i20, IP: at4(20, 1), Peer: 1}} {
		check.ErrorHas(t, s.vrf.SetDown(h, true), "l3: VRF red: next hop")
	}
	check.OK(t, s.i20.Close())
	check.ErrorHas(t, s.vrf.SetDown(other, true), "l3: ", "closed")
	check.Equal(t, "next hops left", len(s.vrf.nextHops.byKey), 0)
}

// No packet waits for a next hop while the route has another: it is asked for its MAC until it answers, and then gets
// its flows back.
func TestSilentNextHop(t *testing.T) {
	s := newStar(t, 3)
	before := s.ways()
	s.i20.neighbours.Delete(at4(20, 2))
	moved(t, before, s.ways(), host(2))
	asked := func() (n int) {
		for _, i := range s.injected {
			if e := wire.Ethernet(i.f.Bytes()); e.Type() == wire.TypeARP {
				check.True(t, slices.Equal(i.f.Bytes()[38:42], at4(20, 2).AsSlice()), "asks for % x", i.f.Bytes()[38:42])
				n++
			}
		}
		s.injected = nil
		return n
	}
	check.Equal(t, "questions at once", asked(), 1)
	s.heard()
	s.knows(s.i20, 2, 0)
	check.True(t, slices.Equal(before, s.ways()), "flows do not come back")
	s.heard()

	// It does not answer.
	s.i20.neighbours.Delete(at4(20, 2))
	s.flow(slices.Index(before, host(2)))
	for range 60 {
		s.now++
		s.i20.Housekeep(s.now)
	}
	s.heard(frame.EventNextHopDown)
	if n := asked(); n < 20 || n > 40 {
		t.Errorf("%d questions in 60 s", n)
	}
	moved(t, before, s.ways(), host(2))
	check.Equal(t, "queued packets", s.i10.Stats().Queued, 0)
	s.knows(s.i20, 2, 0)
	s.heard(frame.EventNextHopUp)
	check.True(t, slices.Equal(before, s.ways()), "flows do not come back")
	asked()
	for range 60 {
		s.now++
		s.i20.Housekeep(s.now)
	}
	check.Equal(t, "questions about one that has answered", asked(), 0)

	// None answers: packets wait as for a single next hop.
	for k := range byte(3) {
		s.i20.neighbours.Delete(at4(20, k+1))
	}
	v, _ := s.flow(1)
	check.Equal(t, "with nobody there", v, frame.Consume)
	s.knows(s.i20, 3, 0)
	for k := range 100 {
		if v, mac := s.flow(k); v != frame.Reenter || mac != host(3) {
			t.Fatalf("flow %d: %v to %v", k, v, mac)
		}
	}
}

// The only next hop of a route is down when it does not answer, and is asked when there are packets for it.
func TestSilentOnlyNextHop(t *testing.T) {
	s := newStar(t, 1)
	s.i20.neighbours.Delete(at4(20, 1))
	s.flow(1)
	for range 10 {
		s.now++
		s.i20.Housekeep(s.now)
	}
	s.heard(frame.EventNextHopDown)
	s.injected = nil
	for range 60 {
		s.now++
		s.i20.Housekeep(s.now)
	}
	check.Equal(t, "questions without packets", len(s.injected), 0)
	s.knows(s.i20, 1, 0)
	s.heard(frame.EventNextHopUp)

	// It is forgotten with its route, and so is that it was down.
	s.i20.neighbours.Delete(at4(20, 1))
	s.flow(1)
	for range 10 {
		s.now++
		s.i20.Housekeep(s.now)
	}
	s.heard(frame.EventNextHopDown)
	s.vrf.Delete(behind)
	s.heard(frame.EventNextHopUp)
}

// An ICMP error moves the flows of a peer to the other peers for a while.
func TestUnreachableNextHop(t *testing.T) {
	l := newLab(t, nil)
	peers := &brokenTunnel{}
	tun := check.Must(l.vrf.NewInterface(&InterfaceConfig{VNI: 60, Port: frame.NewDest(6, 0), Tunnel: peers, Send: l.send(60)}))(t)
	check.OK(t, l.vrf.Add(Route{behind, []NextHop{{Interface: tun, Peer: 1}, {Interface: tun, Peer: 2}, {Interface: tun, Peer: 3}}}))
	ways := func() (all []uint16) {
		for k := range 300 {
			p := between(false, 1, 4)
			p.dst, p.sport = netip.MustParseAddr("172.16.1.1"), uint16(k)
			v, _ := l.in(l.i10, p.bytes(t))
			check.Need(t, v.Action() == frame.ActForward, "%v", v)
			all = append(all, v.Dest().Peer())
		}
		return all
	}
	before := ways()
	peers.failed = 2
	ways() // notices
	for k, peer := range ways() {
		if (before[k] == 2) == (peer == before[k]) {
			t.Fatalf("flow %d of peer %d goes to %d", k, before[k], peer)
		}
	}
	peers.failed = 0
	for range unreachableFor + 1 {
		l.now++
		tun.Housekeep(l.now)
	}
	check.True(t, slices.Equal(before, ways()), "flows do not come back")
}

type brokenTunnel struct{ failed uint16 }

func (b *brokenTunnel) PeerName(peer uint16) string {
	return map[uint16]string{1: "a", 2: "b", 3: "c"}[peer]
}
func (b *brokenTunnel) Failed(peer uint16) bool { return peer == b.failed }

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

// A packet that has waited leaves by the next hop that its flow has then.
func TestWaitedElsewhere(t *testing.T) {
	l := newLab(t, nil)
	i30 := l.iface(l.vrf, 30, false)
	tun := check.Must(l.vrf.NewInterface(&InterfaceConfig{VNI: 60, Port: frame.NewDest(6, 0), Send: l.send(60)}))(t)
	s := between(false, 1, 4)
	s.dst = netip.MustParseAddr("172.16.1.1")
	both := []*Interface{l.i20, i30}
	for k := range uint16(40) {
		check.OK(t, l.vrf.Add(Route{behind, []NextHop{{Interface: l.i20, IP: at4(20, 1)}, {Interface: i30, IP: at4(30, 1)}}}))
		s.sport = k
		check.Equal(t, "verdict", l.verdict(l.i10, s.bytes(t)), frame.Consume)
		l.injected = nil
		l.knows(both[k%2], 1, 0)
		l.knows(both[1-k%2], 1, 0)
		check.True(t, len(l.injected) == 1, "%d packets sent", len(l.injected))
		for _, i := range both {
			i.neighbours.Delete(at4(byte(i.VNI()), 1))
		}
	}
	// Or by a next hop that the route has got meanwhile.
	check.Equal(t, "verdict", l.verdict(l.i10, s.bytes(t)), frame.Consume)
	check.OK(t, l.vrf.Add(Route{behind, []NextHop{{Interface: tun}}}))
	l.injected = nil
	l.knows(l.i20, 1, 0)
	l.knows(i30, 1, 0)
	check.True(t, len(l.injected) == 1 && l.injected[0].to == frame.NewDest(6, 0), "%d packets sent", len(l.injected))
	check.Equal(t, "unresolved", l.i20.Stats().Unresolved+i30.Stats().Unresolved, 0)
}

// A packet whose next hop does not answer leaves by another that has answered meanwhile. If none has, its sender is told.
func TestWaitedInVain(t *testing.T) {
	for k := range 20 {
		for _, answers := range []bool{true, false} {
			s := newStar(t, 2)
			for h := range byte(2) {
				s.i20.neighbours.Delete(at4(20, h+1))
			}
			v, _ := s.flow(k)
			check.Equal(t, "verdict", v, frame.Consume)
			silent := byte(1)
			if w := s.i20.waiting[at4(20, 2)]; w != nil && w.packets.Len() > 0 {
				silent = 2
			}
			s.injected = nil
			if answers {
				s.knows(s.i20, 3-silent, 0)
			}
			for range 10 {
				s.now++
				s.i20.Housekeep(s.now)
			}
			var sent []injected
			for _, x := range s.injected {
				if wire.Ethernet(x.f.Bytes()).Type() != wire.TypeARP {
					sent = append(sent, x)
				}
			}
			check.Need(t, len(sent) == 1, "%d packets sent", len(sent))
			b := sent[0].f.Bytes()
			switch {
			case answers:
				check.True(t, frame.MAC(b) == host(3-silent) && b[14+9] == wire.ProtoUDP && s.i20.Stats().Unresolved == 0, "% x; %+v", b, s.i20.Stats())
			default:
				check.True(t, b[14+9] == wire.ProtoICMP && s.i20.Stats().Unresolved == 1, "% x; %+v", b, s.i20.Stats())
			}
		}
	}
}

// A packet that waits in vain, and has no route any more, is answered so.
func TestWaitedWithoutRoute(t *testing.T) {
	s := newStar(t, 2)
	for h := range byte(2) {
		s.i20.neighbours.Delete(at4(20, h+1))
	}
	v, _ := s.flow(1)
	check.Equal(t, "verdict", v, frame.Consume)
	s.vrf.Delete(behind)
	s.injected = nil
	for range 10 {
		s.now++
		s.i20.Housekeep(s.now)
	}
	answers := 0
	for _, x := range s.injected {
		if b := x.f.Bytes(); wire.Ethernet(b).Type() == wire.TypeIPv4 {
			check.True(t, b[14+9] == wire.ProtoICMP && b[14+20] == 3 && b[14+21] == 0, "% x", b) // network unreachable
			answers++
		}
	}
	check.Equal(t, "answers", answers, 1)
}

// A next hop that did not answer packets to it alone is asked again for the flows of a route with others.
func TestSilentNextHopOfTwoRoutes(t *testing.T) {
	s := newStar(t, 2)
	before := s.ways()
	s.i20.neighbours.Delete(at4(20, 2))
	p := between(false, 1, 4)
	p.dst = at4(20, 2)
	v, _ := s.in(s.i10, p.bytes(t)) // to the router itself
	check.Equal(t, "verdict", v, frame.Consume)
	for range 10 {
		s.now++
		s.i20.Housekeep(s.now)
	}
	s.heard(frame.EventNextHopDown)
	s.injected = nil
	moved(t, before, s.ways(), host(2))
	for range 10 {
		s.now++
		s.i20.Housekeep(s.now)
	}
	check.True(t, len(s.injected) > 0, "it is not asked")
	s.knows(s.i20, 2, 0)
	s.heard(frame.EventNextHopUp)
	check.True(t, slices.Equal(before, s.ways()), "flows do not come back")
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
	for k := range byte(2) {
		s.i20.neighbours.Delete(at4(20, k+1))
	}
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
