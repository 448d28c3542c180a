package model

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

var (
	oneSeed = flag.Int64("seed", -1, "run this seed only")
	seeds   = flag.Uint64("seeds", 50, "how many seeds")
	numOps  = flag.Int("ops", 0, "operations for each seed; 0 means 300, or 60 with -short")
)

func eachSeed(t *testing.T, f func(t *testing.T, seed uint64)) {
	for seed := range *seeds {
		if *oneSeed >= 0 && seed != 0 {
			break
		}
		if *oneSeed >= 0 {
			seed = uint64(*oneSeed)
		}
		t.Run(fmt.Sprint("seed", seed), func(t *testing.T) {
			t.Parallel()
			f(t, seed)
		})
	}
}

// A story is what happened up to a disagreement.
type story struct {
	ops []op
	err error
}

func TestModel(t *testing.T) {
	n := *numOps
	switch {
	case n > 0:
	case testing.Short():
		n = 60
	default:
		n = 300
	}
	eachSeed(t, func(t *testing.T, seed uint64) {
		top := plan(seed)
		s := tell(t, top, func(w *world, k int, r *rand.Rand) (op, bool) { return w.draw(r, k), k < n })
		if s.err == nil {
			return
		}
		t.Errorf("%vafter %d operations:\n\t%v", top, len(s.ops), s.err)
		s = shrink(t, top, s)
		var b strings.Builder
		for k, o := range s.ops {
			fmt.Fprintf(&b, "\n%4d  %s", k, o.words)
		}
		t.Errorf("%d of them are enough:%s\n\t%v", len(s.ops), b.String(), s.err)
	})
}

// tell does what next says until something does not agree.
func tell(t *testing.T, top *topology, next func(w *world, k int, r *rand.Rand) (op, bool)) (s story) {
	synctest.Test(t, func(t *testing.T) {
		w, err := top.build(0, false)
		defer w.l.close()
		if err == nil {
			err = w.settle()
		}
		if err != nil {
			s.err = fmt.Errorf("at the start: %w", err)
			return
		}
		r := rand.New(rand.NewPCG(top.seed, 3))
		for k := 0; ; k++ {
			o, more := next(w, k, r)
			if !more {
				return
			}
			s.ops = append(s.ops, o)
			if s.err = w.step(o); s.err != nil {
				return
			}
		}
	})
	return s
}

func (w *world) step(o op) (err error) {
	defer func() {
		if x := recover(); x != nil {
			err = fmt.Errorf("panic: %v\n%s", x, debug.Stack())
		}
	}()
	if err := o.do(w); err != nil {
		return err
	}
	return w.settle()
}

// shrink leaves out operations as long as there is still a disagreement.
func shrink(t *testing.T, top *topology, s story) story {
	start := time.Now()
	for size := len(s.ops) / 2; size > 0; size /= 2 {
		for at := len(s.ops) - 1 - size; at >= 0 && time.Since(start) < 20*time.Second; at -= size {
			ops := append(append([]op(nil), s.ops[:at]...), s.ops[at+size:]...)
			again := tell(t, top, func(_ *world, k int, _ *rand.Rand) (op, bool) {
				if k < len(ops) {
					return ops[k], true
				}
				return op{}, false
			})
			if again.err != nil && len(again.ops) > 0 {
				s = again
				at = min(at, len(s.ops)-1)
			}
		}
	}
	return s
}
