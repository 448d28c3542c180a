package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// Whoever takes part in special cases only joins the guests too.
func TestSpecial(t *testing.T) {
	netns.RequireRoot(t)
	must(t, able())
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	s := shared{dir: t.TempDir()}
	must(t, s.build(ctx))
	defer nothing(t)
	// A case that only sees whether they are joined, and by what.
	wire := testCase{underlay: underlay{mtu: 1500}, measure: func(ctx context.Context, l *lab, _ int) ([]float64, error) {
		out, err := netns.Output(ctx, netns.Timeout, l.guests[0], "ping", "-n", "-q", "-c", "1", "-M", "do", "-s", fmt.Sprint(l.inner-28), l.guestAddr(1))
		if err != nil {
			return nil, fmt.Errorf("%w: %s", err, out)
		}
		return []float64{float64(len(l.tunnels))}, nil
	}}
	for _, c := range contenders() {
		if !c.special {
			continue
		}
		processes := 2.
		if c.name == "kernel-gpe" || c.name == "kernel-host" {
			processes = 0
		}
		if v, err := one(ctx, s, wire, c, 1); err != nil || v[0] != processes {
			t.Errorf("%s: %v, %v", c.name, v, err)
		}
	}
}

// A contender that no case is for leaves nothing to measure.
func TestNobodyLeft(t *testing.T) {
	netns.RequireRoot(t)
	o, err := parse(strings.Fields("-case gpe-tcp1,rr -contender gpe-tun"), nil)
	must(t, err)
	var out, progress bytes.Buffer
	if err := compare(t.Context(), o, &out, &progress); err == nil || err.Error() != "no contender is left" || out.Len() > 0 {
		t.Errorf("%v\n%s", err, &out)
	}
	nothing(t)
}

// A tunnel's process is the program itself, not the one that put it in its namespace;
// what the generator sends through it reaches the sink.
func TestLab(t *testing.T) {
	netns.RequireRoot(t)
	must(t, able())
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	s := shared{dir: t.TempDir()}
	must(t, s.build(ctx))
	l, err := newLab(ctx, s, underlay{mtu: 1500})
	must(t, err)
	defer func() {
		if err := l.close(); err != nil {
			t.Error(err)
		}
		nothing(t)
	}()
	for i := range 2 {
		must(t, vxswitch()(ctx, l, i))
		p := l.tunnelAt(i)
		if p == nil {
			t.Fatalf("no process at host %d", i)
		}
		if exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", p.PID())); err != nil || exe != s.p2p {
			t.Errorf("host %d: the process is %s, want %s; %v", i, exe, s.p2p, err)
		}
		if mib, err := residentOf(p); err != nil || mib < 1 || mib > 1000 {
			t.Errorf("host %d: %v MiB, %v", i, mib, err)
		}
	}
	if l.tunnelAt(0) == l.tunnelAt(1) {
		t.Error("one process at both hosts")
	}
	must(t, l.warm(ctx))
	const size, kpps = 64, 2
	f, err := l.flood(ctx, size, 300*time.Millisecond, kpps)
	must(t, err)
	r := f.received
	if r.Received == 0 || r.Received+r.Lost != f.sent.Sent || r.Bytes != size*r.Received || f.loss() > 0.5 {
		t.Errorf("%+v", f)
	}
	if f.offered() > kpps*1.3 || f.cpu.all <= 0 {
		t.Errorf("%v kpps offered, CPU %+v", f.offered(), f.cpu)
	}
}
