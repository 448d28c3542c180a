package unnumbered

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// wire is a socket without a kernel.
type wire struct {
	mu        sync.Mutex
	down      error
	sent      []time.Duration
	when      []time.Time
	in        chan packet
	over      chan struct{}
	asks      int // own
	solicited int
}

type packet struct {
	b    []byte
	hops int
	from netip.Addr
}

var (
	ours  = netip.MustParseAddr("fe80::1")
	third = netip.MustParseAddr("fe80::3")
)

func (w *wire) state() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.down
}

func (w *wire) changed() <-chan struct{} { return nil }

func (w *wire) send(counts time.Duration) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sent, w.when = append(w.sent, counts), append(w.when, time.Now())
	return nil
}

func (w *wire) solicit() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.solicited++
	return nil
}

func (w *wire) read(b []byte) (n, hops int, from netip.Addr, err error) {
	select {
	case p := <-w.in:
		return copy(b, p.b), p.hops, p.from, nil
	case <-w.over:
		return 0, 0, from, net.ErrClosed
	}
}

func (w *wire) own(a netip.Addr) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asks++
	return a.WithZone("") == ours
}

func (w *wire) Close() error { close(w.over); return nil }

// aLink is a Link on a wire, and what it has said.
type aLink struct {
	*Link
	door    sync.Mutex // of the two below
	w       *wire
	opens   error
	session bool
	said    []string
	end     context.CancelFunc
	ended   sync.WaitGroup
}

func newALink() *aLink {
	l := &aLink{}
	l.Link = New(Config{Interface: "eth0",
		Found:   func(a netip.Addr) { l.said = append(l.said, a.String()) },
		Lost:    func(err error) { l.said = append(l.said, err.Error()) },
		Session: func() bool { return l.session },
	})
	l.open = func(*Config) (socket, error) {
		l.door.Lock()
		defer l.door.Unlock()
		if l.opens != nil {
			return nil, l.opens
		}
		l.w = &wire{in: make(chan packet), over: make(chan struct{})}
		return l.w, nil
	}
	ctx, cancel := context.WithCancel(context.Background())
	l.end = cancel
	l.ended.Go(func() { l.Run(ctx) })
	synctest.Wait()
	return l
}

// refuse has the interface be opened no more, or again.
func (l *aLink) refuse(err error) {
	l.door.Lock()
	defer l.door.Unlock()
	l.opens = err
}

func (l *aLink) advertise(from netip.Addr, counts time.Duration) {
	l.door.Lock()
	w := l.w
	l.door.Unlock()
	w.in <- packet{advert(counts, nil), 255, from}
	synctest.Wait()
}

// want takes what was said since the last time.
func (l *aLink) want(t *testing.T, want ...string) {
	t.Helper()
	synctest.Wait()
	if !slices.EqualFunc(l.said, want, strings.Contains) {
		t.Errorf("said %q, want %q", l.said, want)
	}
	l.said = nil
}

func inBubble(t *testing.T, f func(l *aLink)) {
	synctest.Test(t, func(t *testing.T) {
		l := newALink()
		f(l)
		l.end()
		l.ended.Wait()
	})
}

// We advertise ourselves often to begin with, at once when a router comes, then every 10 s, and at the end with lifetime 0.
func TestAdvertises(t *testing.T) {
	inBubble(t, func(l *aLink) {
		begin := time.Now()
		time.Sleep(25*time.Second + 500*time.Millisecond)
		l.advertise(router, lifetime)
		time.Sleep(2 * time.Second)
		for range 300 { // somebody asks all the time
			l.w.in <- packet{solicitation(), 255, router}
		}
		l.end()
		l.ended.Wait()
		if l.w.solicited != 3 {
			t.Errorf("asked %d times", l.w.solicited)
		}
		var got []string
		for i, when := range l.w.when {
			got = append(got, fmt.Sprint(when.Sub(begin), l.w.sent[i]))
		}
		want := []string{"0s 30s", "1s 30s", "2s 30s", "3s 30s", "13s 30s", "23s 30s", "25.5s 30s", "27.5s 30s", "28.5s 30s", "29.5s 30s", "30.49s 0s"}
		if !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	})
}

