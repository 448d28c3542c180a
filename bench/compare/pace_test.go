package main

import (
	"math"
	"testing"
	"time"
)

// A sender that is always on time keeps its rate, in bursts that are no larger than
// they have to be.
func TestPace(t *testing.T) {
	for pps, most := range map[float64]int{10: 1, 4000: 1, 40e3: 10, 200e3: 50, 1e6: burst} {
		p := pace{pps: pps}
		total := 0
		now := time.Duration(0)
		for now < 2*time.Second {
			n, wait := p.due(now)
			if n > most || n == 0 && wait <= 0 {
				t.Fatalf("%v pps: %d packets, wait %v", pps, n, wait)
			}
			p.went(n)
			total += n
			now += wait
		}
		if want := 2 * pps; math.Abs(float64(total)-want) > max(float64(most), want/1000) {
			t.Errorf("%v pps: %d in 2 s", pps, total)
		}
	}
}

// One that was held up for long makes good a little and forgets the rest.
func TestPaceHeldUp(t *testing.T) {
	p := pace{pps: 100e3}
	total := 0
	for {
		n, _ := p.due(time.Second)
		if n == 0 {
			break
		}
		p.went(n)
		total += n
	}
	if total < 150 || total > 200 {
		t.Errorf("%d packets after a second without, want 2 ms of 100 a ms", total)
	}
	if n, wait := p.due(time.Second + time.Millisecond); n != burst || wait != 0 {
		t.Errorf("a millisecond later: %d, wait %v", n, wait)
	}
}

// What could not be sent is still due.
func TestPaceFailed(t *testing.T) {
	p := pace{pps: 1000}
	if n, _ := p.due(10 * time.Millisecond); n != 10 {
		t.Fatalf("%d", n)
	}
	p.went(4)
	if n, _ := p.due(10 * time.Millisecond); n != 6 {
		t.Errorf("%d, want the 6 that did not go", n)
	}
}
