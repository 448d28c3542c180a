package main

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
)

func TestResident(t *testing.T) {
	const rollup = "55d0c0000000-7ffe00000000 ---p 00000000 00:00 0    [rollup]\nRss:               12800 kB\nPss:                9000 kB\nPss_Anon: 1 kB\n"
	if mib, err := resident(rollup); err != nil || mib != 12.5 {
		t.Errorf("%v MiB, %v", mib, err)
	}
	for _, bad := range []string{"", "Pss: 1 kB\n", "Rss: x kB\n", "Rss: 1\n"} {
		if mib, err := resident(bad); err == nil {
			t.Errorf("%q: %v MiB", bad, mib)
		}
	}
}

// The process is the one at the first end; without one there it is not waited for.
func TestIdleOf(t *testing.T) {
	l := &lab{hosts: [2]string{"a", "b"}}
	l.tunnels = []*process{{ns: "b"}}
	if v, err := idle(t.Context(), l, 1); err != nil || len(v) != 1 || !math.IsNaN(v[0]) {
		t.Errorf("%v, %v", v, err)
	}
	ended := make(chan struct{})
	close(ended)
	l.tunnels = append(l.tunnels, &process{ns: "a", line: "p2p", done: ended})
	if _, err := idle(t.Context(), l, 1); err == nil || err.Error() != "p2p: ended" {
		t.Error(err)
	}
	l.tunnels[1].done = make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := idle(ctx, l, 1); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// What a process printed in the background is there after its end.
func TestWait(t *testing.T) {
	p, err := start(t.Context(), "ready", "", "sh", "-c", "echo ready; echo more")
	if err != nil {
		t.Fatal(err)
	}
	if out, err := p.wait(t.Context()); err != nil || string(out) != "ready\nmore\n" {
		t.Errorf("%q, %v", out, err)
	}
	if p, err = start(t.Context(), "ready", "", "sh", "-c", "echo ready; echo oops >&2; exit 3"); err != nil {
		t.Fatal(err)
	}
	if _, err := p.wait(t.Context()); err == nil || !strings.Contains(err.Error(), "exit status 3: ready oops") {
		t.Error(err)
	}
}

// What a process prints without end is not kept.
func TestAwaitedMost(t *testing.T) {
	a := awaited{text: []byte("x"), seen: make(chan struct{})}
	a.Write([]byte("x"))
	for range 3 {
		if n, err := a.Write(make([]byte, most/2)); n != most/2 || err != nil {
			t.Fatal(n, err)
		}
	}
	if len(a.buf) != most {
		t.Errorf("%d bytes kept", len(a.buf))
	}
}
