package bgp

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"math/rand/v2"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/vxswitch/vxswitch/evpn/internal/route"
	"github.com/vxswitch/vxswitch/evpn/internal/unnumbered"
)

// peer is a neighbour with at most one session that has got beyond OPEN.
type peer struct {
	Peer
	b *BGP

	link    *unnumbered.Link // of Peer.Interface, or nil
	ctx     context.Context  // done: no more sessions; set by start, under mu, as running.Add is called
	cancel  context.CancelCauseFunc
	running sync.WaitGroup // run, the link, and sessions that the peer has begun
	moved   chan struct{}  // another address is known: it is tried at once

	mu       sync.Mutex
	at       location
	current  *session      // in OpenConfirm or Established, or nil
	change   chan struct{} // closed, and replaced, when current has ended or at is another
	incoming net.Conn      // one of the peer's before OpenConfirm, or nil
	dialing  bool          // one of ours has said OPEN, and runs
	reopen   time.Time     // we do not connect before: see reopenPause
	state    string
	since    time.Time
	last     error
	left     map[string]uint64 // by reason, of which there are a few

	in, sent atomic.Uint64 // messages

	// Under BGP.mu.
	id    netip.Addr        // whose routes these are
	known map[uint64]uint32 // hashes of the keys of its routes, and in which session they were last heard
	epoch uint32            // counts sessions
	stale *time.Timer       // until when routes of a session before the current one stay

	missing int         // routes left out at a limit since it was asked for all; those said twice count twice
	asked   time.Time   // when
	asking  *time.Timer // asks it later
}

func newPeer(b *BGP, c Peer) *peer {
	p := &peer{Peer: c, b: b, state: "idle", since: time.Now(), change: make(chan struct{}), left: make(map[string]uint64), known: make(map[uint64]uint32),
		id: c.Addr, moved: make(chan struct{}, 1)}
	if c.Interface != "" {
		p.link = p.newLink()
	}
	return p
}

// set notes a state. The caller has p.mu.
func (p *peer) set(state string) {
	if p.state != state {
		p.state, p.since = state, time.Now()
	}
}

// start has it run until stop.
func (p *peer) start(ctx context.Context) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ctx, p.cancel = context.WithCancelCause(ctx)
	if p.link != nil {
		p.running.Go(func() { p.link.Run(p.ctx) })
	} else {
		p.at = location{p.Addr, p.ctx, p.cancel}
	}
	p.running.Go(func() { p.run(p.ctx) })
}

// stop ends the session, and waits until it has ended. With a cause, routes of sessions before are gone too.
func (p *peer) stop(cause error) {
	p.mu.Lock()
	if p.cancel != nil {
		p.cancel(cause)
	}
	p.mu.Unlock()
	p.running.Wait()
	p.b.mu.Lock()
	defer p.b.mu.Unlock()
	if p.stale != nil {
		p.stale.Stop()
		if p.stale = nil; cause != nil {
			p.gone(cause)
		}
	}
}

// run connects whenever there is no session.
func (p *peer) run(ctx context.Context) {
	pause := time.Duration(0)
	for p.idle(ctx, &pause) {
		at := p.location()
		if at.ctx == nil {
			continue
		}
		c, err := p.dial(at)
		established, begun := false, time.Now()
		if err == nil && !p.begin() {
			c.Close() // meanwhile the peer has connected
			continue
		}
		if err == nil {
			established, err = p.session(at, c, true)
			p.mu.Lock()
			p.dialing = false
			p.mu.Unlock()
		}
		if cause := context.Cause(at.ctx); isLost(cause) {
			err = cause
		}
		p.failed(err)
		if pause == 0 || established && (!refused(err) || time.Since(begun) > time.Minute) {
			pause = p.Retry
		} else {
			pause = min(2*pause, time.Minute)
		}
	}
}

// reopenPause is how long we do not connect to a peer after we have ended a session with it ourselves, so that it can forget the old session:
// FRR 8.4 was seen to keep a dead one when a neighbour of a listen range came back at once.
const reopenPause = 2 * time.Second

// idle waits for a pause, three quarters of it or more, or until the peer has another address; then until there is no session, an
// address, and reopen has come. It returns false at the end of ctx.
func (p *peer) idle(ctx context.Context, pause *time.Duration) bool {
	t := time.NewTimer(*pause - time.Duration(rand.Int64N(int64(*pause/4)+1)))
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-p.moved:
		*pause = 0
	case <-t.C:
	}
	for {
		p.mu.Lock()
		change, wait := p.change, time.Until(p.reopen)
		var opens <-chan time.Time
		ready := false
		switch {
		case p.current != nil:
		case p.at.ctx == nil:
			p.set("idle")
		case p.Passive:
			p.set("active")
		case wait > 0:
			p.set("idle")
			t.Reset(wait)
			opens = t.C
		default:
			p.set("connect")
			ready = true
		}
		p.mu.Unlock()
		if ready {
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-change:
		case <-opens:
		}
	}
}

// begin notes that a connection of ours is there. It returns false if there is a session.
func (p *peer) begin() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dialing = p.current == nil
	return p.dialing
}

// failed notes why a connection ended, or was none, unless another was kept in its place.
func (p *peer) failed(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil && !(collided(err) && (p.current != nil || errors.Is(err, errCollision))) {
		p.last = err
	}
	if p.current == nil {
		p.set("idle")
	}
}

