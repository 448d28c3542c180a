package bgp

import (
	"bufio"
	"context"
	"maps"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vxswitch/vxswitch/evpn/internal/route"
	"github.com/vxswitch/vxswitch/frame"
)

// A reader is a peer that takes what is said when it wants to. Between it and us nothing is buffered.
type reader struct {
	script
	d decoder

	mu     sync.Mutex
	routes map[route.Key]route.Route
	heard  int // routes
	gone   int // withdrawals of routes that it does not have
}

func (r *reader) learned(x *route.Route) { r.heard++; r.routes[x.Key] = *x }
func (r *reader) ended()                 {}
func (r *reader) malformed(why string)   { r.t.Error(why) }
func (r *reader) withdrawn(k *route.Key) {
	if _, ok := r.routes[*k]; !ok {
		r.gone++
	}
	delete(r.routes, *k)
}

// newReader opens a session of the peer at addr.
func newReader(t *testing.T, b *BGP, addr netip.Addr) *reader {
	t.Helper()
	ours, theirs := net.Pipe()
	p := (*b.peers.Load())[addr]
	p.running.Go(func() { p.failed(second(p.session(p.location(), ours, false))) })
	r := &reader{script: script{t, theirs, bufio.NewReaderSize(theirs, 1<<10)}, d: decoder{agreement: internal}, routes: map[route.Key]route.Route{}}
	r.want(typeOpen)
	r.say(helloAs(addr.As4(), 0, 0))
	r.want(typeKeepalive)
	r.say(appendKeepalive(nil))
	return r
}

func second(_ bool, err error) error { return err }

// read reads until the connection ends, or forever; keepalives go the other way.
func (r *reader) read(ctx context.Context) {
	go func() {
		for tick := time.NewTicker(2 * time.Second); ; {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				if _, err := r.Write(appendKeepalive(nil)); err != nil {
					return
				}
			}
		}
	}()
	for ctx.Err() == nil && r.one() {
	}
}

// one reads a message.
func (r *reader) one() bool {
	typ, body, err := r.next()
	if err != nil {
		return false
	}
	if typ == typeUpdate {
		r.mu.Lock()
		defer r.mu.Unlock()
		if n := r.d.update(body, r); n != nil {
			r.t.Error(n)
		}
	}
	return true
}

func (r *reader) has(want map[route.Key]route.Route) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Equal(r.routes, want)
}

// waiting returns how many keys a peer has still to be told of.
func waiting(b *BGP, addr netip.Addr) (n int) {
	s := (*b.peers.Load())[addr].current
	b.out.mu.Lock()
	defer b.out.mu.Unlock()
	return len(s.queue.keys)
}

// A peer stops reading while 100,000 routes change: what waits for it is bounded by the routes there are, the other peer is told
// at once, and when it reads on it is told the last state of each route only. Then it reads nothing for longer than the hold time.
func TestSlowPeer(t *testing.T) {
	const hosts, changes, step = 2000, 100_000, 1000
	synctest.Test(t, func(t *testing.T) {
		slowAddr, fastAddr := netip.MustParseAddr("192.0.2.2"), netip.MustParseAddr("192.0.2.3")
		b, err := New(Config{AS: 65000, RouterID: netip.MustParseAddr("192.0.2.1"), Peers: []Peer{{Addr: slowAddr, AS: 65000, Passive: true}, {Addr: fastAddr, AS: 65000, Passive: true}}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- b.Run(ctx, newHeard()) }()
		synctest.Wait()
		slow, fast := newReader(t, b, slowAddr), newReader(t, b, fastAddr)
		go fast.read(ctx)

		want := map[route.Key]route.Route{}
		say := func(r route.Route) { want[r.Key] = r; b.Advertise(r) }
		all := many(hosts)
		for _, r := range all {
			say(r)
		}
		for waiting(b, slowAddr) > 0 || !slow.has(want) {
			slow.one()
		}
		synctest.Wait()
		most := 0
		for i := range changes {
			r := all[i%hosts]
			switch i % 4 {
			case 0: // a guest that comes and goes
				r.MAC = frame.MAC{6, 0, byte(i >> 24), byte(i >> 16), byte(i >> 8), byte(i)}
				b.Advertise(r)
				b.Withdraw(r.Key)
			case 1: // a host goes, or is back
				if _, ok := want[r.Key]; ok {
					delete(want, r.Key)
					b.Withdraw(r.Key)
				} else {
					say(r)
				}
			default:
				r.Labels[0] = uint32(i)
				say(r)
			}
			if i%step == step-1 {
				synctest.Wait()
				most = max(most, waiting(b, slowAddr))
				if n := waiting(b, fastAddr); n > 0 || !fast.has(want) {
					t.Fatalf("after %d changes, %d routes wait for who reads", i+1, n)
				}
			}
		}
		if most > hosts {
			t.Errorf("%d routes wait for the peer that does not read, of %d", most, hosts)
		}
		before := slow.heard
		for waiting(b, slowAddr) > 0 || !slow.has(want) {
			slow.one()
		}
		if n := slow.heard - before; n > hosts+batch || slow.gone > 0 {
			t.Errorf("it is told of %d routes, and of %d withdrawals of what it has not, for %d", n, slow.gone, hosts)
		}

		for _, r := range all {
			r.Labels[0] = 7
			say(r)
		}
		time.Sleep(4 * time.Second) // the hold time is 9 s
		slow.say(appendKeepalive(nil))
		time.Sleep(4 * time.Second)
		slow.say(appendKeepalive(nil))
		time.Sleep(2 * time.Second)
		synctest.Wait()
		for _, s := range b.Status() {
			switch ok := s.State == "established"; {
			case s.Addr == fastAddr && (!ok || !fast.has(want)):
				t.Errorf("who reads: %+v", s)
			case s.Addr == slowAddr && (ok || s.Last == nil || !strings.Contains(s.Last.Error(), "read nothing for 9s")):
				t.Errorf("who does not: %+v", s)
			}
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		fast.Close()
	})
}

// A deadlines is a connection that nobody reads.
type deadlines struct {
	net.Conn
	set, wrote time.Time
}

func (c *deadlines) SetWriteDeadline(t time.Time) error { c.set = t; return nil }

func (c *deadlines) Write([]byte) (int, error) {
	c.wrote = c.set
	return 0, os.ErrDeadlineExceeded
}

// What is written when the session has ended does not wait for the hold time.
func TestEndOfSlowPeer(t *testing.T) {
	c, stop := &deadlines{}, make(chan struct{})
	close(stop)
	s := &session{conn: c, hold: time.Hour}
	latest := time.Now().Add(time.Hour)
	if err := s.push(appendKeepalive(nil), stop); err == nil || !c.wrote.Before(latest) {
		t.Errorf("%v, until %v", err, c.wrote)
	}
}
