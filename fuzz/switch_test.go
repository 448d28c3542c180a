package fuzz

import (
	"flag"
	"math/rand/v2"
	"strconv"
	"testing"
	"testing/synctest"
)

// FuzzSwitch is a whole switch as a black box: one input says how it is set up, the other
// what happens, packets above all, from local ports and from the network. Nothing may make it
// panic, hang or grow; every frame that enters is delivered or counted under a name; none
// comes back, crosses a split horizon, or gets into another segment when nobody routes; and
// what leaves is well formed.
func FuzzSwitch(f *testing.F) {
	for seed := range uint64(12) {
		f.Add(random(seed, 100), random(seed+100, 400))
	}
	f.Fuzz(one)
}

var games = flag.Int("games", 500, "how many inputs TestSwitch makes")

// TestSwitch is the same with inputs of its own each time.
func TestSwitch(t *testing.T) {
	for range *games {
		seed := rand.Uint64()
		if !t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) { one(t, random(seed, 100), random(seed+1, 1500)) }) {
			return
		}
	}
}

func random(seed uint64, n int) []byte {
	r := rand.New(rand.NewPCG(seed, 1))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

func one(t *testing.T, config, happens []byte) {
	synctest.Test(t, func(t *testing.T) {
		var s settings
		s.draw(&draw{config})
		r := newRig(t, s)
		defer r.end()
		r.play(&draw{happens})
		if !r.closed {
			r.check()
		}
	})
}
