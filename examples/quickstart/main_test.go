package main

import (
	"context"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// The story ends well, names every step, and leaves nothing running.
func TestStory(t *testing.T) {
	defer goleak.VerifyNone(t)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	var out strings.Builder
	if err := run(ctx, &out); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	for _, want := range []string{"1. red1 asks", "4. red3 asks", "0 packets into the tunnel", "6. red2 moves", "7. red1 pings green3", "TTL 63", "head-end replication", "127.0.0.13", "FDB", "snooped"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}

// A step that does not happen is an error that names it.
func TestStepNotSeen(t *testing.T) {
	defer goleak.VerifyNone(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	f, err := newFabric(ctx, "127.0.0.21", "127.0.0.22")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	a, err := f.host("lone", 7, 0) // in no mesh
	if err != nil {
		t.Fatal(err)
	}
	b, err := f.host("lone", 7, 1)
	if err != nil {
		t.Fatal(err)
	}
	s := &story{out: &strings.Builder{}, f: f}
	s.flooded(ctx, a, b)
	if s.err == nil || !strings.Contains(s.err.Error(), "lone2: did not hear") {
		t.Errorf("error %v", s.err)
	}
}
