package main

import (
	"context"
	"net"
	"sync"
	"time"
)

// A gate lets in so many at a time.
type gate chan struct{}

func newGate(n int) gate { return make(gate, n) }

// enter waits for a place, at most so long.
func (g gate) enter(ctx context.Context, d time.Duration) bool {
	select {
	case g <- struct{}{}:
		return true
	default:
	}
	if d == 0 {
		return false
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case g <- struct{}{}:
		return true
	case <-t.C:
	case <-ctx.Done():
	}
	return false
}

func (g gate) leave() { <-g }

// empty waits until nobody is inside, and lets nobody in again.
func (g gate) empty() {
	for range cap(g) {
		g <- struct{}{}
	}
}

// rate spaces requests.
type rate struct {
	mu   sync.Mutex
	next time.Time // when the next one would be due
}

// wait returns when a request may go on.
func (r *rate) wait(ctx context.Context) error {
	r.mu.Lock()
	now := time.Now()
	if first := now.Add(-maxBurst * perRequest); r.next.Before(first) {
		r.next = first
	}
	d := r.next.Sub(now)
	r.next = r.next.Add(perRequest)
	r.mu.Unlock()
	if d <= 0 {
		return nil
	}
	return sleep(ctx, d)
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

// limited is a Listener that turns away connections beyond a bound.
type limited struct {
	net.Listener
	s *server
}

const turnedAway = "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n" +
	`{"error":"too many clients are connected: end one"}` + "\n"

// Accept returns the next connection there is room for.
func (l *limited) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if l.s.conns.enter(context.Background(), 0) {
			return &counted{Conn: c, g: l.s.conns}, nil
		}
		c.SetDeadline(time.Now().Add(time.Millisecond))
		c.Write([]byte(turnedAway))
		c.Close()
		time.Sleep(perRequest) // who floods waits in the kernel's queue
	}
}

// counted is a connection that has a place.
type counted struct {
	net.Conn
	g    gate
	once sync.Once
}

func (c *counted) Close() error {
	err := c.Conn.Close()
	c.once.Do(c.g.leave)
	return err
}
