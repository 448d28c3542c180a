package gobgp

import (
	"context"
	"fmt"
	"net/netip"

	"github.com/osrg/gobgp/v4/api"
	"github.com/osrg/gobgp/v4/pkg/apiutil"
	"github.com/osrg/gobgp/v4/pkg/packet/bgp"
)

// Loads end the sessions of peers with too many routes. A limit of gobgp would do so too, but gobgp then goes through all routes of a peer
// with each of its messages. Loads add up what a peer announces, which is as much as it has or more, and have gobgp count only when that
// is over the limit.
type loads struct {
	limit func(peer netip.Addr) int // 0 = none
	count func(loadKey) int         // of routes that the peer has
	end   func(peer netip.Addr, why string)
	of    map[loadKey]*load
}

type loadKey struct {
	peer   netip.Addr
	family bgp.Family
}

// A load is how many routes of a family a peer has at most.
type load struct {
	most  int
	next  int  // they are counted when most is larger
	ended bool // the session is over, or will be
}

func (b *BGP) loads() *loads {
	return &loads{b.limit, b.received, b.end, map[loadKey]*load{}}
}

// heard adds the paths of a message of a peer.
func (l *loads) heard(paths []*apiutil.Path) {
	for _, p := range paths {
		if p.Withdrawal {
			continue
		}
		k := loadKey{p.PeerAddress, p.Family}
		x := l.of[k]
		if x == nil {
			x = &load{next: l.limit(k.peer)}
			l.of[k] = x
		}
		if x.most++; x.next > 0 && x.most > x.next && !x.ended {
			l.check(k, x)
		}
	}
}

// check counts the routes of a peer. One that has as many as it may, and changes them, is counted again with every sixteenth of these.
func (l *loads) check(k loadKey, x *load) {
	limit := l.limit(k.peer)
	if x.most = l.count(k); x.most > limit {
		x.ended = true
		l.end(k.peer, fmt.Sprintf("more routes than its limit, %d", limit))
	}
	x.next = max(limit, x.most+limit/16)
}

// down forgets the routes of a peer.
func (l *loads) down(peer netip.Addr) {
	for _, f := range families {
		delete(l.of, loadKey{peer, f})
	}
}

// limit returns how many routes of a family a peer may have, 0 for any number.
func (b *BGP) limit(peer netip.Addr) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.peerOf(peer)
	return int(p.Limit)
}

// received counts the routes of a family that a peer has announced.
func (b *BGP) received(k loadKey) (n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.server == nil {
		return 0
	}
	_ = b.server.ListPeer(context.Background(), &api.ListPeerRequest{Address: k.peer.String()}, func(p *api.Peer) {
		for _, f := range p.AfiSafis {
			if id := f.Config.GetFamily(); id != nil && bgp.NewFamily(uint16(id.Afi), uint8(id.Safi)) == k.family {
				n = int(f.GetState().GetReceived())
			}
		}
	})
	return n
}

// end ends the session with a peer for good.
func (b *BGP) end(peer netip.Addr, why string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.server == nil {
		return
	}
	b.ends(peer, why)
	_ = b.server.DisablePeer(context.Background(), &api.DisablePeerRequest{Address: peer.String(), Communication: why}) // or it is down
}
