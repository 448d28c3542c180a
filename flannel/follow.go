package flannel

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/vxswitch/vxswitch/frame"
)

// A follower is the running part of a Plane: one goroutine that has the table, and three that only wait for others.
//
//	watch  --- changes, ended --->  run: Mapper  --- rows, routes ---> Shape
//	misses --- events ----------->    |    ^
//	                                  +----+  renew: by a timer
type follower struct {
	p *Plane

	changes chan Change
	ended   chan error // of a watch
	misses  chan frame.Event
	renewed chan renewal
	relist  chan struct{} // ends the watch, so that another one begins with a snapshot
	retry   retry
	told    bool // ready is closed
	tasks   sync.WaitGroup
}

// A retry is when rows and routes that could not be passed on are passed again.
type retry struct {
	timer *time.Timer
	pause time.Duration
	said  string // the error
}

// A renewal is what has become of one.
type renewal struct {
	own *Own
	err error
}

func (f *follower) run(ctx context.Context, own *Own) error {
	ctx, cancel := context.WithCancel(ctx)
	defer f.tasks.Wait()
	defer cancel()
	f.tasks.Go(func() { f.watch(ctx) })
	var forget <-chan time.Time
	if p := f.p; p.mapper.cfg.Generation != 3 {
		if e := p.cfg.Shape.Misses(); e != nil {
			f.tasks.Go(func() { f.hear(ctx, e) })
		}
		t := time.NewTicker(max(p.cfg.MissAge/20, 100*time.Millisecond))
		defer t.Stop()
		forget = t.C
	}
	var links <-chan []netip.Prefix
	if f.p.cfg.Links == nil {
		links = f.p.cfg.Shape.Links()
	}
	renew := time.NewTimer(f.next(own))
	defer renew.Stop()
	f.retry.timer = time.NewTimer(time.Hour)
	f.retry.timer.Stop()
	defer f.retry.timer.Stop()
	for {
		var err error
		select {
		case <-ctx.Done():
			return ctx.Err()
		case c := <-f.changes:
			err = f.change(own, c)
		case err := <-f.ended:
			f.p.stale(err)
		case e := <-f.misses:
			f.answer(e)
		case now := <-forget:
			f.update(func(m *Mapper) { m.Forget(now.Add(-f.p.cfg.MissAge)) })
		case list := <-links:
			f.update(func(m *Mapper) { m.SetLinks(list) })
		case <-f.retry.timer.C:
			f.update(func(*Mapper) {})
		case <-renew.C:
			f.tasks.Go(func() { f.renew(ctx, *own) })
		case r := <-f.renewed:
			if err = f.hasRenewed(r); err == nil {
				own = r.own
				renew.Reset(f.later(r))
			}
		}
		if errors.Is(err, ErrLost) {
			f.withdraw()
			return err
		}
	}
}

var errWatchEnded = errors.New("the watch has ended")

// watch follows the store. Whenever a watch ends, it begins anew, with a snapshot. The pauses grow while watches give no more than that.
func (f *follower) watch(ctx context.Context) {
	for wait := firstRetry; ; wait = min(2*wait, lastRetry) {
		again, cancel := context.WithCancel(ctx)
		f.tasks.Go(func() {
			select {
			case <-f.relist:
				cancel()
			case <-again.Done():
			}
		})
		begun, followed := time.Now(), false
		err := f.p.cfg.Store.Watch(again, func(c Change) {
			followed = followed || !c.Snapshot
			select {
			case f.changes <- c:
			case <-again.Done():
			}
		})
		if followed || time.Since(begun) > lastRetry {
			wait = firstRetry
		}
		if err == nil {
			err = errWatchEnded
		}
		if again.Err() != nil { // by relist, or with ctx: no error, but snapshots are a pause apart
			wait = lastRetry
		} else {
			select {
			case f.ended <- err:
			case <-ctx.Done():
			}
		}
		cancel()
		if sleep(ctx, wait) != nil {
			return
		}
	}
}

// hear passes misses on.
func (f *follower) hear(ctx context.Context, events Misses) {
	defer events.Close()
	for {
		e, err := events.Next(ctx)
		if err != nil {
			return
		}
		select {
		case f.misses <- e:
		case <-ctx.Done():
			return
		}
	}
}

// burst is for how long changes are collected before they are passed on. A store whose changes never end must not keep them from the
// switch, or the lease from being renewed.
const burst = 20 * time.Millisecond

// change takes a change of leases, and those that have come meanwhile: their rows are passed on together. It returns an error if the
// lease is lost.
func (f *follower) change(own *Own, c Change) error {
	snapshot, begun := false, time.Now()
	f.update(func(m *Mapper) {
		for {
			snapshot = snapshot || c.Snapshot
			f.p.listed = f.p.listed || snapshot
			m.Apply(c)
			if lost := own.lost(c); lost != nil {
				f.p.lost = lost
			}
			if time.Since(begun) > burst {
				return
			}
			select {
			case c = <-f.changes:
				continue
			default:
			}
			return
		}
	})
	f.p.mu.Lock()
	defer f.p.mu.Unlock()
	if err := f.p.lost; err != nil {
		return err
	}
	if f.p.mapper.Missing() {
		select {
		case f.relist <- struct{}{}:
		default:
		}
	}
	if snapshot {
		f.p.fresh()
		f.tellReady()
	}
	return nil
}

