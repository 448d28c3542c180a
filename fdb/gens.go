package fdb

import (
	"sync/atomic"

	"github.com/vxswitch/vxswitch/frame"
)

// The two classes of entries. A flush takes only learned ones, a kill takes both.
const (
	learned = 0
	pinned  = 1 // static and control
)

// counter is a generation: how often something happened that takes the learned
// entries of a place with it, and how often its pinned ones.
type counter [2]atomic.Uint32

// Gens holds the generations of the ports and peers of one switch, and the limit
// of learned entries in all its tables. All tables of a switch share one Gens.
//
// An entry stores the sum of the generations it depends on, and is live only
// while the sum is the same. So flushing a port or a peer out of ten thousand
// tables is one increment. The sums are kept modulo 2^15; the counters only
// grow, so a dead entry could come back after 2^15 flushes and kills, and a table
// has to be swept before that: see [Table.MustSweep].
//
// Every method may be called from anywhere at any time. Memory grows with the
// ports and peers that were ever flushed or killed.
type Gens struct {
	bumps atomic.Uint64 // flushes and kills so far; raised after the generation itself
	all   counter
	ports [256]atomic.Pointer[[256]portGen] // by port>>8, port&255
	_     [64]byte                          // what follows is written to while others look up

	total  atomic.Int64 // learned entries in all tables
	limit  atomic.Int64 // 0 for none
	tables atomic.Int64
}

type portGen struct {
	own   counter
	peers atomic.Pointer[peerDir]
}

type (
	peerDir  [64]atomic.Pointer[peerPage] // by peer>>10
	peerPage [1024]counter
)

// NewGens returns generations at zero, without a limit in all.
func NewGens() *Gens { return new(Gens) }

// SetLimit sets how many learned entries all tables together may hold. 0 means no
// limit. When they hold so many, a table that has less than its share, the same for each, still
// learns: until tables that have more have made room, in the next round of [Table.Sweep], they
// hold more than the limit. Tables that refuse, and what they hold beyond a lowered limit, make
// room as entries age.
func (g *Gens) SetLimit(n int) { g.limit.Store(int64(max(n, 0))) }

// Learned returns how many learned entries all tables hold. Entries that a flush
// has killed are counted until their table notices, at the latest in its next
// round of [Table.Sweep].
func (g *Gens) Learned() int { return int(g.total.Load()) }

// FlushAll kills every learned entry of every table.
func (g *Gens) FlushAll() { g.bump(&g.all, learned) }

// FlushPort kills the learned entries of a port and of all its peers.
func (g *Gens) FlushPort(port uint16) { g.bump(&g.port(port).own, learned) }

// FlushPeer kills the learned entries of one peer. A Dest without a peer is
// ignored.
func (g *Gens) FlushPeer(d frame.Dest) {
	if d.Peer() != 0 {
		g.bump(g.peer(d), learned)
	}
}

// KillPort kills every entry of a port and of all its peers, static ones
// included: the port is gone, and its number may be used again. Port 0 holds the
// filter entries and the switch's own addresses.
func (g *Gens) KillPort(port uint16) { g.bump(&g.port(port).own, pinned) }

// KillPeer kills every entry of one peer, static ones included. A Dest without a
// peer is ignored.
func (g *Gens) KillPeer(d frame.Dest) {
	if d.Peer() != 0 {
		g.bump(g.peer(d), pinned)
	}
}

// Kills returns a number that changes when a Dest is killed, as its port or as a peer.
func (g *Gens) Kills(d frame.Dest) uint32 { return g.sum(d, pinned) }

// bump raises a generation for the classes up to c.
func (g *Gens) bump(n *counter, c int) {
	for ; c >= 0; c-- {
		n[c].Add(1)
	}
	g.bumps.Add(1)
}

// sum returns the generation of a Dest.
func (g *Gens) sum(d frame.Dest, class uint64) uint32 {
	class &= 1
	n := g.all[class].Load()
	page := g.ports[d>>24].Load()
	if page == nil {
		return n
	}
	p := &page[d>>16&255]
	n += p.own[class].Load()
	if d.Peer() == 0 {
		return n
	}
	if dir := p.peers.Load(); dir != nil {
		if page := dir[d.Peer()>>10].Load(); page != nil {
			n += page[d&1023][class].Load()
		}
	}
	return n
}

func (g *Gens) port(port uint16) *portGen { return &grown(&g.ports[port>>8])[port&255] }

func (g *Gens) peer(d frame.Dest) *counter {
	dir := grown(&g.port(d.Port()).peers)
	return &grown(&dir[d.Peer()>>10])[d&1023]
}

// grown returns what p points to, made on first use.
func grown[T any](p *atomic.Pointer[T]) *T {
	if v := p.Load(); v != nil {
		return v
	}
	p.CompareAndSwap(nil, new(T))
	return p.Load()
}

// take reserves one learned entry of the limit in all, and give returns n.
func (g *Gens) take() bool {
	limit := g.limit.Load()
	if n := g.total.Add(1); limit > 0 && n > limit {
		g.total.Add(-1)
		return false
	}
	return true
}

// share is what a table may hold whatever others do.
func (g *Gens) share() int { return int(g.limit.Load() / max(1, g.tables.Load())) }

// over reports whether the limit in all is exceeded.
func (g *Gens) over() bool {
	limit := g.limit.Load()
	return limit > 0 && g.total.Load() > limit
}

func (g *Gens) give(n int) { g.total.Add(-int64(n)) }