// refused reports whether a session ended since one side does not take what the other says, so that the next is likely to end the same way.
func refused(err error) bool {
	n, ok := errors.AsType[*Notification](err)
	return ok && (n.Code <= errUpdate || n.Code == errCease && n.Subcode == ceaseRoutes)
}

// deliberate reports whether we ended a session, for this cause, though the peer was there.
func deliberate(cause error) bool {
	n, ok := errors.AsType[*Notification](cause)
	return ok && n.Code != errHold && !(n.Code == errCease && n.Subcode == ceaseBFD)
}

// collided reports whether a connection ended since another was kept, as we or the peer saw it.
func collided(err error) bool {
	n, ok := errors.AsType[*Notification](err)
	return errors.Is(err, errCollision) || ok && n.Code == errCease && n.Subcode == ceaseCollision
}

func (p *peer) dial(at location) (c net.Conn, err error) {
	d := net.Dialer{Timeout: openTime, Control: func(_, _ string, c syscall.RawConn) error {
		return onSocket(c, func(fd uintptr) error { return p.prepare(fd, at.addr) })
	}}
	p.b.conf.In(func() {
		if p.Local.IsValid() {
			d.LocalAddr = net.TCPAddrFromAddrPort(netip.AddrPortFrom(withIndex(p.Local), 0))
		}
		c, err = d.DialContext(at.ctx, "tcp", netip.AddrPortFrom(withIndex(at.addr), p.Port).String())
	})
	return c, err
}

// up begins a session. The peer may keep what it said in the one before (RFC 4724, section 4.2).
func (p *peer) up(addr netip.Addr, o *open) {
	p.b.mu.Lock()
	defer p.b.mu.Unlock()
	if p.stale != nil {
		p.stale.Stop()
		p.stale = nil
		if addr != p.id {
			p.gone(fmt.Errorf("the peer is at %v now", addr))
		} else if !o.kept {
			p.gone(errors.New("the peer has restarted and kept nothing"))
		} else {
			p.keep(p.MaxStale, func() { p.over() })
		}
	}
	p.epoch++
	p.id, p.missing = addr, 0
	p.b.h.Up(p.id)
}

// down ends a session. Its routes stay for a while if the peer has asked for that and may come back.
func (p *peer) down(o *open, err error) {
	p.b.mu.Lock()
	defer p.b.mu.Unlock()
	twice := p.stale != nil
	if twice {
		p.stale.Stop()
		p.stale = nil
	}
	if n := (*Notification)(nil); errors.As(err, &n) || errors.Is(err, context.Canceled) || o.restart == 0 || p.MaxStale < 0 {
		p.gone(err)
		return
	}
	if twice {
		p.over() // what was not said again is not kept a second time
	}
	p.keep(min(o.restart, p.MaxStale), func() { p.gone(err) })
	p.b.h.Stale(p.id, err)
}

// keep calls f after d, unless a session comes or goes before.
func (p *peer) keep(d time.Duration, f func()) {
	var t *time.Timer
	t = time.AfterFunc(d, func() {
		p.b.mu.Lock()
		defer p.b.mu.Unlock()
		if p.stale == t {
			p.stale = nil
			f()
		}
	})
	p.stale = t
}

// gone forgets all routes of the peer. BGP.mu is held, as in over and the methods of intake.
func (p *peer) gone(err error) {
	p.b.taken -= max(len(p.known)-p.b.share, 0)
	clear(p.known)
	p.missing = 0
	p.b.h.Down(p.id, err)
	p.b.relieve()
}

// over ends the time in which routes of the session before stay.
func (p *peer) over() {
	if p.stale != nil {
		p.stale.Stop()
		p.stale = nil
	}
	for k, e := range p.known {
		if e != p.epoch {
			p.b.release(len(p.known))
			delete(p.known, k)
		}
	}
	p.b.h.Ended(p.id)
	p.b.relieve()
}

// intake is the sink of a session's UPDATEs.
type intake struct {
	*peer
	limited bool // Peer.MaxRoutes was met
}

func (p *intake) learned(r *route.Route) {
	h := maphash.Comparable(p.b.seed, r.Key)
	if _, ok := p.known[h]; !ok {
		switch {
		case len(p.known) >= p.MaxRoutes:
			p.limited = true
			p.leaveOut("limit")
			return
		case !p.b.room(len(p.known)):
			p.leaveOut("limit-of-all")
			return
		}
	}
	p.known[h] = p.epoch
	p.b.h.Learned(p.id, r)
}

// leaveOut leaves a route out for which there is no room.
func (p *intake) leaveOut(reason string) {
	p.missing++
	p.b.short = true
	p.malformed(reason)
}

func (p *intake) withdrawn(k *route.Key) {
	h := maphash.Comparable(p.b.seed, *k)
	if _, ok := p.known[h]; ok {
		p.b.release(len(p.known))
		delete(p.known, h)
		p.b.h.Withdrawn(p.id, k)
	}
}

func (p *intake) ended() { p.over() }

func (p *intake) malformed(reason string) {
	p.mu.Lock()
	p.left[reason]++
	p.mu.Unlock()
	p.b.h.Malformed(p.id, reason)
}
