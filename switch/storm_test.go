package vswitch

import (
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// golden is a token bucket as textbooks have it, in tokens times the clock's unit, so that
// nothing is rounded: it fills with time, a frame takes its tokens or is refused. One that
// is more than the bucket passes a full one, and what it owes is paid first.
type golden struct{ rate, tokens, last float64 }

func (g *golden) take(n uint64, now int64) bool {
	size := g.rate * float64(second)
	g.tokens = min(size, g.tokens+g.rate*(float64(now)-g.last))
	g.last = float64(now)
	if need := float64(n) * float64(second); need <= g.tokens || g.tokens == size {
		g.tokens -= need
		return true
	}
	return false
}

// Rates that divide the clock's unit make every number of both exact.
func TestBucketGolden(t *testing.T) {
	for _, rate := range []uint64{1, 2, 5, 10, 100, 1000, 12_500, 1_000_000} {
		r := rand.New(rand.NewPCG(rate, 1))
		b, g := &bucket{rate: rate}, golden{rate: float64(rate), tokens: float64(rate) * float64(second)}
		now, passed := int64(1), 0
		for i := range 20_000 {
			switch r.IntN(4) {
			case 0:
				now += second / int64(rate) * r.Int64N(3)
			case 1:
				if r.IntN(500) == 0 {
					now += second * r.Int64N(4)
				}
			}
			n := 1 + r.Uint64N(3)
			if r.IntN(100) == 0 {
				n = 1 + r.Uint64N(2*rate)
			}
			_, got := b.take(n, now)
			if want := g.take(n, now); got != want {
				t.Fatalf("rate %d, step %d, %d tokens: %v, want %v", rate, i, n, got, want)
			}
			if got {
				passed++
			}
		}
		check.True(t, passed != 0 && passed != 20_000, "rate %d: %d passed", rate, passed)
	}
}

// Whatever the rate, no more than a second of it passes at once, and no more than the rate
// after that, nor much less.
func TestBucketRate(t *testing.T) {
	for _, rate := range []uint64{1, 3, 7, 999, 1_000_003, 9_999_999_967, 1<<64 - 1} {
		b := &bucket{rate: rate}
		n := max(1, rate/1000)
		burst := uint64(0)
		for {
			if _, ok := b.take(n, 1); !ok || burst > 4000*n {
				break
			}
			burst += n
		}
		if n < 1<<26 && (burst > rate+rate/500 || burst < rate-rate/500) {
			t.Errorf("rate %d: a burst of %d", rate, burst)
		}
		got := uint64(0)
		for now := int64(1); now < 1+10*second; now += second / 5000 {
			if _, ok := b.take(n, now); ok {
				got += n
			}
		}
		if n < 1<<26 && (got > 10*rate+rate/50 || got < 10*rate-10*max(rate/100, 1)) {
			t.Errorf("rate %d: %d in ten seconds", rate, got)
		}
	}
}

// A frame of more than a second's worth passes when nothing is owed, and is paid for.
func TestBucketLarge(t *testing.T) {
	b := &bucket{rate: 10}
	take := func(n uint64, at float64, want bool) {
		t.Helper()
		if _, ok := b.take(n, int64(at*float64(second))); ok != want {
			t.Errorf("%d at %v s: %v", n, at, ok)
		}
	}
	take(1, 1, true)
	take(45, 1, false) // not full
	take(45, 2, true)
	take(1, 5.5, false) // 35 of them are owed, for 3.5 s
	take(1, 5.6, true)
	take(1<<40, 100, true) // as if 2^26
	take(1, 1e6, false)
	take(1, 7e6, true)
}

// A changed rate goes on as full as the old one was; debts of more than the bucket go.
func TestMetersKept(t *testing.T) {
	s := Storm{Broadcast: Rate{Packets: 10, Bits: 1000}, UnknownUnicast: Rate{Bits: 5}}
	m := s.meters(nil, 1)
	if m[1].packets != nil || m[1].bits != nil || m[2].packets != nil || m[2].bits == nil || (&Storm{}).meters(m, 1) != nil {
		t.Errorf("%+v", m)
	}
	for range 7 {
		m[0].packets.take(1, 1)
	}
	m[2].bits.take(1000, 1) // owes 995
	s.Broadcast.Packets, s.UnknownUnicast.Bits = 100, 50
	n := s.meters(m, 1)
	check.True(t, n[0].bits == m[0].bits, "a rate that is the same has another bucket")
	left := 0
	for ; ; left++ {
		if _, ok := n[0].packets.take(1, 1); !ok {
			break
		}
	}
	check.True(t, left == 30, "%d packets are left of 100, with 3 of 10 left", left)
	if _, ok := n[2].bits.take(1, 1+second/50); !ok {
		t.Error("a debt at the old rate")
	}
}

// However many take at once, no more passes than the rate allows, and what is given back is
// there again.
func TestBucketShared(t *testing.T) {
	b := &bucket{rate: 1000}
	var got atomic.Int64
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for i := range int64(2000) {
				if cost, ok := b.take(1, 1+i*second/4000); ok {
					if i%3 == 0 {
						b.full.Add(-cost)
					} else {
						got.Add(1)
					}
				}
			}
		})
	}
	wg.Wait()
	if n := got.Load(); n > 1501 || n < 1000 {
		t.Errorf("%d in half a second and a burst", n)
	}
}

