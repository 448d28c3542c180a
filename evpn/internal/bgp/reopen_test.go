package bgp

import (
	"context"
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A session that we have ended ourselves is not opened again at once. The first one is, and one that was lost.
func TestReopen(t *testing.T) {
	addr := netip.MustParseAddr("127.0.0.1")
	config := func(n uint16) Peer { return Peer{Addr: addr, AS: 65000, Port: n, Retry: 100 * time.Millisecond} }
	for _, c := range []struct {
		name  string
		end   func(b *BGP, r *reader, p Peer) error
		pause time.Duration
	}{
		{"other settings", func(b *BGP, _ *reader, p Peer) error {
			p.Hold = 30 * time.Second
			return b.SetPeers([]Peer{p}, 0)
		}, reopenPause},
		{"an UPDATE error", func(_ *BGP, r *reader, _ Peer) error {
			r.update([]byte{0, 0, 0, 4, flagOptional | flagLong, attrUnreach, 0, 0})
			return nil
		}, reopenPause},
		{"lost", func(_ *BGP, r *reader, _ Peer) error { return r.Close() }, 0},
		{"the peer ends it", func(_ *BGP, r *reader, _ Peer) error {
			r.say(notify(errCease, ceaseShutdown, 0).marshal())
			return nil
		}, 0},
		{"a dead path", func(b *BGP, _ *reader, _ Peer) error { b.Reset(addr); return nil }, 0},
		{"the hold time", func(*BGP, *reader, Peer) error { return nil }, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := port(t) // where nobody listens
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex
				var dials []time.Time
				conf := Config{AS: 65000, RouterID: netip.MustParseAddr("192.0.2.1"), Peers: []Peer{config(n)}, In: func(f func()) {
					mu.Lock()
					dials = append(dials, time.Now())
					mu.Unlock()
					f()
				}}
				dialed := func() []time.Time {
					mu.Lock()
					defer mu.Unlock()
					return dials
				}
				b, err := New(conf)
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan error, 1)
				begun := time.Now()
				go func() { done <- b.Run(ctx, newHeard()) }()
				synctest.Wait()
				if d := dialed(); len(d) != 1 || d[0] != begun {
					t.Errorf("at first it connects at %v, not %v", d, begun)
				}
				r := newReader(t, b, addr)
				go func() {
					for r.one() {
					}
				}()
				time.Sleep(time.Second) // the pause after the first attempt is over
				was := len(dialed())
				if err := c.end(b, r, config(n)); err != nil {
					t.Error(err)
				}
				synctest.Wait()
				for state(b) == "established" {
					time.Sleep(time.Millisecond)
				}
				ended := time.Now()
				for len(dialed()) == was {
					time.Sleep(time.Millisecond)
				}
				if took := dialed()[was].Sub(ended).Round(10 * time.Millisecond); took != c.pause {
					t.Errorf("it connects after %v, not %v", took, c.pause)
				}
				cancel()
				if err := <-done; err != nil {
					t.Error(err)
				}
				r.Close()
			})
		})
	}
}
