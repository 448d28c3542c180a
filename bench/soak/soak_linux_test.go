package soak

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

var (
	duration = flag.Duration("soak.duration", 15*time.Second, "how long the load lasts")
	picture  = flag.String("soak.svg", "", "file to draw memory over time to")
)

func TestMain(m *testing.M) {
	runtime.MemProfileRate = 1 // every allocation is in the profile
	goleak.VerifyTestMain(m)
}

const (
	warming  = 3 // seconds of the same load before anything is looked at
	addrB    = "192.168.7.2"
	tooMany  = 0.001 // mallocs a frame, of the whole process
	leastFPS = 1000  // frames a second, or it was no load
)

// Under full load for a while: resident memory is what it was near the beginning, there
// are as many goroutines, and the library allocates nothing in proportion to frames.
func TestSoak(t *testing.T) {
	n := netns.New(t)
	a, b := n.Host("a"), n.Host("b")
	for _, h := range []*netns.Host{a, b} {
		h.Quiet()
	}
	n.Link(a, "10.0.0.1/24", b, "10.0.0.2/24")
	ends := []*end{newEnd(t, a, "10.0.0.1", "10.0.0.2", "192.168.7.1/24"), newEnd(t, b, "10.0.0.2", "10.0.0.1", addrB+"/24")}
	a.Run("ping", "-c", "3", "-i", "0.2", "-W", "5", addrB)
	load(t, a, b, ends, warming*time.Second, func(<-chan time.Time) {}) // sockets and queues that open when first used

	idle := settled()
	s := newSampler(t, ends...)
	var before, after heap
	load(t, a, b, ends, *duration, func(over <-chan time.Time) {
		before = takeHeap()
		s.take(t)
		interval := time.Second
		if *duration > time.Minute {
			interval = 5 * time.Second
		}
		tick := time.NewTicker(interval)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				s.take(t)
			case <-over:
				after = takeHeap()
				return
			}
		}
	})
	if *picture != "" {
		if err := os.WriteFile(*picture, []byte(plot(s.all)), 0o644); err != nil {
			t.Error(err)
		}
	}
	s.judge(t, idle)
	blame(t, after.since(before), s.last())
}

// load sends TCP both ways and small UDP packets between two hosts for d, and calls
// during once it runs; over fires a second before it ends.
func load(t *testing.T, a, b *netns.Host, ends []*end, d time.Duration, during func(over <-chan time.Time)) {
	t.Helper()
	seconds := max(2, int(d/time.Second))
	var clients, servers []*netns.Proc
	for i, args := range [][]string{{"--bidir"}, {"-u", "-l", "64", "-b", "10M"}} {
		at := strconv.Itoa(5201 + i)
		server := b.Start("iperf3", "-s", "-1", "-i", "0", "-p", at, "--forceflush")
		server.Want("Server listening")
		servers = append(servers, server)
		clients = append(clients, a.Start("iperf3", append([]string{"-c", addrB, "-p", at, "-i", "0", "-t", fmt.Sprint(seconds), "--forceflush"}, args...)...))
	}
	over := time.After(time.Duration(seconds-1) * time.Second)
	flows(t, ends[0])
	during(over)
	for i, c := range clients {
		if err := c.Wait(); err != nil {
			t.Fatalf("iperf3 -c: %v\n%s", err, c.Output())
		}
		if err := servers[i].Wait(); err != nil {
			t.Fatalf("iperf3 -s: %v\n%s", err, servers[i].Output())
		}
	}
}

// flows returns when the load has begun.
func flows(t *testing.T, e *end) {
	t.Helper()
	begun := e.frames()
	for deadline := time.Now().Add(netns.Timeout); e.frames() < begun+leastFPS; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d frames in %v are no load", e.frames()-begun, netns.Timeout)
		}
	}
}

// settled is the number of goroutines once it has stayed the same for a while: those
// that waited for processes of the load end by themselves.
func settled() int {
	const still = 50 // looks
	n, deadline := runtime.NumGoroutine(), time.Now().Add(10*time.Second)
	for same := 0; same < still && time.Now().Before(deadline); time.Sleep(2 * time.Millisecond) {
		now := runtime.NumGoroutine()
		if same++; now != n {
			n, same = now, 0
		}
	}
	return n
}

// judge holds the samples to what may not grow.
func (s *sampler) judge(t *testing.T, idle int) {
	t.Helper()
	last := s.last()
	now := settled()
	for end := time.Now().Add(10 * time.Second); now != idle && time.Now().Before(end); now = settled() { // what ends late on a busy machine
	}
	fewest := func(list []sample) int { // some come and go, to look at interfaces
		n := list[0].goroutines
		for _, x := range list {
			n = min(n, x.goroutines)
		}
		return n
	}
	early, late := fewest(s.all[:len(s.all)/2]), fewest(s.all[len(s.all)/2:])
	if now != idle || early != late {
		t.Errorf("goroutines: %d before the load, at least %d in its first half, %d in its second, %d after it", idle, early, late, now)
	}
	if float64(last.frames) < leastFPS*last.at.Seconds() {
		t.Errorf("%d frames in %v are no load", last.frames, last.at)
	}
	t.Logf("%.2f million frames, %d mallocs: %.2g a frame", float64(last.frames)/1e6, last.mallocs, float64(last.mallocs)/float64(last.frames))
	if raceEnabled {
		t.Log("memory and allocations are not judged under the race detector")
		return
	}
	if float64(last.mallocs) >= tooMany*float64(last.frames) {
		t.Errorf("%d mallocs for %d frames", last.mallocs, last.frames)
	}
	if err := grown(s.all); err != nil {
		t.Error(err)
	}
}

// blame says which sites have allocated most, and fails for those of the library that
// did it for frames.
func blame(t *testing.T, gs []growth, last sample) {
	t.Helper()
	for _, g := range gs[:min(8, len(gs))] {
		t.Logf("%6d objects: %s", g.objects, g.name)
	}
	if raceEnabled {
		return
	}
	for _, g := range guilty(gs, last.frames, last.at) {
		t.Errorf("%s allocates in proportion to frames: %d objects for %d", g.name, g.objects, last.frames)
	}
}
