package l3

import (
	"net/netip"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/arp"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/icmperr"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/worst"
	"github.com/vxswitch/vxswitch/internal/mix"
	"github.com/vxswitch/vxswitch/internal/wire"
)

// tenMinutes is how long somebody does his worst.
const tenMinutes = 600

// arrives hands an interface a frame that came in at a place.
func (l *lab) arrives(i *Interface, from frame.Dest, b []byte) (frame.Verdict, frame.Frame) {
	f := frame.Make(b)
	f.From, f.VNI, f.Tunnel = from, i.VNI(), from.Peer() != 0
	return i.Process(&f, frame.At{Tick: l.now}), f
}

// Somebody sends to addresses where nobody is, as a scan does. Hosts that are there are reached
// all the same, from other places and from his own.
func TestWorstScan(t *testing.T) {
	const present, slices = 20, 10
	quick := GatewayConfig{Waiting: 128, Queued: 1 << 17} // an eighth of the defaults, and of the rate
	for _, c := range []struct {
		name    string
		cfg     GatewayConfig
		from    frame.Dest // the honest packets; the scan is from 1
		rate    int        // packets of the scan in a second
		payload int
		seconds int
	}{
		{"from another port", quick, frame.NewDest(2, 0), 312, 20, tenMinutes},
		{"at 171 a second", quick, frame.NewDest(2, 0), 171 / 8, 20, tenMinutes},
		{"from a peer", quick, frame.NewDest(9, 4), 312, 20, tenMinutes},
		{"from the same port", quick, frame.NewDest(1, 0), 312, 20, tenMinutes},
		{"long packets", quick, frame.NewDest(2, 0), 312, 1400, tenMinutes},
		{"long packets from the same port", quick, frame.NewDest(1, 0), 312, 1400, tenMinutes},
		{"with the defaults, from the same port", GatewayConfig{}, frame.NewDest(1, 0), 2500, 20, tenMinutes},
		{"with the defaults, faster than may be asked", GatewayConfig{}, frame.NewDest(2, 0), 10_000, 20, tenMinutes},
	} {
		t.Run(c.name, func(t *testing.T) {
			if testing.Short() {
				c.seconds = 60
			}
			run := func(attack bool) (served int) {
				l := newLab(t, &c.cfg)
				s := between(true, 66, 0)
				s.payload = c.payload
				scan := s.bytes(t)
				var honest [present][]byte
				for h := range honest {
					honest[h] = between(true, 1, byte(h)).bytes(t)
				}
				var late []byte // hosts that have been asked, and answer in the next slice
				sent, n := 0, 0
				for l.now = 0; l.now < frame.Tick(c.seconds); l.now++ {
					if l.now%30 == 0 {
						l.i20.neighbours.Flush()
					}
					for slice := range slices {
						answers := late
						late = nil
						for range c.rate / slices {
							if !attack {
								break
							}
							n++
							scan[14+24+13], scan[14+24+14], scan[14+24+15] = byte(1+n>>16), byte(n>>8), byte(n)
							l.arrives(l.i10, frame.NewDest(1, 0), scan)
						}
						for h := slice * present / slices; h < (slice+1)*present/slices; h++ {
							sent++
							if v, _ := l.arrives(l.i10, c.from, honest[h]); v == frame.Reenter {
								served++
							}
						}
						for _, h := range answers {
							l.i20.neighbours.Learn(&arp.Claim{IP: at6(20, h), MAC: host(h), From: frame.NewDest(3, 0)}, l.now)
						}
						for _, x := range l.injected {
							b := x.f.Bytes()
							switch p := wire.IPv6(b[14:]); {
							case x.vni != 20 || len(p) < 64 || p[24] == 0xff && p[40+8+13] != 0:
							case p[24] == 0xff && p[40+8+15] < present: // who is there?
								late = append(late, p[40+8+15])
							case p[24] != 0xff && p[8+15] == 1: // a packet that has waited
								served++
							}
						}
						l.injected = l.injected[:0]
					}
					l.i20.Housekeep(l.now)
				}
				return served
			}
			worst.Kept(t, "next hops being resolved", run(false), run(true))
		})
	}
}

