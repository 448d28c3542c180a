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
// what leaves is well formed. Where the settings are such that a model knows what has to happen, that
// happens, and nothing else.
func FuzzSwitch(f *testing.F) {
	for seed := range uint64(12) {
		f.Add(config(seed), random(seed+100, 400))
	}
	f.Fuzz(one)
}

var (
	games = flag.Int("games", 1000, "how many inputs TestSwitch makes, a quarter with -short; TestFabric makes a tenth")
	seed  = flag.Uint64("seed", 0, "the one input that TestSwitch and TestFabric make; 0: others each time")
)

// TestSwitch is the same with inputs of its own each time.
func TestSwitch(t *testing.T) {
	play(t, *games, func(t *testing.T, s uint64) { one(t, config(s), random(s+1, 2000)) })
}

func play(t *testing.T, n int, game func(t *testing.T, seed uint64)) {
	if testing.Short() {
		n /= 4
	}
	for range n {
		s := *seed
		if s == 0 {
			s = rand.Uint64()
		}
		if !t.Run(strconv.FormatUint(s, 10), func(t *testing.T) { game(t, s) }) || s == *seed {
			return
		}
	}
}

// config makes settings, every second time for a model that follows.
func config(seed uint64) []byte {
	if seed%2 == 0 {
		return random(seed, 100)
	}
	d := &draw{make([]byte, 1000)}
	new(settings).draw(d) // all zeros: the last choice is that there is no model
	b := random(seed, 300)
	b[1000-len(d.in)-1] = 1
	return b
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
