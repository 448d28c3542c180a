package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// nothing fails the test if a run has left anything.
func nothing(t *testing.T) {
	t.Helper()
	left, err := filepath.Glob(filepath.Join(netnsDir, fmt.Sprintf("%s%d-*", prefix, os.Getpid())))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
}

// endAtOnce spares the ends of round trips the second that the race detector sleeps at
// the end of each program.
func endAtOnce(t *testing.T) { t.Setenv("GORACE", os.Getenv("GORACE")+" atexit_sleep_ms=0") }

// Every way moves packets, or the kernel refuses it; and the first of each group, to
// which the others are compared, is not refused.
func TestEveryWay(t *testing.T) {
	netns.RequireRoot(t)
	endAtOnce(t)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	o, err := parse(strings.Fields("-rounds 1 -seconds 0.04"), nil)
	if err != nil {
		t.Fatal(err)
	}
	var progress, out bytes.Buffer
	r, err := measure(ctx, o, &progress)
	if err != nil {
		t.Fatalf("%v\n%s", err, &progress)
	}
	nothing(t)
	if err := r.write(&out, ""); err != nil {
		t.Error(err)
	}
	t.Logf("\n%s", &out)
	ways := 0
	for _, g := range r.Groups {
		for i, w := range g.Rows {
			ways++
			if w.Refused != "" {
				t.Logf("%s, %s: refused: %s", g.Letter, w.Way, w.Refused)
				if i == 0 {
					t.Errorf("%s: the way used now is refused", g.Letter)
				}
				continue
			}
			for _, c := range w.Cells {
				if len(c.Samples) != 1 || !(c.Median > 0 && c.Median < 1e12) {
					t.Errorf("%s, %s: %s: %v", g.Letter, w.Way, c.Metric, c.Samples)
				}
			}
		}
	}
	if n := strings.Count(progress.String(), "\n"); n != ways {
		t.Errorf("%d lines of progress for %d ways\n%s", n, ways, &progress)
	}
}

// seen calls a function when a text is written.
type seen struct {
	text string
	call func()
}

func (s seen) Write(p []byte) (int, error) {
	if strings.Contains(string(p), s.text) {
		s.call()
	}
	return len(p), nil
}

// An interrupt in the middle of a measurement ends it and leaves nothing, in the threads
// of A as in the processes of D.
func TestInterrupt(t *testing.T) {
	netns.RequireRoot(t)
	endAtOnce(t)
	for _, group := range []string{"A", "D"} {
		o, err := parse(strings.Fields("-rounds 1 -seconds 0.05 -group "+group), nil)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
		// After the first measurement the second is under way, and would take long.
		first, under := o.groups[0].ways[0], o.groups[0].ways[1]
		o.groups[0].ways = []way{first, {under.name, func(ctx context.Context, l *lab, _ time.Duration) (sample, error) {
			return under.run(ctx, l, time.Minute)
		}}}
		var begin time.Time
		_, err = measure(ctx, o, seen{"[1/2]", func() {
			begin = time.Now()
			time.AfterFunc(100*time.Millisecond, cancel)
		}})
		cancel()
		if err == nil || err.Error() != "interrupted" {
			t.Errorf("%s: %v", group, err)
		}
		if took := time.Since(begin); took > 20*time.Second {
			t.Errorf("%s: it took %v", group, took)
		}
		nothing(t)
	}
}

// A way that fails is said, and the others are there; one that is refused is no failure.
func TestFailure(t *testing.T) {
	netns.RequireRoot(t)
	fails := func(err error) func(context.Context, *lab, time.Duration) (sample, error) {
		return func(context.Context, *lab, time.Duration) (sample, error) { return sample{}, err }
	}
	o := options{rounds: 1, each: time.Second, groups: []group{{letter: "X", metrics: []metric{{name: "n"}}, ways: []way{
		{"good", func(context.Context, *lab, time.Duration) (sample, error) { return sample{values: []float64{1}}, nil }},
		{"refused", fails(refused("bpf", unix.EPERM))},
		{"broken", fails(os.ErrInvalid)},
	}}}}
	var progress bytes.Buffer
	r, err := measure(t.Context(), o, &progress)
	if err == nil || err.Error() != "1 of 3 measurements failed" {
		t.Error(err)
	}
	if rows := r.Groups[0].Rows; rows[0].Gain != 1 || rows[1].Refused != "EPERM (bpf)" || rows[2].Refused != "" {
		t.Errorf("%+v", rows)
	}
	if !strings.Contains(progress.String(), "refused: EPERM (bpf)\n") {
		t.Errorf("%s", &progress)
	}
	nothing(t)
}

// What a killed run has left goes with the next; what a living one has stays.
func TestSweep(t *testing.T) {
	netns.RequireRoot(t)
	dead := exec.Command("true")
	if err := dead.Run(); err != nil {
		t.Fatal(err)
	}
	for pid, stays := range map[int]bool{dead.Process.Pid: false, os.Getpid(): true} {
		name := fmt.Sprintf("%s%d-sweep", prefix, pid)
		if err := ip(t.Context(), "", "netns add "+name); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := remove(name); err != nil {
				t.Error(err)
			}
		})
		if err := sweep(); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(nsPath(name)); (err == nil) != stays {
			t.Errorf("%s: %v, stays %v", name, err, stays)
		}
	}
}