// tellReady closes ready once all leases have been passed to the switch. p.mu is held.
func (f *follower) tellReady() {
	if !f.told && f.p.state.Snapshots > 0 && f.retry.pause == 0 {
		f.told = true
		close(f.p.ready)
	}
}

// lost returns an error that wraps ErrLost if a change takes the lease from the node.
func (own *Own) lost(c Change) error {
	key := own.Record.Key
	i := slices.IndexFunc(c.Set, func(r Record) bool { return r.Key == key })
	switch {
	case i >= 0 && !c.Set[i].Ours:
		if l, err := c.Set[i].Lease(); err == nil && c.Set[i].Node == nil && l.IPv4.PublicIP == own.IPv4.PublicIP && l.IPv6.PublicIP == own.IPv6.PublicIP {
			ip := cmp.Or(own.IPv4.PublicIP, own.IPv6.PublicIP)
			return fmt.Errorf("flannel: %v: another node, or another process here, has the public address %v, too: %w", own.Subnet, ip, ErrLost)
		}
		return fmt.Errorf("flannel: %v: somebody else has written %.300s: %w", own.Subnet, &c.Set[i], ErrLost)
	case i < 0 && (c.Snapshot || slices.Contains(c.Deleted, key)):
		return fmt.Errorf("flannel: %v: it is gone: %w", own.Subnet, ErrLost)
	}
	return nil
}

// update changes the table, and passes on its rows and routes. After an error, all of them are passed again, after a pause that grows.
func (f *follower) update(change func(m *Mapper)) {
	p, r := f.p, &f.retry
	p.mu.Lock()
	defer p.mu.Unlock()
	change(p.mapper)
	if p.lost != nil {
		return
	}
	err := p.flush()
	if err == nil {
		r.pause, r.said = 0, ""
		f.tellReady()
		return
	}
	if text := err.Error(); text != r.said {
		p.log.Warn("flannel: rows and routes are passed on again", "err", err)
		r.said = text
	}
	r.pause = min(max(2*r.pause, firstRetry), lastRetry)
	r.timer.Reset(r.pause)
}

// answer answers a miss.
func (f *follower) answer(e frame.Event) {
	f.update(func(m *Mapper) {
		if e.VNI != m.cfg.VNI {
			return
		}
		ok := false
		switch e.Kind {
		case frame.EventNeighbourMiss:
			ok = m.Neighbour(e.IP.Unmap(), time.Now())
		case frame.EventMACMiss:
			ok = m.MAC(e.MAC, time.Now())
		default:
			return
		}
		if f.p.state.Misses++; !ok {
			f.p.state.Unanswered++
		}
	})
}

// withdraw removes all rows and routes.
func (f *follower) withdraw() {
	p := f.p
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mapper.Reset(nil)
	p.listed = true
	if err := p.flush(); err != nil {
		p.log.Warn("flannel: rows", "err", err)
	}
}

// flush passes rows and routes on. p.mu is held.
func (p *Plane) flush() error {
	err := p.mapper.Flush(p.cfg.Owner, p.cfg.Shape)
	if p.listed {
		err = errors.Join(err, p.mapper.FlushRoutes(p.cfg.Shape.Routes))
	}
	p.name(p.mapper.News(), time.Now())
	return err
}

// name logs the leases that are not followed: of those of one second no more than 20, however many batches they come in.
func (p *Plane) name(news []*Refusal, now time.Time) {
	const most = 20
	if now.Sub(p.namedSince) >= time.Second {
		p.namedSince, p.named = now, 0
	}
	for _, r := range news {
		switch p.named++; {
		case p.named <= most:
			p.log.Warn("flannel: a lease is not followed", "key", r.Key, "reason", r.Reason.String(), "detail", r.Detail)
		case p.named == most+1:
			p.log.Warn("flannel: more leases are not followed, the status counts them")
		}
	}
}

// next returns the time until a lease is to be renewed; a reservation never is.
func (f *follower) next(own *Own) time.Duration {
	if own.Until.IsZero() {
		return math.MaxInt64
	}
	left := time.Until(own.Until)
	return left - min(f.p.cfg.Margin, left*2/3)
}

// later returns the time until the next renewal, after one that may have failed.
func (f *follower) later(r renewal) time.Duration {
	if r.err == nil {
		return f.next(r.own)
	}
	left := time.Until(r.own.Until)
	if left <= 0 {
		return time.Second
	}
	return min(max(left/10, firstRetry), time.Minute)
}

// renew renews a copy of the lease.
func (f *follower) renew(ctx context.Context, own Own) {
	err := f.p.cfg.Store.Renew(ctx, &own)
	select {
	case f.renewed <- renewal{&own, err}:
	case <-ctx.Done():
	}
}

// hasRenewed returns an error if the lease is lost.
func (f *follower) hasRenewed(r renewal) error {
	switch {
	case r.err == nil:
		f.p.setOwn(r.own)
	case errors.Is(r.err, ErrLost):
		return r.err
	default:
		f.p.mu.Lock()
		defer f.p.mu.Unlock()
		f.p.state.LastError = r.err.Error()
		if f.p.state.Stale.IsZero() { // else it has been said
			f.p.log.Warn("flannel: the lease is not renewed yet", "until", r.own.Until, "err", r.err)
		}
	}
	return nil
}