func TestCost(t *testing.T) {
	f := frame.Make(make([]byte, 60))
	super := frame.Make(make([]byte, 54+2*1448+10))
	super.GSO = frame.GSO{Type: frame.GSOTCP4, Size: 1448, DataStart: uint16(super.Headroom() + 54)}
	exact := frame.Make(make([]byte, 54+2*1448))
	exact.GSO = super.GSO
	csum := frame.Make(make([]byte, 1000))
	csum.GSO = frame.GSO{Flags: frame.NeedsCsum, CsumStart: 34}
	odd := frame.Make(make([]byte, 60))
	odd.GSO = frame.GSO{Type: frame.GSOTCP4, Size: 1, DataStart: 5000}
	for _, c := range []struct {
		f            *frame.Frame
		frames, bits uint64
	}{
		{&f, 1, 480}, {&super, 3, 8 * (3*54 + 2*1448 + 10)}, {&exact, 2, 8 * (2*54 + 2*1448)}, {&csum, 1, 8000}, {&odd, 1, 480},
	} {
		if n, b := cost(c.f); n != c.frames || b != c.bits {
			t.Errorf("%d bytes, %+v: %d frames, %d bits", c.f.Len(), c.f.GSO, n, b)
		}
	}
}

// floods sends n frames to a MAC in one batch and returns how many came out.
func floods(from, to *stub, dst frame.MAC, n int) int {
	batch := make([][]byte, n)
	for i := range batch {
		batch[i] = eth(dst, mac(1), 0x88b5, make([]byte, 46)...)
	}
	to.sent()
	from.send(batch...)
	return len(to.sent())
}

