package vswitch

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// records returns those that wait.
func records(t *testing.T, tr *Trace) (all []TraceRecord) {
	t.Helper()
	synctest.Wait()
	for tr.ring.Len() > 0 {
		r := check.Must(tr.Next(context.Background()))(t)
		all = append(all, r)
	}
	return all
}

func TestTrace(t *testing.T) {
	inLab(t, func(l *lab) {
		a, atA := l.port("a", 0)
		b, atB := l.port("b", 0)
		check.Must(l.v.Attach(newStub("c"), 0))(t)
		trace := func(cfg TraceConfig) *Trace { t.Helper(); return check.Must(l.s.Trace(&cfg))(t) }
		tr := trace(TraceConfig{})
		a.send(eth(frame.Broadcast, mac(1), 0x88b5))
		b.send(eth(mac(1), mac(2), 0x88b6, 1, 2, 3))
		a.send(eth(mac(1), mac(1), 0x88b5))
		a.send([]byte{1, 2, 3})
		want := []TraceRecord{
			{From: atA.Dest(0), Src: mac(1), Dst: frame.Broadcast, Type: 0x88b5, Len: 14, Verdict: frame.FloodAll},
			{From: atB.Dest(0), Src: mac(2), Dst: mac(1), Type: 0x88b6, Len: 17, Verdict: frame.Forward(atA.Dest(0))},
			{From: atA.Dest(0), Src: mac(1), Dst: mac(1), Type: 0x88b5, Len: 14, Verdict: frame.Drop(frame.Reflect)},
			{From: atA.Dest(0), Len: 3, Verdict: frame.Drop(frame.Short)},
		}
		got := records(t, tr)
		check.Need(t, len(got) == len(want), "%v", got)
		for i, r := range got {
			check.True(t, !r.Time.IsZero(), "no time")
			r.Time = want[i].Time
			if want[i].VNI = l.v.VNI(); r != want[i] {
				t.Errorf("got %v, want %v", r, want[i])
			}
		}
		if s := got[2].String(); !strings.Contains(s, "drop reflect") || !strings.Contains(s, "02:00:00:00:00:01 > 02:00:00:00:00:01 type 88b5 len 14") {
			t.Error(s)
		}

		// One trace at a time; each with a filter.
		vni, other := l.v.VNI(), l.v.VNI()+1
		for _, c := range []struct {
			name string
			cfg  TraceConfig
			n    int
		}{
			{"source", TraceConfig{MAC: mac(2)}, 1},
			{"either end", TraceConfig{MAC: mac(1)}, 4},
			{"nobody", TraceConfig{MAC: mac(9)}, 0},
			{"segment", TraceConfig{VNI: &vni}, 4},
			{"another", TraceConfig{VNI: &other}, 0},
			{"port, in or out", TraceConfig{Dest: atB.Dest(0)}, 1},
			{"one in three", TraceConfig{Every: 3}, 2},
		} {
			next := trace(c.cfg)
			check.ErrorIs(t, "the trace before", check.Err(tr.Next(context.Background())), net.ErrClosed)
			tr = next
			for range 3 {
				a.send(eth(frame.Broadcast, mac(1), 0x88b5))
			}
			b.send(eth(mac(1), mac(2), 0x88b6))
			if got := records(t, tr); len(got) != c.n {
				t.Errorf("%s: %d records, want %d: %v", c.name, len(got), c.n, got)
			}
		}
		tr = trace(TraceConfig{Buffer: 2})
		for range 5 {
			a.send(eth(frame.Broadcast, mac(1), 0x88b5))
		}
		if got := records(t, tr); len(got) != 2 || tr.Lost() != 3 {
			t.Errorf("%d records, %d lost", len(got), tr.Lost())
		}
		tr.Close()
		tr.Close()
		a.send(eth(frame.Broadcast, mac(1), 0x88b5))
		if _, err := tr.Next(context.Background()); !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
		tr = trace(TraceConfig{})
		l.s.Close()
		if _, err := tr.Next(context.Background()); !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
		for _, cfg := range []TraceConfig{{Every: -1}, {Buffer: -1}} {
			check.ErrorHas(t, check.Err(l.s.Trace(&cfg)), "vswitch: TraceConfig.")
		}
	})
}

// One port's frames do not hide those of another from who traces all of them.
func TestTraceShares(t *testing.T) {
	s := check.Must(New(nil))(t)
	defer s.Close()
	tr := check.Must(s.Trace(&TraceConfig{Buffer: 50}))(t)
	for range 100_000 {
		tr.record(TraceRecord{From: frame.NewDest(1, 0)}, 1)
	}
	for range 20 {
		tr.record(TraceRecord{From: frame.NewDest(2, 0)}, 1)
	}
	var n [3]int
	for range 70 {
		r := check.Must(tr.Next(t.Context()))(t)
		n[r.From.Port()]++
	}
	if n != [3]int{0, 50, 20} || tr.Lost() != 100_000-50 || tr.room.n != 0 {
		t.Errorf("%v records, %d lost, %d held", n, tr.Lost(), tr.room.n)
	}
}
