package bgp

import (
	"testing"
)

// Routes of a peer with graceful restart outlive its session: those it says again stay, the others go at the end of RIB.
func TestGracefulRestart(t *testing.T) {
	t.Parallel()
	id := [4]byte{9, 9, 9, 9}
	say := func(s *script, n int) {
		for _, r := range many(n) {
			a := sharedOf(&r)
			s.say(internal.reach(&a, appendNLRI(nil, &r)))
		}
	}
	begin := func(t *testing.T, restart byte) (Config, *BGP, *heard, *script) {
		c := passive(t)
		b, h, _ := start(t, c)
		s := connect(t, c)
		s.open(helloAs(id, restart, kept))
		say(s, 10)
		until(t, "routes", func() bool { return h.count() == 10 })
		return c, b, h, s
	}
	t.Run("back", func(t *testing.T) {
		t.Parallel()
		c, b, h, s := begin(t, 60)
		s.Close()
		until(t, "stale", func() bool { return b.Status()[0].Stale && state(b) != "established" })
		if h.count() != 10 {
			t.Errorf("%d routes, want 10", h.count())
		}
		s = connect(t, c)
		s.open(helloAs(id, 60, kept))
		say(s, 4)
		until(t, "another session", func() bool { return state(b) == "established" })
		s.update(unreach(nil)[headerLen:])
		until(t, "4 routes", func() bool { return h.count() == 4 && b.Status()[0].Routes == 4 && !b.Status()[0].Stale })
		if c, _ := h.counts(); c.downs != 0 || c.stale != 1 {
			t.Errorf("%+v", c)
		}
	})
	t.Run("new connection before the old is lost", func(t *testing.T) {
		t.Parallel()
		c, b, h, _ := begin(t, 60)
		s := connect(t, c)
		s.open(helloAs(id, 60, kept))
		s.update(unreach(nil)[headerLen:])
		until(t, "no routes", func() bool { return h.count() == 0 && b.Status()[0].Routes == 0 })
		if c, _ := h.counts(); c.downs != 0 || c.stale != 1 || c.ups != 2 {
			t.Errorf("%+v", c)
		}
	})
	t.Run("lost again before all is said", func(t *testing.T) {
		t.Parallel()
		c, b, h, s := begin(t, 60)
		s.Close()
		until(t, "stale", func() bool { return b.Status()[0].Stale && state(b) != "established" })
		s = connect(t, c)
		s.open(helloAs(id, 60, kept))
		say(s, 4)
		until(t, "4 routes again", func() (ok bool) {
			h.do(func() { ok = len(h.old) == 6 })
			return ok
		})
		s.Close()
		until(t, "those 4 only", func() bool { return h.count() == 4 && b.Status()[0].Routes == 4 && b.Status()[0].Stale })
		if c, _ := h.counts(); c.downs != 0 || c.stale != 2 {
			t.Errorf("%+v", c)
		}
	})
	for name, c := range map[string]struct {
		restart byte
		end     func(Config, *script)
		stale   int
	}{
		"nothing kept": {60, func(c Config, s *script) {
			s.Close()
			connect(t, c).open(helloAs(id, 60, 0))
		}, 1},
		"not back":      {1, func(_ Config, s *script) { s.Close() }, 1},
		"notification":  {60, func(_ Config, s *script) { s.say(notify(errCease, ceaseShutdown, 0).marshal()) }, 0},
		"not asked for": {0, func(_ Config, s *script) { s.Close() }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conf, b, h, s := begin(t, c.restart)
			c.end(conf, s)
			until(t, "no routes", func() bool { return h.count() == 0 && b.Status()[0].Routes == 0 })
			if n, _ := h.counts(); n.downs != 1 || n.stale != c.stale {
				t.Errorf("%+v", n)
			}
		})
	}
}