// Rates of an attachment and of a VSI are both kept, each class has its own, and a frame
// that one refuses takes nothing of the other.
func TestStormBoth(t *testing.T) {
	inLab(t, func(l *lab) {
		a, at := l.port("a", 0)
		b, _ := l.port("b", 0)
		o, _ := l.port("o", 0)
		group := frame.MAC{1, 0, 0x5e, 0, 0, 1}
		rates := AttachConfig{Storm: Storm{Broadcast: Rate{Packets: 10}, Multicast: Rate{Bits: 8 * 60 * 4}}}
		check.OK(t, at.Configure(rates))
		vc := VSIConfig{Storm: Storm{Broadcast: Rate{Packets: 12}, UnknownUnicast: Rate{Packets: 3}}}
		check.OK(t, l.v.Configure(vc))
		want := func(what string, got, want int) {
			t.Helper()
			check.Equal(t, what, got, want)
		}
		want("broadcast of a port", floods(a, o, frame.Broadcast, 30), 10)
		want("multicast in bits", floods(a, o, group, 30), 4)
		want("unknown unicast of the segment", floods(a, o, mac(99), 30), 3)
		want("what is left of the segment", floods(b, o, frame.Broadcast, 30), 2) // 20 refused by the port took none
		want("its other classes", floods(b, o, group, 30), 30)
		check.OK(t, at.Configure(rates))
		check.OK(t, l.v.Configure(vc))
		want("settings that are the same", floods(a, o, frame.Broadcast, 30), 0)
		time.Sleep(500 * time.Millisecond)
		want("half a second later", floods(a, o, frame.Broadcast, 30), 5)
		want("the segment too", floods(b, o, frame.Broadcast, 30), 1) // 12/2, less 5
		time.Sleep(time.Hour)
		want("no more than a second", floods(a, o, frame.Broadcast, 30), 10)
		check.OK(t, at.Configure(AttachConfig{}))
		check.OK(t, l.v.Configure(VSIConfig{}))
		time.Sleep(time.Second)
		want("no limits but the usual ones", floods(a, o, frame.Broadcast, 30), 30)

		st := l.s.Stats()
		check.Equal(t, "drops of a", st.Ports[1].RxDrops[frame.Storm], 20+26+27+30+25+20)
		if n, v := st.Ports[2].RxDrops[frame.Storm], st.VSIs[0].Drops[frame.Storm]; n != 28+29 || v != n+st.Ports[1].RxDrops[frame.Storm] {
			t.Errorf("%d drops of b, %d of the segment", n, v)
		}
		l.wantAccounts()
	})
}

// What a later bucket refuses is given back to those before it: packets to bits, the
// attachment to the VSI.
func TestStormGivesBack(t *testing.T) {
	inLab(t, func(l *lab) {
		a, at := l.port("a", 0)
		b, _ := l.port("b", 0)
		check.OK(t, at.Configure(AttachConfig{Storm: Storm{Broadcast: Rate{Packets: 10, Bits: 480 * 100}}}))
		check.OK(t, l.v.Configure(VSIConfig{Storm: Storm{Broadcast: Rate{Packets: 3}}}))
		check.Equal(t, "of the segment", floods(a, b, frame.Broadcast, 30), 3)
		check.OK(t, l.v.Configure(VSIConfig{}))
		check.Equal(t, "are left of the port's 10", floods(a, b, frame.Broadcast, 30), 7)
		check.OK(t, at.Configure(AttachConfig{Storm: Storm{Multicast: Rate{Packets: 10, Bits: 480 * 4}}}))
		group := frame.MAC{1, 0, 0x5e, 0, 0, 1}
		check.Equal(t, "in bits", floods(a, b, group, 30), 4)
		check.OK(t, at.Configure(AttachConfig{Storm: Storm{Multicast: Rate{Packets: 10}}}))
		check.Equal(t, "packets are left of 10", floods(a, b, group, 30), 6)
	})
}

// What a stage floods is limited, what it answers is not; nor is known unicast, nor what
// the switch itself sends.
func TestStormOnlyFloods(t *testing.T) {
	inLab(t, func(l *lab) {
		time.Sleep(50 * time.Millisecond) // between two turns of the housekeeping, during which nothing is learned
		one := Storm{Broadcast: Rate{Packets: 1}, Multicast: Rate{Packets: 1}, UnknownUnicast: Rate{Packets: 1}}
		a, at := l.port("a", 0)
		b, _ := l.port("b", 0)
		conf := func(stage Stage) {
			check.OK(t, at.Configure(AttachConfig{Storm: one, Slots: Slots{Neighbour: stage}}))
			check.OK(t, l.v.Configure(VSIConfig{Storm: one}))
			time.Sleep(time.Second)
		}
		arps := func() (toB, toA int) {
			batch := [][]byte{}
			for range 5 {
				batch = append(batch, eth(frame.Broadcast, mac(1), typeARP, make([]byte, 46)...))
			}
			a.sent()
			b.sent()
			a.send(batch...)
			return len(b.sent()), len(a.sent())
		}
		for _, v := range []frame.Verdict{frame.FloodAll, frame.FloodLocal} {
			conf(say(v))
			if n, _ := arps(); n != 1 {
				t.Errorf("%v: %d", v, n)
			}
		}
		conf(say(frame.Reply))
		if n, m := arps(); n != 0 || m != 5 {
			t.Errorf("answered: %d and %d", n, m)
		}
		conf(nil)
		b.send(eth(mac(1), mac(2), 0x88b5))
		check.Equal(t, "known unicast", floods(a, b, mac(2), 5), 5)
		for range 5 {
			f := frame.Make(eth(frame.Broadcast, mac(77), 0x88b5))
			l.s.Inject(l.v, &f)
		}
		synctest.Wait()
		check.Equal(t, "injected", len(b.sent()), 5)
	})
}

