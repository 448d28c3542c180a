package main

import (
	"context"
	"net"
	"slices"
	"sync"
	"time"
)

// A who is a client: the user and process behind a Unix socket, or an address.
type who struct {
	user string
	pid  int32 // 0: unknown
}

// A gate limits the number of clients at a time, with a quarter for one process, at least one, and three quarters for one
// user. Others wait in turn.
type gate struct {
	size int

	mu      sync.Mutex
	inside  []who
	waiting []*visitor
	shut    chan struct{} // closed when the gate is empty; nil until empty is called
}

// A visitor waits at a gate.
type visitor struct {
	who
	in chan struct{} // closed when it is let in
}

func newGate(n int) *gate { return &gate{size: n} }

// room reports whether there is room for one more of w. g.mu is held.
func (g *gate) room(w who) bool {
	users, processes := 0, 0
	for _, x := range g.inside {
		if x.user == w.user {
			users++
		}
		if x == w && w.pid != 0 {
			processes++
		}
	}
	return g.shut == nil && len(g.inside) < g.size && users < max(g.size*3/4, 1) && processes < max(g.size/4, 1)
}

// enter waits for a place with a timeout.
func (g *gate) enter(ctx context.Context, w who, d time.Duration) bool {
	g.mu.Lock()
	if g.room(w) {
		g.inside = append(g.inside, w)
		g.mu.Unlock()
		return true
	}
	if d == 0 || g.shut != nil {
		g.mu.Unlock()
		return false
	}
	v := &visitor{w, make(chan struct{})}
	g.waiting = append(g.waiting, v)
	g.mu.Unlock()
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-v.in:
		return true
	case <-t.C:
	case <-ctx.Done():
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	i := slices.Index(g.waiting, v)
	if i < 0 {
		return true // at the same time as the timeout
	}
	g.waiting = slices.Delete(g.waiting, i, i+1)
	return false
}

// leave passes the place to the first visitor that may have it.
func (g *gate) leave(w who) {
	g.mu.Lock()
	defer g.mu.Unlock()
	i := slices.Index(g.inside, w)
	g.inside = slices.Delete(g.inside, i, i+1)
	g.waiting = slices.DeleteFunc(g.waiting, func(v *visitor) bool {
		if !g.room(v.who) {
			return false
		}
		g.inside = append(g.inside, v.who)
		close(v.in)
		return true
	})
	if g.shut != nil && len(g.inside) == 0 {
		close(g.shut)
	}
}

// empty closes the gate and waits until it is empty.
func (g *gate) empty() {
	g.mu.Lock()
	if g.shut == nil {
		if g.shut = make(chan struct{}); len(g.inside) == 0 {
			close(g.shut)
		}
	}
	g.mu.Unlock()
	<-g.shut
}

// A rate limits the rate of requests.
type rate struct {
	first chan struct{} // held by the next request
	next  time.Time     // when the next one is due
}

func newRate() *rate { return &rate{first: make(chan struct{}, 1)} }

// wait waits until a request may proceed. Requests take turns; those of disconnected clients are skipped.
func (r *rate) wait(ctx context.Context) error {
	select {
	case r.first <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-r.first }()
	now := time.Now()
	if burst := now.Add(-maxBurst * perRequest); r.next.Before(burst) {
		r.next = burst
	}
	if d := r.next.Sub(now); d > 0 {
		if err := sleep(ctx, d); err != nil {
			return err
		}
	}
	r.next = r.next.Add(perRequest)
	return nil
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// limited is a Listener that refuses connections beyond a limit.
type limited struct {
	net.Listener
	conns *gate
}

const turnedAway = "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n" +
	`{"error":"too many clients are connected: end one"}` + "\n"

// Accept returns the next connection within the limit.
func (l *limited) Accept() (net.Conn, error) {
	for refused := 1; ; refused++ {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		w := peerOf(c)
		if l.conns.enter(context.Background(), w, 0) {
			return &counted{Conn: c, who: w, g: l.conns}, nil
		}
		c.SetDeadline(time.Now().Add(time.Millisecond))
		c.Write([]byte(turnedAway))
		c.Close()
		if refused%maxRefused == 0 {
			time.Sleep(time.Millisecond) // slow down a flood; other clients wait as well
		}
	}
}

// counted is a connection with a place.
type counted struct {
	net.Conn
	who
	g    *gate
	once sync.Once
}

func (c *counted) Close() error {
	err := c.Conn.Close()
	c.once.Do(func() { c.g.leave(c.who) })
	return err
}

type whoKey struct{}

// withWho adds the client of a connection to its requests.
func withWho(ctx context.Context, c net.Conn) context.Context {
	if x, ok := c.(*counted); ok {
		return context.WithValue(ctx, whoKey{}, x.who)
	}
	return ctx
}

func whoIn(ctx context.Context) who {
	w, _ := ctx.Value(whoKey{}).(who)
	return w
}

// hostOf returns the address of a TCP client.
func hostOf(c net.Conn) who {
	host, _, _ := net.SplitHostPort(c.RemoteAddr().String())
	return who{user: host}
}
