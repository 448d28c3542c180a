package main

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// Clients that hang up leave their turn to others.
func TestRateHungUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRate()
		for range maxBurst {
			r.wait(t.Context())
		}
		gone, hangUp := context.WithCancel(t.Context())
		for range 600 {
			go r.wait(gone)
		}
		synctest.Wait()
		hangUp()
		synctest.Wait()
		begun := time.Now()
		if err := r.wait(t.Context()); err != nil || time.Since(begun) > perRequest {
			t.Errorf("%v after %v", err, time.Since(begun))
		}
		begun = time.Now()
		for range 100 {
			r.wait(t.Context())
		}
		if took := time.Since(begun); took != 100*perRequest {
			t.Errorf("100 requests in %v", took)
		}
	})
}

// No process and no user takes all places; who waits is let in in turn, if there is room for it;
// who goes leaves no place behind.
func TestGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(8)
		enter := func(w who) bool { return g.enter(t.Context(), w, 0) }
		most := func(ws ...who) (n int) {
			for i := 0; enter(ws[i%len(ws)]); i++ {
				n++
			}
			return n
		}
		one := who{"1", 1}
		if n := most(one); n != 2 {
			t.Errorf("one process has %d places", n)
		}
		if n := most(who{"1", 2}) + most(who{"1", 3}) + most(who{"1", 4}); n != 4 {
			t.Errorf("other processes of its user have %d", n)
		}
		if n := most(who{"2", 0}); n != 2 {
			t.Errorf("another user has %d", n)
		}
		var order []int32
		gone, hangUp := context.WithCancel(t.Context())
		for _, x := range []struct {
			ctx context.Context
			who
		}{{t.Context(), who{"1", 2}}, {gone, who{"3", 5}}, {t.Context(), who{"3", 6}}, {t.Context(), who{"1", 7}}} {
			go func() {
				if g.enter(x.ctx, x.who, time.Minute) {
					order = append(order, x.pid)
				}
			}()
			synctest.Wait()
		}
		hangUp()
		synctest.Wait()
		for _, w := range []who{one, {"2", 0}, {"1", 2}} { // one user's place goes to that user, the other's to anybody
			g.leave(w)
			synctest.Wait()
		}
		if want := []int32{6, 7, 2}; !slices.Equal(order, want) {
			t.Errorf("let in were %v, want %v", order, want)
		}
		if g.enter(t.Context(), one, time.Second) {
			t.Error("a ninth has a place")
		}
		for _, w := range slices.Clone(g.inside) {
			g.leave(w)
		}
		if len(g.inside)+len(g.waiting) != 0 {
			t.Errorf("%v are inside, %d wait", g.inside, len(g.waiting))
		}
		g.empty()
		if enter(one) {
			t.Error("it is open still")
		}
	})
}
