package main

import (
	"errors"
	"math"
	"testing"
)

// A path that carries so much and no more.
func TestLossless(t *testing.T) {
	const above = 1000
	for _, capacity := range []float64{40, 100, 333, 999} {
		tries := 0
		got, err := lossless(above, func(kpps float64) (transfer, error) {
			tries++
			through := min(kpps, capacity)
			return transfer{Seconds: 1, Packets: kpps * 1e3, Lost: (kpps - through) * 1e3}, nil
		})
		if err != nil || got > capacity*1.0001 || got < capacity*0.94 || tries > 2*probes {
			t.Errorf("capacity %v: %v after %d tries, %v", capacity, got, tries, err)
		}
	}
}

// A loss that does not come again is not the path's.
func TestLosslessOnce(t *testing.T) {
	tries := 0
	got, err := lossless(1000, func(kpps float64) (transfer, error) {
		tries++
		r := transfer{Seconds: 1, Packets: kpps * 1e3}
		if tries%2 == 1 {
			r.Lost = r.Packets / 2
		}
		return r, nil
	})
	if err != nil || got < 940 {
		t.Errorf("%v, %v", got, err)
	}
}

func TestLosslessNever(t *testing.T) {
	got, err := lossless(1000, func(kpps float64) (transfer, error) {
		return transfer{Seconds: 1, Packets: 100, Lost: 50}, nil
	})
	if err != nil || !math.IsNaN(got) {
		t.Errorf("%v, %v", got, err)
	}
	bad := errors.New("bad")
	if _, err := lossless(1000, func(float64) (transfer, error) { return transfer{}, bad }); !errors.Is(err, bad) {
		t.Error(err)
	}
}