// One who fills what waits for a next hop leaves a place for a packet of another's.
func TestWorstNeighbourQueue(t *testing.T) {
	run := func(attack bool) (served int) {
		l := newLab(t, nil)
		bad, good := between(false, 66, 4).bytes(t), between(false, 1, 4).bytes(t)
		for l.now = range tenMinutes {
			for range 100 {
				if attack {
					l.arrives(l.i10, frame.NewDest(1, 0), bad)
				}
			}
			l.arrives(l.i10, frame.NewDest(2, 0), good)
			l.injected = l.injected[:0]
			l.knows(l.i20, 4, 0)
			for _, x := range l.injected {
				if wire.IPv4(x.f.Bytes()[wire.EthernetLen:]).Src() == at4(10, 1).As4() {
					served++
				}
			}
			l.i20.neighbours.Flush()
			l.i20.Housekeep(l.now)
		}
		return served
	}
	worst.Kept(t, "packets queued for one next hop", run(false), run(true))
}

// Superframes of one port fill all the bytes there are for what waits; another's have room.
func TestWorstQueuedBytes(t *testing.T) {
	const limit, others = DefaultQueued / 4, 25
	run := func(attack bool) (served int) {
		l := newLab(t, &GatewayConfig{Queued: limit})
		big := shape{src: at6(10, 66), dst: at6(20, 4), from: host(66), to: gate(10), ttl: 64, payload: 60_000}.bytes(t)
		for l.now = 0; l.now < tenMinutes; l.now += 5 {
			for n := range 16 {
				if big[14+24+15] = byte(n); attack {
					l.arrives(l.i10, frame.NewDest(1, 0), big)
				}
			}
			for n := range byte(others) {
				l.arrives(l.i10, frame.NewDest(2, 0), between(false, 1, n+1).bytes(t))
			}
			if n := l.g.queued(); n > limit || attack && n < limit-120_000 {
				t.Errorf("%d bytes wait", n)
			}
			l.injected = l.injected[:0]
			for n := range byte(others) {
				l.knows(l.i20, n+1, 0)
			}
			for _, x := range l.injected {
				if b := x.f.Bytes(); b[12] == 8 && b[13] == 0 {
					served++
				}
			}
			l.i20.neighbours.Flush()
			l.i20.Housekeep(l.now)
		}
		check.OK(t, l.i20.Close())
		if l.g.queued() != 0 || l.g.queue.Places() != 0 {
			t.Errorf("%d bytes wait at nobody", l.g.queued())
		}
		return served
	}
	worst.Kept(t, "packets queued for next hops", run(false), run(true))
}

// What comes to an interface that is closed, by a route that was looked up before, leaves no
// bytes behind.
func TestClosedUnderTraffic(t *testing.T) {
	l := newLab(t, nil)
	f := frame.Make(between(false, 1, 4).bytes(t))
	f.From, f.VNI = frame.NewDest(1, 0), 10
	x := packet{f: &f, ip: wire.EthernetLen}
	check.OK(t, l.i20.Close())
	for range 5 {
		if v := l.i20.wait(&x, at4(20, 4), l.i10); v != frame.Drop(frame.Unresolved) {
			t.Errorf("%v", v)
		}
	}
	if n := l.g.queued(); n != 0 || len(l.i20.waiting) != 0 || len(l.injected) != 0 {
		t.Errorf("%d bytes wait for %d next hops, %d questions", n, len(l.i20.waiting), len(l.injected))
	}
}

