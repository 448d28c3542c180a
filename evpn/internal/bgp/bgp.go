package bgp

import (
	"context"
	"fmt"
	"hash/maphash"
	"net/netip"
	"sync"

	"github.com/vxswitch/vxswitch/evpn/internal/engine"
	"github.com/vxswitch/vxswitch/evpn/internal/route"
)

// BGP is an [engine.Engine] with sessions of BGP.
type BGP struct {
	conf  Config
	id    [4]byte
	seed  maphash.Seed
	peers map[netip.Addr]*peer
	out   out

	mu sync.Mutex // around calls of h, and what peers know of their routes
	h  engine.Handler
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
	b := &BGP{conf: c, id: c.RouterID.As4(), seed: maphash.MakeSeed(), peers: make(map[netip.Addr]*peer)}
	b.out.routes = make(map[route.Key]route.Route)
	for _, p := range c.Peers {
		p = p.full()
		b.peers[p.Addr] = newPeer(b, p)
	}
	return b, nil
}

// Run keeps the sessions until ctx is done; then it tells the peers, and waits for all it has started. It is called once.
func (b *BGP) Run(ctx context.Context, h engine.Handler) error {
	b.h = h
	var wg sync.WaitGroup
	ctx, cancel := context.WithCancel(ctx)
	defer wg.Wait()
	defer cancel()
	for _, at := range b.conf.Listen {
		l, err := b.listen(ctx, at)
		if err != nil {
			return fmt.Errorf("bgp: listen on %v: %w", at, err)
		}
		wg.Go(func() { b.accept(ctx, l, &wg) })
	}
	for _, p := range b.peers {
		wg.Go(func() { p.run(ctx) })
	}
	<-ctx.Done()
	return nil
}

// Advertise says a route to all peers. It has at most 128 communities.
func (b *BGP) Advertise(r route.Route) { b.out.put(r.Key, &r) }

// Withdraw takes a route back.
func (b *BGP) Withdraw(k route.Key) { b.out.put(k, nil) }

// Refresh asks all peers to say their routes again (RFC 2918): what is imported has changed.
func (b *BGP) Refresh() {
	for _, p := range b.peers {
		p.mu.Lock()
		s := p.current
		p.mu.Unlock()
		if s != nil && s.open.refresh {
			s.ask.Store(true)
			s.queue.poke()
		}
	}
}
