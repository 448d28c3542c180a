package memory

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/underlay"
)

func member(t testing.TB, n *Network, local string, cfg *Config) *Underlay {
	t.Helper()
	m, err := n.Listen(netip.MustParseAddrPort(local), cfg)
	must(t, err)
	t.Cleanup(func() { m.Close() })
	return m
}

// balance checks that every datagram is accounted for.
func balance(t testing.TB, n *Network, sent uint64) {
	t.Helper()
	s := n.Stats()
	if got := s.Delivered + s.Lost + s.Cut + s.NoListener + s.Overflow + s.TooBig + s.TooLong + uint64(s.InFlight); got != sent+s.Duplicated {
		t.Errorf("%d datagrams and %d copies went in, %d are accounted for: %+v", sent, s.Duplicated, got, s)
	}
}

func TestEndToEnd(t *testing.T) {
	for _, fam := range []struct{ a, b string }{
		{"192.0.2.1:4789", "192.0.2.2:4789"}, {"[2001:db8::1]:4789", "[2001:db8::2]:4789"},
	} {
		n := NewNetwork(nil)
		a, b := member(t, n, fam.a, nil), member(t, n, fam.b, nil)
		ea, eb := endpoint(t, a.LocalAddr()), endpoint(t, b.LocalAddr())
		send(t, a,
			frame.Datagram{Parts: [][]byte{[]byte("he"), nil, []byte("llo")}, To: []frame.Endpoint{eb, eb}, Flow: 0xffff, TOS: 0xb9, TTL: 7},
			frame.Datagram{To: []frame.Endpoint{eb}},
			frame.Datagram{Parts: [][]byte{[]byte("abc"), []byte("de")}, Seg: 2, To: []frame.Endpoint{eb}, Flow: 1})
		rs := receive(t, b, 6)
		var s []string
		for _, r := range rs {
			s = append(s, r.Payload)
		}
		if !slices.Equal(s, []string{"hello", "hello", "", "ab", "cd", "e"}) {
			t.Errorf("%q", s)
		}
		want := frame.Outer{Src: ea.WithPort(rs[0].Outer.Src.Port), Dst: eb, If: 1, TOS: 0xb9, TTL: 7}
		if rs[0].Outer != want || rs[2].Outer.TTL != 64 {
			t.Errorf("%+v, want %+v", rs[0].Outer, want)
		}
		if p, q := rs[0].Outer.Src.Port, rs[2].Outer.Src.Port; p <= q || q < 49152 || rs[3].Outer.Src.Port != q {
			t.Errorf("source ports %d, %d", p, q)
		}
		if st := a.Stats(); st.TxDatagrams != 6 || b.Stats().RxDatagrams != 6 {
			t.Errorf("stats %+v", st)
		}
		balance(t, n, 6)
	}
}

func TestMTU(t *testing.T) {
	n := NewNetwork(&NetworkConfig{MTU: 1000})
	a, b, c := member(t, n, "192.0.2.1:1", nil), member(t, n, "192.0.2.2:1", nil), member(t, n, "192.0.2.3:1", nil)
	n.SetLink(a.LocalAddr().Addr(), c.LocalAddr().Addr(), Link{MTU: 600})
	eb, ec := endpoint(t, b.LocalAddr()), endpoint(t, c.LocalAddr())
	other := endpoint(t, netip.MustParseAddrPort("[2001:db8::1]:1"))
	ds := []frame.Datagram{
		to(strings.Repeat("x", 972), 0, eb), to(strings.Repeat("x", 973), 0, eb),
		to(strings.Repeat("x", 573), 0, eb, ec, other),
		{Parts: [][]byte{make([]byte, 2000)}, To: []frame.Endpoint{eb}}, // without DF: as fragments
		{Parts: [][]byte{make([]byte, 1800)}, Seg: 900, DF: true, To: []frame.Endpoint{eb, ec}},
	}
	send(t, a, ds...)
	for i, want := range []struct {
		lost uint16
		why  frame.Reason
	}{{0, 0}, {1, frame.TooBig}, {2, frame.Unreachable}, {0, 0}, {1, frame.TooBig}} {
		if ds[i].Lost != want.lost || ds[i].Drop != want.why {
			t.Errorf("%d: lost %d, %v", i, ds[i].Lost, ds[i].Drop)
		}
	}
	receive(t, b, 5)
	quiet(t, c)
	balance(t, n, 9)
	if s := a.Stats(); s.TxLost[frame.TooBig] != 4 || s.TxLost[frame.Unreachable] != 1 || a.MTU() != 1000 {
		t.Errorf("%+v", s)
	}
}

func TestOverflowAndNobody(t *testing.T) {
	n := NewNetwork(nil)
	a, b := member(t, n, "192.0.2.1:1", nil), member(t, n, "192.0.2.2:1", &Config{Inbox: 3})
	eb := endpoint(t, b.LocalAddr())
	for range 5 {
		ds := []frame.Datagram{to("x", 0, eb, eb.WithPort(2))}
		send(t, a, ds...)
		if ds[0].Lost != 0 {
			t.Error("the sender was told")
		}
	}
	receive(t, b, 3)
	if s := n.Stats(); s.Delivered != 3 || s.Overflow != 2 || s.NoListener != 5 || b.Stats().RxOverflow != 2 {
		t.Errorf("%+v", s)
	}
	balance(t, n, 10)
}

