package l3

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/wire"
)

// No packet waits for a next hop while the route has another: it is asked for its MAC until it answers, and then gets
// its flows back.
func TestSilentNextHop(t *testing.T) {
	s := newStar(t, 3)
	before := s.ways()
	s.forget(2)
	s.moved(before, 2)
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
	s.moved(before)
	s.heard()

	// It does not answer.
	s.forget(2)
	s.flow(slices.Index(before, host(2)))
	s.pass(60)
	s.heard(frame.EventNextHopDown)
	if n := asked(); n < 20 || n > 40 {
		t.Errorf("%d questions in 60 s", n)
	}
	s.moved(before, 2)
	check.Equal(t, "queued packets", s.i10.Stats().Queued, 0)
	s.knows(s.i20, 2, 0)
	s.heard(frame.EventNextHopUp)
	s.moved(before)
	asked()
	s.pass(60)
	check.Equal(t, "questions about one that has answered", asked(), 0)

	// None answers: packets wait as for a single next hop.
	s.forget(1, 2, 3)
	s.waits(1)
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
	s.forget(1)
	s.flow(1)
	s.pass(10)
	s.heard(frame.EventNextHopDown)
	s.injected = nil
	s.pass(60)
	check.Equal(t, "questions without packets", len(s.injected), 0)
	s.knows(s.i20, 1, 0)
	s.heard(frame.EventNextHopUp)

	// It is forgotten with its route, and so is that it was down.
	s.forget(1)
	s.flow(1)
	s.pass(10)
	s.heard(frame.EventNextHopDown)
	s.vrf.Delete(behind)
	s.heard(frame.EventNextHopUp)
}

// A next hop that did not answer packets to it alone is asked again for the flows of a route with others.
func TestSilentNextHopOfTwoRoutes(t *testing.T) {
	s := newStar(t, 2)
	before := s.ways()
	s.forget(2)
	p := between(false, 1, 4)
	p.dst = at4(20, 2)
	v, _ := s.in(s.i10, p.bytes(t)) // to the router itself
	check.Equal(t, "verdict", v, frame.Consume)
	s.pass(10)
	s.heard(frame.EventNextHopDown)
	s.injected = nil
	s.moved(before, 2)
	s.pass(10)
	check.True(t, len(s.injected) > 0, "it is not asked")
	s.knows(s.i20, 2, 0)
	s.heard(frame.EventNextHopUp)
	s.moved(before)
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
			s.forget(1, 2)
			s.waits(k)
			silent := byte(1)
			if w := s.i20.waiting[at4(20, 2)]; w != nil && w.packets.Len() > 0 {
				silent = 2
			}
			s.injected = nil
			if answers {
				s.knows(s.i20, 3-silent, 0)
			}
			s.pass(10)
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
	s.forget(1, 2)
	s.waits(1)
	s.vrf.Delete(behind)
	s.injected = nil
	s.pass(10)
	answers := 0
	for _, x := range s.injected {
		if b := x.f.Bytes(); wire.Ethernet(b).Type() == wire.TypeIPv4 {
			check.True(t, b[14+9] == wire.ProtoICMP && b[14+20] == 3 && b[14+21] == 0, "% x", b) // network unreachable
			answers++
		}
	}
	check.Equal(t, "answers", answers, 1)
}
