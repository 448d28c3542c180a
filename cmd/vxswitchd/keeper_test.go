package main

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// A fakePlane runs until it is told to fail.
type fakePlane struct {
	section int
	fail    chan error
	left    atomic.Bool
	ended   atomic.Bool
}

func (p *fakePlane) Run(ctx context.Context) error {
	defer p.ended.Store(true)
	select {
	case <-ctx.Done():
		return ctx.Err()
	case err := <-p.fail:
		return err
	}
}

func (p *fakePlane) Leave() { p.left.Store(true) }

// A keeper of fakes; made has all of them, and refuse is why none can be made.
type fakeKeeper struct {
	keeper[int, *fakePlane]
	lock   sync.Mutex
	made   []*fakePlane
	refuse error
	log    strings.Builder
}

func newFakeKeeper() *fakeKeeper {
	k := new(fakeKeeper)
	k.name, k.keeper.log = "fake", slog.New(slog.NewTextHandler(&k.log, nil))
	k.anew = func(old, next *int) bool { return *old > *next }
	k.make = func(c *int) (*fakePlane, error) {
		if k.refuse != nil {
			return nil, k.refuse
		}
		p := &fakePlane{section: *c, fail: make(chan error)}
		k.lock.Lock()
		defer k.lock.Unlock()
		k.made = append(k.made, p)
		return p, nil
	}
	return k
}

func (k *fakeKeeper) planes() []*fakePlane {
	k.lock.Lock()
	defer k.lock.Unlock()
	return slices.Clone(k.made)
}

// set is a change of the file that succeeds.
func (k *fakeKeeper) set(c *int) { k.change(c, false)(true) }

func section(c int) *int { return &c }

// A plane that fails is tried again with pauses of 1, 2, 4 s and so on up to a minute, an error is said once, and one that has run for
// long begins with the first pause again.
func TestKeeperTriesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newFakeKeeper()
		if _, ok := k.status(); ok {
			t.Error("there is a section")
		}
		k.set(section(1))
		var pauses []time.Duration
		for i := range 9 {
			synctest.Wait()
			if len(k.planes()) != i+1 {
				t.Fatalf("%d planes, want %d", len(k.planes()), i+1)
			}
			if i == 8 {
				time.Sleep(2 * time.Minute)
			}
			k.planes()[i].fail <- errors.New("no\ngood")
			synctest.Wait()
			s, ok := k.status()
			if !ok || s.err == nil || s.plane != k.planes()[i] {
				t.Fatalf("%+v", s)
			}
			pauses = append(pauses, time.Until(s.again))
			time.Sleep(time.Until(s.again))
		}
		for i, want := range []time.Duration{1, 2, 4, 8, 16, 32, 60, 60, 1} {
			if pauses[i] != want*time.Second {
				t.Errorf("pauses %v", pauses)
				break
			}
		}
		if n := strings.Count(k.log.String(), "level=ERROR"); n != 2 || strings.Count(k.log.String(), `err="no; good"`) != 2 {
			t.Errorf("it is said %d times, want 2:\n%s", n, k.log.String())
		}
		synctest.Wait()
		if s, _ := k.status(); s.err != nil {
			t.Errorf("it runs again, and has %v", s.err)
		}
		k.end(false)
		if last := k.planes()[len(k.planes())-1]; !last.ended.Load() || last.left.Load() {
			t.Error("the last one goes on, or has left")
		}
	})
}