// run sends datagrams one after the other through a link and returns what arrives.
func run(t *testing.T, l Link, seed uint64, count int) ([]string, NetworkStats) {
	var s []string
	var st NetworkStats
	synctest.Test(t, func(t *testing.T) {
		n := NewNetwork(&NetworkConfig{Link: l, Seed: seed})
		a, b := member(t, n, "192.0.2.1:1", nil), member(t, n, "192.0.2.2:1", &Config{Inbox: 10000})
		for i := range count {
			send(t, a, to(fmt.Sprint(i), 0, endpoint(t, b.LocalAddr())))
			if i%50 == 0 {
				time.Sleep(time.Millisecond)
			}
		}
		time.Sleep(l.Delay + l.Jitter + holdTime + time.Second)
		st = n.Stats()
		balance(t, n, uint64(count))
		for _, r := range receive(t, b, int(st.Delivered)) {
			s = append(s, r.Payload)
		}
		a.Close()
		b.Close()
	})
	return s, st
}

func TestChances(t *testing.T) {
	const count = 2000
	near := func(v uint64, p float64) bool { return float64(v) > count*p*0.8 && float64(v) < count*p*1.2 }
	for name, l := range map[string]Link{
		"loss": {Loss: 0.3}, "duplicate": {Duplicate: 0.3}, "reorder": {Reorder: 0.3},
		"all": {Loss: 0.3, Duplicate: 0.3, Reorder: 0.3, Delay: time.Second, Jitter: time.Second},
	} {
		s1, st := run(t, l, 1, count)
		s2, _ := run(t, l, 1, count)
		s3, _ := run(t, l, 2, count)
		if !slices.Equal(s1, s2) {
			t.Errorf("%s: the same seed gave another result", name)
		}
		if slices.Equal(s1, s3) {
			t.Errorf("%s: another seed gave the same result", name)
		}
		if l.Loss > 0 && !near(st.Lost, l.Loss) || l.Loss == 0 && st.Lost != 0 {
			t.Errorf("%s: %d lost", name, st.Lost)
		}
		if l.Duplicate > 0 && st.Duplicated < 300 {
			t.Errorf("%s: %d duplicated", name, st.Duplicated)
		}
		if l.Reorder > 0 && st.Reordered < 300 {
			t.Errorf("%s: %d reordered", name, st.Reordered)
		}
	}
	if s, st := run(t, Link{Loss: 1}, 0, 10); len(s) != 0 || st.Lost != 10 {
		t.Errorf("loss 1: %+v", st)
	}
}

// A datagram that nothing overtakes arrives all the same.
func TestHeldBack(t *testing.T) {
	if s, _ := run(t, Link{Reorder: 1}, 0, 3); !slices.Equal(s, []string{"1", "0", "2"}) {
		t.Errorf("%v", s)
	}
}

func TestDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := NewNetwork(&NetworkConfig{Link: Link{Delay: 100 * time.Millisecond}})
		a, b := member(t, n, "192.0.2.1:1", nil), member(t, n, "192.0.2.2:1", nil)
		eb := endpoint(t, b.LocalAddr())
		start := time.Now()
		for i := range 100 {
			send(t, a, to(fmt.Sprint(i), 0, eb))
		}
		n.SetDefault(Link{}) // overtakes
		send(t, a, to("now", 0, eb))
		if r := receive(t, b, 1)[0]; r.Payload != "now" || time.Since(start) != 0 {
			t.Errorf("%q after %v", r.Payload, time.Since(start))
		}
		for i, r := range receive(t, b, 100) {
			if r.Payload != fmt.Sprint(i) {
				t.Fatalf("%q is number %d", r.Payload, i)
			}
		}
		if d := time.Since(start); d != 100*time.Millisecond {
			t.Errorf("took %v", d)
		}
		// The last to leave switches off the light.
		n.SetDefault(Link{Delay: time.Hour})
		send(t, a, to("x", 0, eb))
		b.Close()
		if s := n.Stats(); s.InFlight != 1 {
			t.Errorf("%+v", s)
		}
		a.Close()
		if s := n.Stats(); s.InFlight != 0 || s.NoListener != 1 {
			t.Errorf("%+v", s)
		}
		balance(t, n, 102)
	})
}

