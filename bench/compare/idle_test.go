package main

import (
	"context"
	"errors"
	"math"
	"testing"

	"github.com/vxswitch/vxswitch/internal/lab/netns"
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
	start := func(ns string, args ...string) *netns.Process {
		p, err := netns.Start(t.Context(), "", args...)
		must(t, err)
		p.NS = ns
		t.Cleanup(p.Kill)
		return p
	}
	l := &lab{hosts: [2]string{"a", "b"}}
	l.tunnels = []*netns.Process{start("b", "true")}
	if v, err := idle(t.Context(), l, 1); err != nil || len(v) != 1 || !math.IsNaN(v[0]) {
		t.Errorf("%v, %v", v, err)
	}
	l.tunnels = append(l.tunnels, start("a", "false"))
	if _, err := idle(t.Context(), l, 1); err == nil || err.Error() != "false: ended" {
		t.Error(err)
	}
	l.tunnels[1] = start("a", "sleep", "100")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := idle(ctx, l, 1); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