// A section that has not changed goes on, another one replaces it, one that is removed ends for good, and a failed change returns it.
func TestKeeperChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newFakeKeeper()
		k.set(section(1))
		synctest.Wait()
		k.set(section(1))
		k.change(section(1), false)(false)
		synctest.Wait()
		if len(k.planes()) != 1 || k.planes()[0].ended.Load() {
			t.Fatalf("an equal section has %d planes", len(k.planes()))
		}
		done := k.change(section(2), false)
		if !k.planes()[0].ended.Load() || k.planes()[0].left.Load() {
			t.Error("the old one goes on while the node changes, or has left")
		}
		done(true)
		synctest.Wait()
		if len(k.planes()) != 2 || k.planes()[1].section != 2 || *k.config() != 2 {
			t.Fatalf("%d planes", len(k.planes()))
		}
		k.change(nil, false)(false) // the node has refused something else
		synctest.Wait()
		if !k.planes()[1].left.Load() || len(k.planes()) != 3 || k.planes()[2].section != 2 || k.planes()[2].left.Load() {
			t.Fatalf("%d planes", len(k.planes()))
		}
		k.set(section(1)) // which has no use for what section 2 leaves
		synctest.Wait()
		if !k.planes()[2].left.Load() || len(k.planes()) != 4 || k.planes()[3].section != 1 || k.planes()[3].left.Load() {
			t.Fatalf("%d planes", len(k.planes()))
		}
		k.set(nil)
		if !k.planes()[3].left.Load() || !k.planes()[3].ended.Load() || k.config() != nil {
			t.Error("it goes on without a section")
		}
		k.set(section(3))
		synctest.Wait()
		if len(k.planes()) != 5 || k.planes()[4].left.Load() {
			t.Fatalf("%d planes", len(k.planes()))
		}
		k.planes()[4].fail <- errors.New("bad")
		synctest.Wait()
		k.set(nil) // during the pause
		if !k.planes()[4].left.Load() {
			t.Error("one that has failed does not leave")
		}
		k.refuse = errors.New("cannot be made")
		k.set(section(4))
		synctest.Wait()
		if s, ok := k.status(); !ok || s.err != k.refuse || s.plane != nil {
			t.Errorf("%+v", s)
		}
		k.end(true)
		k.end(true)
	})
}

// A plane that can change does so while it runs, once the node has changed. Another one is made if it does not run, if it cannot, or if the
// section needs that.
func TestKeeperConfigures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newFakeKeeper()
		var refuse error
		var given []int
		k.configure = func(p *fakePlane, c *int) error {
			given = append(given, *c)
			return refuse
		}
		want := func(planes, section int, configured ...int) {
			t.Helper()
			synctest.Wait()
			if len(k.planes()) != planes || *k.config() != section || !slices.Equal(given, configured) {
				t.Errorf("%d planes, section %d, %v; want %d, %d, %v", len(k.planes()), *k.config(), given, planes, section, configured)
			}
		}
		k.set(section(1))
		want(1, 1)
		done := k.change(section(2), false)
		want(1, 1)
		done(true)
		want(1, 2, 2)
		k.change(section(3), false)(false)
		want(1, 2, 2)
		k.change(section(2), true)(true) // it has no files
		want(1, 2, 2)
		k.files = func(*int) error { return nil }
		k.change(section(2), false)(true)
		want(1, 2, 2)
		k.change(section(2), true)(false)
		want(1, 2, 2)
		k.change(section(2), true)(true)
		want(1, 2, 2, 2)
		given = given[:1]
		k.set(section(1)) // anew
		want(2, 1, 2)
		refuse = errors.New("not while it runs")
		k.set(section(4))
		want(3, 4, 2, 4)
		k.planes()[2].fail <- errors.New("bad")
		synctest.Wait()
		k.set(section(5))
		want(4, 5, 2, 4)
		k.planes()[3].fail <- errors.New("bad")
		time.Sleep(firstPause)
		want(5, 5, 2, 4)
		if p := k.planes()[4]; p.section != 5 {
			t.Errorf("it is tried again with section %d", p.section)
		}
		k.end(true)
		for _, p := range k.planes() {
			if !p.ended.Load() {
				t.Errorf("that of section %d goes on", p.section)
			}
		}
	})
}

// A plane that takes the place of another one, or of a section that was removed, begins after the rest, and one that is stopped meanwhile never.
func TestKeeperRests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newFakeKeeper()
		k.rest = 2 * time.Second
		want := func(n int, when string) {
			t.Helper()
			if synctest.Wait(); len(k.planes()) != n {
				t.Errorf("%d planes %s, want %d", len(k.planes()), when, n)
			}
		}
		sections := []int{3, 2, 1}
		k.set(&sections[0])
		want(1, "at once")
		time.Sleep(time.Minute)
		k.set(&sections[1])
		want(1, "during the rest")
		time.Sleep(2 * time.Second)
		want(2, "after the rest")
		k.set(nil)
		time.Sleep(time.Second)
		k.set(&sections[2])
		want(2, "a second after the end")
		time.Sleep(time.Second)
		want(3, "two seconds after the end")
		k.set(nil)
		k.set(&sections[0])
		k.set(nil)
		time.Sleep(time.Minute)
		want(3, "when stopped during the rest")
	})
}
