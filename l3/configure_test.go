package l3

import (
	"net/netip"
	"strings"
	"sync"
	"testing"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// hopOf is the address of one of very many next hops in VNI 20.
func hopOf(k int) netip.Addr {
	return netip.AddrFrom16([16]byte{0xfd, 0, 3: 20, 13: 1, 14: byte(k >> 8), 15: byte(k)})
}

// Each limit of a gateway that runs can be changed, and holds for what comes from then on.
func TestConfigureGateway(t *testing.T) {
	l := newLab(t, &GatewayConfig{Waiting: 8})
	set := func(cfg GatewayConfig) {
		t.Helper()
		check.OK(t, l.g.Configure(cfg))
		if got := l.g.Config(); got != cfg {
			t.Errorf("%+v, want %+v", got, cfg)
		}
	}
	to := func(k int) frame.Verdict {
		s := between(true, 1, 4)
		s.payload, s.dst = 10, hopOf(k)
		v, _ := l.in(l.i10, s.bytes(t))
		return v
	}
	wantAsked := func(what string, from, to int) {
		t.Helper()
		for k := range to + 2 {
			if got := l.i20.asked(hopOf(k)); got != (k >= from && k < to) {
				t.Errorf("%s: next hop %d is asked for: %v", what, k, got)
			}
		}
	}
	for k := range 8 {
		to(k)
	}
	set(GatewayConfig{Waiting: 3})
	wantAsked("lowered", 0, 8)
	to(8)
	wantAsked("one more", 6, 9)
	set(GatewayConfig{Waiting: 5})
	to(9)
	to(10)
	wantAsked("raised", 6, 11)

	l = newLab(t, nil)
	count := func(k, n int) (kept int) {
		for range n {
			if to(k) == frame.Consume {
				kept++
			}
		}
		return kept
	}
	check.Equal(t, "packets wait", count(0, 9), DefaultPerNeighbour)
	set(GatewayConfig{PerNeighbour: 5})
	check.Equal(t, "more packets wait", count(0, 9), 2)
	if set(GatewayConfig{PerNeighbour: 1}); l.g.queued() == 0 || count(0, 9) != 0 || count(1, 9) != 1 {
		t.Error("of one next hop, more than one packet comes to wait")
	}

	l = newLab(t, nil)
	count(0, 3)
	count(1, 3)
	size := l.g.queued() / 6
	set(GatewayConfig{Queued: 2 * size})
	check.True(t, l.g.queued() == 6*size, "what waited has gone")
	if count(2, 3); l.g.queued() != 2*size {
		t.Errorf("%d bytes wait, want %d", l.g.queued(), 2*size)
	}
	if set(GatewayConfig{Queued: size - 1}); count(2, 1) != 0 {
		t.Error("a packet waits that is longer than all may be")
	}

	l = newLab(t, nil)
	errors := func(n int) (sent int) {
		for range n {
			s := between(false, 1, 4)
			s.ttl = 1
			if v, _ := l.in(l.i10, s.bytes(t)); v == frame.Reply {
				sent++
			}
		}
		return sent
	}
	for _, c := range []struct {
		cfg  GatewayConfig
		want int
	}{
		{GatewayConfig{}, DefaultPerSender}, {GatewayConfig{PerSender: 2}, 2}, {GatewayConfig{PerSender: 99, Total: 8}, 4},
		{GatewayConfig{PerSender: 99}, 99}, {GatewayConfig{}, DefaultPerSender},
	} {
		set(c.cfg)
		l.now++
		if n := errors(200); n != c.want {
			t.Errorf("%+v: %d errors, want %d", c.cfg, n, c.want)
		}
	}
	before := l.g.Config()
	for _, bad := range []GatewayConfig{{Waiting: -1}, {Waiting: maxWaiting + 1}, {Total: -1}} {
		if err := l.g.Configure(bad); err == nil || !strings.HasPrefix(err.Error(), "l3: GatewayConfig.") || l.g.Config() != before {
			t.Errorf("%+v: %v", bad, err)
		}
	}
}

// Fragments of packets for the gateway itself have the room that was set last.
func TestConfigureFragments(t *testing.T) {
	l := newLab(t, nil)
	s := between(false, 1, 4)
	s.dst, s.payload = at4(10, 254), 64
	n := uint16(0)
	first := func() frame.Verdict { // of another packet each time
		b := s.bytes(t)
		n++
		b[14+4], b[14+5] = byte(n>>8), byte(n)
		b[14+6] = 0x20 // more fragments
		b[14+10], b[14+11] = 0, 0
		sum := ^sum16(b[14:34])
		b[14+10], b[14+11] = byte(sum>>8), byte(sum)
		v, _ := l.in(l.i10, b)
		return v
	}
	held := func() int { return len(l.g.fragments.of) }
	for range 10 {
		if v := first(); v != frame.Consume {
			t.Fatal(v)
		}
	}
	each := l.g.fragments.shares.Size() / 10
	check.OK(t, l.g.Configure(GatewayConfig{Fragments: 4 * each}))
	if held() != 10 {
		t.Errorf("%d packets, want all that were there", held())
	}
	if first(); held() != 4 {
		t.Errorf("%d packets after one more, want 4", held())
	}
	check.OK(t, l.g.Configure(GatewayConfig{}))
	for range 10 {
		first()
	}
	check.Equal(t, "packets", held(), 14)
}

// Workers need not know that somebody changes limits.
func TestConfigureGatewayUnderTraffic(t *testing.T) {
	l := newLab(t, nil)
	l.i10.cfg.Send = func(frame.Dest, *frame.Frame) bool { return true }
	l.i20.cfg.Send = l.i10.cfg.Send
	var g sync.WaitGroup
	for worker := range 2 {
		scan, short := make([][]byte, 50), between(false, 1, 4)
		short.ttl = 1
		for k := range scan {
			s := between(true, byte(worker+1), 4)
			s.dst = hopOf(worker<<8 + k)
			scan[k] = s.bytes(t)
		}
		scan[7] = short.bytes(t)
		g.Go(func() {
			for k := range 500 {
				f := frame.Make(append([]byte(nil), scan[k%len(scan)]...))
				f.From, f.VNI = frame.NewDest(uint16(worker+1), 0), 10
				l.i10.Process(&f, frame.At{Worker: worker})
			}
		})
	}
	for n := range 200 {
		k := n%10 + 1
		check.OK(t, l.g.Configure(GatewayConfig{PerSender: k, Total: k, PerNeighbour: k, Waiting: k, Queued: 100 * k, Fragments: 100 * k}))
		if c := l.g.Config(); c.Waiting != c.PerNeighbour {
			t.Errorf("torn: %+v", c)
		}
	}
	g.Wait()
	if n := l.i20.Stats().Waiting; n == 0 || n > DefaultWaiting {
		t.Errorf("%d next hops are asked for", n)
	}
}
