package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// nothing fails the test if a run has left anything.
func nothing(t *testing.T) {
	t.Helper()
	for _, dir := range []string{netns.Folder, os.TempDir()} {
		left, err := filepath.Glob(filepath.Join(dir, fmt.Sprintf("%s%d-*", prefix, os.Getpid())))
		if err != nil || len(left) > 0 {
			t.Errorf("left behind: %v %v", left, err)
		}
	}
}

// A round over the kernel and over p2p: the figures are there, and nothing else is left.
func TestCompare(t *testing.T) {
	netns.RequireRoot(t)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	o, err := parse(strings.Fields("-case tcp1 -contender kernel,vxswitch -rounds 1 -seconds 1"), nil)
	must(t, err)
	dir := t.TempDir()
	o.JSON, o.SVG = filepath.Join(dir, "r.json"), filepath.Join(dir, "r.svg")
	var out, progress bytes.Buffer
	if err := compare(ctx, o, &out, &progress); err != nil {
		t.Fatalf("%v\n%s", err, &progress)
	}
	nothing(t)
	text, err := os.ReadFile(o.JSON)
	must(t, err)
	var r report
	must(t, json.Unmarshal(text, &r))
	for _, w := range r.Cases[0].Rows {
		speed, all, own := w.Cells[0], w.Cells[1], w.Cells[2]
		if len(speed.Samples) != 1 || speed.Median <= 0 || all.Median <= 0 || speed.Ratio <= 0 {
			t.Errorf("%s: %+v", w.Name, w.Cells)
		}
		if w.Name == "vxswitch" && (len(own.Samples) != 1 || own.Median <= 0 || own.Median > all.Median) {
			t.Errorf("vxswitch: CPU of its own %v, of the machine %v", own, all)
		}
		if w.Name == "kernel" && len(own.Samples) != 0 {
			t.Errorf("the kernel is a process: %v", own)
		}
	}
	if s, err := os.ReadFile(o.SVG); err != nil || !bytes.HasPrefix(s, []byte("<svg ")) {
		t.Errorf("%.20s, %v", s, err)
	}
	if n := strings.Count(progress.String(), "Gbit/s\n"); n != 2 || !strings.Contains(out.String(), "\ntcp1: one TCP flow\n") {
		t.Errorf("%s\n%s", &progress, &out)
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

// An interrupt in the middle of a measurement leaves nothing.
func TestInterrupt(t *testing.T) {
	netns.RequireRoot(t)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	o, err := parse(strings.Fields("-case rr -contender kernel,vxswitch -rounds 2 -seconds 1"), nil)
	must(t, err)
	var out bytes.Buffer
	// After the first measurement the second is under way.
	var begin time.Time // of the end: before, p2p is built
	progress := seen{"[1/4]", func() {
		begin = time.Now()
		time.AfterFunc(200*time.Millisecond, cancel)
	}}
	if err := compare(ctx, o, &out, progress); err == nil || err.Error() != "interrupted" || out.Len() > 0 {
		t.Errorf("%v\n%s", err, &out)
	}
	if took := time.Since(begin); took > 20*time.Second {
		t.Errorf("it took %v", took)
	}
	nothing(t)
}

// A measurement that fails is said, and the others are there.
func TestFailure(t *testing.T) {
	netns.RequireRoot(t)
	must(t, able())
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	o, err := parse(strings.Fields("-case rr -contender veth -rounds 1 -seconds 1"), nil)
	must(t, err)
	broken := contender{name: "broken", join: func(ctx context.Context, l *lab) error {
		return netns.IP(ctx, l.hosts[0], "link set nowhere up")
	}}
	o.contenders = append(o.contenders, broken)
	var out, progress bytes.Buffer
	if err := compare(ctx, o, &out, &progress); err == nil || err.Error() != "1 of 2 measurements failed" {
		t.Errorf("%v", err)
	}
	if !strings.Contains(progress.String(), `Cannot find device "nowhere"`) || !strings.Contains(out.String(), "1 measurements failed") {
		t.Errorf("%s\n%s", &progress, &out)
	}
	nothing(t)
}

// What a killed run has left goes with the next; what a living one has stays.
func TestSweep(t *testing.T) {
	netns.RequireRoot(t)
	dead := exec.Command("true")
	must(t, dead.Run())
	names := map[string]bool{} // name: is to stay
	for pid, stays := range map[int]bool{dead.Process.Pid: false, os.Getpid(): true} {
		name := fmt.Sprintf("%s%d-sweep", prefix, pid)
		names[name] = stays
		must(t, netns.IP(t.Context(), "", "netns add "+name))
		t.Cleanup(func() {
			if err := netns.Remove(name); err != nil {
				t.Error(err)
			}
		})
		must(t, os.Mkdir(filepath.Join(os.TempDir(), name), 0o700))
		t.Cleanup(func() { os.Remove(filepath.Join(os.TempDir(), name)) })
	}
	left := func(name string) (ns, folder bool) {
		_, e1 := os.Stat(filepath.Join(netns.Folder, name))
		_, e2 := os.Stat(filepath.Join(os.TempDir(), name))
		return e1 == nil, e2 == nil
	}
	for name, stays := range names {
		if ns, folder := left(name); !ns || !folder {
			t.Fatalf("%s (stays %v) was not made", name, stays)
		}
	}
	if err := sweep(); err != nil {
		t.Error(err)
	}
	for name, stays := range names {
		if ns, folder := left(name); ns != stays || folder != stays {
			t.Errorf("%s: namespace %v, folder %v, want both %v", name, ns, folder, stays)
		}
	}
}

// A missing tool is named with its package.
func TestAble(t *testing.T) {
	netns.RequireRoot(t)
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	if err := able(); err == nil || err.Error() != "ip is not installed: install the Debian package iproute2" {
		t.Error(err)
	}
	for _, tool := range []string{"ip", "ethtool"} {
		must(t, os.WriteFile(filepath.Join(dir, tool), nil, 0o755))
	}
	if err := able(); err == nil || err.Error() != "iperf3 is not installed: install the Debian package iperf3" {
		t.Error(err)
	}
}
