package bgp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"net/netip"
	"sync"
	"sync/atomic"

	"github.com/vxswitch/vxswitch/evpn/internal/engine"
	"github.com/vxswitch/vxswitch/evpn/internal/route"
)

// BGP is an [engine.Engine] with sessions of BGP.
//
// Mutexes are taken in the order setting, mu, peer.mu; out.mu comes last, and h is called with mu alone.
type BGP struct {
	conf  Config // Peers are those of New
	id    [4]byte
	seed  maphash.Seed
	peers atomic.Pointer[map[netip.Addr]*peer] // by key; SetPeers makes another map
	out   out

	setting   sync.Mutex      // around changes of the set of peers
	ctx       context.Context // of Run, nil before it
	listeners []*listener

	mu    sync.Mutex // around calls of h, and what is known of the routes of peers
	h     engine.Handler
	limit int  // Config.MaxRoutes, or SetPeers'
	share int  // of it that each peer may have in any case
	taken int  // of it: the routes of each peer, or its share if that is more
	short bool // a peer misses some, for which there was no room
}

var _ engine.Engine = (*BGP)(nil)

// New checks c. Nothing is opened before Run.
func New(c Config) (*BGP, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	if c.In == nil {
		c.In = func(f func()) { f() }
	}
	b := &BGP{conf: c, id: c.RouterID.As4(), seed: maphash.MakeSeed()}
	b.out.routes = make(map[route.Key]route.Route)
	peers := make(map[netip.Addr]*peer)
	for _, p := range c.Peers {
		p = p.withDefaults()
		peers[p.key()] = newPeer(b, p)
	}
	b.setPeers(peers, c.MaxRoutes)
	return b, nil
}

func (b *BGP) setPeers(peers map[netip.Addr]*peer, limit int) {
	b.peers.Store(&peers)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.limit = cmp.Or(limit, DefaultAllRoutes)
	b.share, b.taken = b.limit/2/max(len(peers), 1), 0
	for _, p := range peers {
		b.taken += max(len(p.known), b.share)
	}
	b.relieve()
}

// room reports whether a peer may have one more route than n, within the limit of all peers. b.mu is held.
func (b *BGP) room(n int) bool {
	if n < b.share {
		return true
	}
	if b.taken >= b.limit {
		return false
	}
	b.taken++
	return true
}

// release says that a peer has one route less than n. b.mu is held.
func (b *BGP) release(n int) {
	if n > b.share {
		b.taken--
	}
}

// Run keeps the sessions until ctx is done; then it tells the peers, and waits for all it has started. It is called once.
func (b *BGP) Run(ctx context.Context, h engine.Handler) error {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer func() {
		cancel()
		b.setting.Lock() // no peer begins from now on
		defer b.setting.Unlock()
		for _, p := range *b.peers.Load() {
			p.stop(nil)
		}
		wg.Wait()
	}()
	b.setting.Lock()
	b.h, b.ctx = h, ctx
	err := b.open(&wg)
	for _, p := range *b.peers.Load() {
		p.start(ctx)
	}
	b.setting.Unlock()
	if err == nil {
		<-ctx.Done()
	}
	return err
}

// open opens the listeners.
func (b *BGP) open(wg *sync.WaitGroup) error {
	for _, at := range b.conf.Listen {
		l, err := b.listen(b.ctx, at)
		if err != nil {
			return fmt.Errorf("bgp: listen on %v: %w", at, err)
		}
		b.listeners = append(b.listeners, l)
		wg.Go(func() { b.accept(b.ctx, l) })
	}
	return nil
}

// SetPeers replaces the peers, and how many routes they may have, which are those of a Config that was checked. Sessions with peers
// that stay as they are go on; others end, and their routes are gone when it returns. One whose settings are others is opened by us after
// reopenPause.
func (b *BGP) SetPeers(list []Peer, maxRoutes int) error {
	b.setting.Lock()
	defer b.setting.Unlock()
	was, now := *b.peers.Load(), make(map[netip.Addr]*peer)
	for _, p := range list {
		p = p.withDefaults()
		if old := was[p.key()]; old != nil && old.Peer == p {
			now[p.key()] = old
		} else {
			now[p.key()] = newPeer(b, p)
		}
	}
	running := b.ctx != nil && b.ctx.Err() == nil
	var errs []error
	for addr, p := range was {
		if now[addr] == p {
			continue
		}
		if running {
			p.stop(errRemoved)
		}
		if next := now[addr]; next != nil {
			next.reopen = p.reopen // neither runs
		}
		if now[addr] == nil && p.Addr.IsValid() {
			errs = append(errs, b.expect(&Peer{Addr: addr}, p.Password != ""))
		}
	}
	for addr, p := range now {
		if was[addr] == p {
			continue
		}
		errs = append(errs, b.expect(&p.Peer, was[addr] != nil && was[addr].Password != ""))
		if running {
			p.start(b.ctx)
		}
	}
	b.setPeers(now, maxRoutes)
	return errors.Join(errs...)
}

var errRemoved = errors.New("the peer was removed, or has other settings")

// Advertise says a route to all peers. It has at most 128 communities.
func (b *BGP) Advertise(r route.Route) { b.out.put(r.Key, &r) }

// Withdraw takes a route back.
func (b *BGP) Withdraw(k route.Key) { b.out.put(k, nil) }

// Between implements engine.Engine.
func (b *BGP) Between(f func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f()
}

// Reset ends the session with a peer since the path to it is dead (RFC 9384).
func (b *BGP) Reset(peer netip.Addr) {
	p := (*b.peers.Load())[peer]
	if p == nil {
		return
	}
	p.mu.Lock()
	s := p.current
	p.mu.Unlock()
	if s != nil {
		s.end(notify(errCease, ceaseBFD))
	}
}