// The first router is kept as long as it has a session or is heard, and another comes when it is gone, or has said that it ends.
func TestRouters(t *testing.T) {
	inBubble(t, func(l *aLink) {
		if s := l.Status(); s != "eth0: no router was heard yet" {
			t.Error(s)
		}
		l.advertise(router, lifetime)
		l.want(t, "fe80::2%eth0")
		if s := l.Status(); s != "" {
			t.Error(s)
		}
		time.Sleep(time.Minute)
		l.want(t) // nobody else is there

		l.advertise(router, lifetime)
		l.advertise(third, lifetime)
		l.want(t)
		if s := l.Status(); s != "eth0: another router, fe80::3%eth0, is ignored" {
			t.Error(s)
		}
		l.session = true
		time.Sleep(time.Minute)
		l.advertise(third, lifetime)
		l.advertise(router, 0)
		time.Sleep(time.Minute)
		l.advertise(third, lifetime)
		l.want(t)
		l.session = false
		l.advertise(third, lifetime)
		l.want(t, "eth0: the router fe80::2%eth0 is gone, and there is fe80::3%eth0", "fe80::3%eth0")
		if s := l.Status(); s != "" {
			t.Error(s)
		}
		l.advertise(third, 0)
		l.want(t)
		l.advertise(third, lifetime)
		l.want(t, "is gone", "fe80::3%eth0") // it has begun again
		l.advertise(third, 0)
		l.advertise(router, 0) // one without a default route
		l.want(t, "is gone", "fe80::2%eth0")
	})
}

// What is malformed, routed, or ours is nobody's.
func TestStrangers(t *testing.T) {
	inBubble(t, func(l *aLink) {
		l.advertise(ours, lifetime)
		for _, p := range []packet{{advert(lifetime, nil), 64, router}, {advert(lifetime, nil), 255, netip.MustParseAddr("2001:db8::2")}, {nil, 255, router},
			{make([]byte, 1500), 255, router}} {
			l.w.in <- p
		}
		l.want(t)
		if s := l.Status(); s != "eth0: no router was heard yet" {
			t.Error(s)
		}
	})
}

// Advertisements without a pause, from ever other addresses, are read at a bounded rate, change nothing, and cost one look at our
// own addresses a second.
func TestFlood(t *testing.T) {
	inBubble(t, func(l *aLink) {
		l.advertise(router, lifetime)
		l.want(t, "fe80::2%eth0")
		l.session = true
		begin, asks := time.Now(), l.w.asks
		for i := range 1000 {
			a := third.As16()
			a[8], a[9] = byte(i>>8), byte(i)
			l.advertise(netip.AddrFrom16(a), lifetime)
		}
		took := time.Since(begin)
		if took < 9*time.Second || l.w.asks-asks > 1+int(took/time.Second) {
			t.Errorf("1000 in %v, and %d looks", took, l.w.asks-asks)
		}
		l.want(t)
	})
}

// The interface comes, goes and comes back.
func TestInterface(t *testing.T) {
	inBubble(t, func(l *aLink) {
		gone := errors.New("gone")
		l.advertise(router, lifetime)
		l.want(t, "fe80::2%eth0")
		l.refuse(gone)
		l.w.mu.Lock()
		l.w.down = gone
		l.w.mu.Unlock()
		time.Sleep(10 * time.Second)
		l.want(t, "eth0: gone")
		if s := l.Status(); s != "eth0: gone" {
			t.Error(s)
		}
		l.refuse(nil)
		time.Sleep(2 * time.Second)
		l.advertise(third, lifetime)
		l.want(t, "fe80::3%eth0")
	})
}