// Asking a rate allocates nothing, and reads the clock once in a batch.
func TestStormAdmit(t *testing.T) {
	s := check.Must(New(nil))(t)
	defer s.Close()
	all := Storm{Broadcast: Rate{1e6, 1e9}}
	m := all.meters(nil, 1)
	c := &circuit{storm: [2]*meters{m, m}}
	w := &worker{sw: s}
	f := frame.Make(eth(frame.Broadcast, mac(1), 0x88b5))
	check.Equal(t, "allocations", testing.AllocsPerRun(100, func() { w.admit(&f, c, Broadcast) }), 0)
	was := w.now
	time.Sleep(time.Millisecond)
	if w.admit(&f, c, Broadcast); was == 0 || w.now != was {
		t.Errorf("clock %d, then %d", was, w.now)
	}
	w.now = 0
	if w.admit(&f, c, Multicast); w.now != 0 {
		t.Error("the clock was read for a class without a rate")
	}
}

// Without a word about storms a port floods no more than DefaultStorm; tunnels, and who says
// Unlimited, are not bound, nor is unknown unicast where MACs are not learned.
func TestStormDefault(t *testing.T) {
	group := frame.MAC{1, 0, 0x5e, 0, 0, 1}
	d := DefaultStorm()
	inLab(t, func(l *lab) {
		tun := &stubTunnel{stub: newStub("t")}
		check.Must(l.v.Attach(tun, 1))(t)
		o, _ := l.port("o", 0)
		a, at := l.port("a", 0)
		floods := func(dst frame.MAC, n int) (got int) {
			t.Helper()
			b := eth(dst, mac(1), 0x800)
			for ; n > 0; n -= frame.MaxBatch {
				a.send(slices.Repeat([][]byte{b}, min(n, frame.MaxBatch))...)
				got += len(o.sent())
				tun.sent()
			}
			return got
		}
		const more = 60_000
		for i, c := range []struct {
			dst   frame.MAC
			class *Rate
		}{{frame.Broadcast, &d.Broadcast}, {group, &d.Multicast}, {mac(99), &d.UnknownUnicast}} {
			if n := floods(c.dst, more); n != int(c.class.Packets) {
				t.Errorf("class %d: %d, want %d", i, n, c.class.Packets)
			}
		}
		time.Sleep(time.Second)
		check.OK(t, l.v.Configure(VSIConfig{NoLearn: true}))
		check.Equal(t, "without learning", floods(mac(99), more), more)
		check.OK(t, at.Configure(AttachConfig{Storm: Storm{UnknownUnicast: Rate{Packets: 100}}}))
		time.Sleep(time.Second)
		check.Equal(t, "without learning, at a rate of its own", floods(mac(99), more), 100)
		check.OK(t, l.v.Configure(VSIConfig{}))
		none := Rate{Packets: Unlimited}
		check.OK(t, at.Configure(AttachConfig{Storm: Storm{Broadcast: none, Multicast: none, UnknownUnicast: none}}))
		for _, dst := range []frame.MAC{frame.Broadcast, group, mac(99)} {
			if n := floods(dst, more); n != more {
				t.Errorf("unlimited, to %v: %d", dst, n)
			}
		}
		n := 0
		for range more / frame.MaxBatch {
			tun.send(slices.Repeat([][]byte{fromPeer(1, 1, eth(frame.Broadcast, mac(2), 0x800))}, frame.MaxBatch)...)
			n += len(o.sent())
			a.sent()
		}
		check.Equal(t, "from a tunnel", n, more/frame.MaxBatch*frame.MaxBatch)
	})
}