func TestPartition(t *testing.T) {
	n := NewNetwork(nil)
	a, b := member(t, n, "192.0.2.1:1", nil), member(t, n, "192.0.2.2:1", nil)
	c := member(t, n, "192.0.2.3:1", nil)
	ea, eb, ec := endpoint(t, a.LocalAddr()), endpoint(t, b.LocalAddr()), endpoint(t, c.LocalAddr())
	n.Partition(a.LocalAddr().Addr(), b.LocalAddr().Addr())
	send(t, a, to("x", 0, eb, ec))
	send(t, b, to("y", 0, ea, ec))
	receive(t, c, 2)
	quiet(t, a)
	quiet(t, b)
	n.Heal(a.LocalAddr().Addr(), b.LocalAddr().Addr())
	n.SetLink(a.LocalAddr().Addr(), b.LocalAddr().Addr(), Link{Cut: true}) // one way
	send(t, a, to("x", 0, eb))
	send(t, b, to("y", 0, ea))
	receive(t, a, 1)
	quiet(t, b)
	if s := n.Stats(); s.Cut != 3 || s.Delivered != 3 {
		t.Errorf("%+v", s)
	}
}

func TestListenErrors(t *testing.T) {
	n := NewNetwork(nil)
	m := member(t, n, "192.0.2.1:0", nil)
	if m.LocalAddr().Port() == 0 {
		t.Error("no port chosen")
	}
	if o := member(t, n, "192.0.2.1:0", nil); o.LocalAddr() == m.LocalAddr() {
		t.Error("the same port twice")
	}
	if _, err := n.Listen(m.LocalAddr(), nil); !errors.Is(err, syscall.EADDRINUSE) {
		t.Error(err)
	}
	if _, err := n.Listen(netip.MustParseAddrPort("[::]:1"), nil); !errors.Is(err, syscall.EADDRNOTAVAIL) {
		t.Error(err)
	}
	for _, tc := range []struct {
		field string
		cfg   Config
	}{
		{"Inbox", Config{Inbox: -1}}, {"Queues", Config{Queues: -1}},
		{"DefaultTTL", Config{DefaultTTL: 256}}, {"SrcPorts", Config{SrcPorts: underlay.PortRange{Lo: 2, Hi: 1}}},
	} {
		_, err := n.Listen(netip.MustParseAddrPort("192.0.2.9:1"), &tc.cfg)
		if err == nil || !strings.HasPrefix(err.Error(), "memory: Config."+tc.field+": ") {
			t.Errorf("%s: %v", tc.field, err)
		}
	}
}

func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := NewNetwork(nil)
		a := member(t, n, "192.0.2.1:1", &Config{Queues: 2})
		errs := make(chan error, 2)
		for _, r := range a.Readers() {
			go func() { errs <- r.Read(frame.NewBatch(nil)) }()
		}
		synctest.Wait()
		a.Pause()
		for range 2 {
			if err := <-errs; !errors.Is(err, frame.ErrPaused) {
				t.Error(err)
			}
		}
		a.Resume()
		for _, r := range a.Readers() {
			go func() { errs <- r.Read(frame.NewBatch(nil)) }()
		}
		synctest.Wait()
		if n.Close() != nil || a.Close() != nil {
			t.Error("Close")
		}
		for range 2 {
			if err := <-errs; !errors.Is(err, net.ErrClosed) {
				t.Error(err)
			}
		}
		ds := []frame.Datagram{to("x", 0, endpoint(t, a.LocalAddr()))}
		if err := a.Sender(0).Send(ds); !errors.Is(err, net.ErrClosed) || ds[0].Drop != frame.PortDown {
			t.Error(err, ds[0].Drop)
		}
	})
}

// A flow stays on one queue; flows spread.
func TestQueues(t *testing.T) {
	n := NewNetwork(nil)
	a, b := member(t, n, "192.0.2.1:1", nil), member(t, n, "192.0.2.2:1", &Config{Queues: 4})
	for i := range 64 {
		send(t, a, to("x", uint16(i<<12), endpoint(t, b.LocalAddr())))
	}
	queue := make(map[uint16]int)
	used := 0
	for q, r := range b.Readers() {
		if b.boxes[q].Len() == 0 {
			continue
		}
		used++
		batch := frame.NewBatch(nil)
		must(t, r.Read(batch))
		for _, o := range batch.Outer {
			if p, ok := queue[o.Src.Port]; ok && p != q {
				t.Errorf("port %d on queues %d and %d", o.Src.Port, p, q)
			}
			queue[o.Src.Port] = q
		}
	}
	if used < 2 || len(queue) != 16 {
		t.Errorf("%d ports on %d queues", len(queue), used)
	}
}

func TestMTU6(t *testing.T) {
	n := NewNetwork(&NetworkConfig{MTU: 1000})
	a, b := member(t, n, "[2001:db8::1]:1", nil), member(t, n, "[2001:db8::2]:1", nil)
	eb := endpoint(t, b.LocalAddr())
	var got reports
	a.PathMTU(got.PathMTU)
	ds := []frame.Datagram{to(strings.Repeat("x", 952), 0, eb), to(strings.Repeat("x", 953), 0, eb)}
	send(t, a, ds...)
	if a.Is4() || ds[0].Lost != 0 || ds[1].Drop != frame.TooBig || a.Stats().Errors.TooBig != 1 {
		t.Errorf("%v, %v", ds[0].Drop, ds[1].Drop)
	}
	if x := got.Take(); len(x) != 1 || x[0] != (report{To: eb, MTU: 1000}) { // at once, by the Send itself
		t.Errorf("%v", x)
	}
	receive(t, b, 1)
}