// One port sends what calls for ICMP errors, from ever other addresses and from those of others:
// hosts elsewhere are told as ever.
func TestWorstErrors(t *testing.T) {
	const hosts, each = 40, 8
	addr := func(n int) []byte { return []byte{10, byte(n >> 16), byte(n >> 8), byte(n)} }
	for name, rate := range map[string]int{"as many as are answered": 400, "more": 4000} {
		t.Run(name, func(t *testing.T) {
			run := func(attack bool) (served int) {
				var l icmperr.Limiter
				l.Init(0, 0)
				l.Seed = mix.Key{0x243f6a8885a308d3, 0x13198a2e03707345, 0xa4093822299f31d1} // none of the 40 share a word
				n := hosts
				for now := range frame.Tick(tenMinutes) {
					for k := 0; attack && k < rate; k++ {
						src := addr(n)
						if n++; k%2 == 0 {
							src = addr(k % hosts)
						}
						l.Allow(src, 10, frame.NewDest(1, 0), now)
					}
					for k := range hosts * each {
						if l.Allow(addr(k%hosts), 10, frame.NewDest(2, 0), now) {
							served++
						}
					}
				}
				return served
			}
			worst.Kept(t, "ICMP errors", run(false), run(true))
		})
	}
}

// The same through each stage that answers: who is there counts, not who he says he is.
func TestErrorsByPlace(t *testing.T) {
	for _, c := range []struct {
		name string
		send func(l *lab, src netip.Addr, from frame.Dest) frame.Verdict
	}{
		{"time exceeded", func(l *lab, src netip.Addr, from frame.Dest) frame.Verdict {
			s := between(false, 1, 4)
			s.src, s.ttl = src, 1
			v, _ := l.arrives(l.i10, from, s.bytes(l.t))
			return v
		}},
		{"routed, and too big", func(l *lab, src netip.Addr, from frame.Dest) frame.Verdict {
			s := between(false, 1, 4)
			s.src, s.payload = src, 1400
			f := frame.Make(s.bytes(l.t)) // as the gateway has routed it
			v := l.i20.PathMTU().Process(&f, frame.At{Tick: l.now, MTU: 1000, From: from})
			return v
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLab(t, &GatewayConfig{Total: 100})
			l.g.limit.Seed = mix.Key{0x243f6a8885a308d3, 0x13198a2e03707345, 0xa4093822299f31d1} // nobody shares the host's word
			l.knows(l.i10, 1, 0)
			l.i10.neighbours.Learn(&arp.Claim{IP: at4(10, 1), MAC: host(1), From: frame.NewDest(2, 0)}, 0)
			for n := range 1000 { // from nobody who is known
				c.send(l, at4(10, byte(100+n%150)), frame.NewDest(1, 0))
			}
			for n := range DefaultPerSender {
				if v := c.send(l, at4(10, 1), frame.NewDest(2, 0)); v != frame.Reply && v != frame.Reenter {
					t.Fatalf("packet %d: %v", n, v)
				}
			}
		})
	}
}

// However many places have had something asked for in this second, a packet to one more next hop
// costs what it costs beside one: those that wait for nothing are not looked through.
func TestWaitCost(t *testing.T) {
	cost := func(places int) time.Duration {
		l := newLab(t, nil)
		l.i20.cfg.Send = func(frame.Dest, *frame.Frame) bool { return true }
		f := frame.Make(shape{src: at4(10, 1), dst: at4(20, 5), from: host(1), to: gate(10), ttl: 64, payload: 10}.bytes(t))
		x := packet{f: &f, ip: 14, tick: 1}
		n := 0
		send := func(packets int) time.Duration {
			begin := time.Now()
			for range packets {
				n++
				f.From = frame.NewDest(3, uint16(1+n%places))
				l.i20.wait(&x, netip.AddrFrom4([4]byte{10, 20 + byte(n>>16), byte(n >> 8), byte(n)}), l.i10)
			}
			return time.Since(begin)
		}
		send(max(places, 1000))
		best := send(200)
		for range 5 {
			best = min(best, send(200))
		}
		if n := l.i20.asking.Size(); n != len(l.i20.waiting) {
			t.Errorf("%d next hops of %d", n, len(l.i20.waiting))
		}
		return best
	}
	if one, many := cost(1), cost(16_000); many > 30*one {
		t.Errorf("%v for 200 packets from one of 16,000 places, %v from one", many, one)
	}
}
