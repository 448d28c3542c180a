package fdb

import (
	"sync/atomic"

	"github.com/vxswitch/vxswitch/frame"
)

// Classes of entries. A flush removes learned entries, a kill both.
const (
	learned = 0
	pinned  = 1 // static and control
)

// A counter is a generation for each class: the number of flushes and kills that removed it.
type counter [2]atomic.Uint32

// Gens has the generations of the ports and peers of a switch, and the limit of learned entries
// in all its tables, which share one Gens.
//
// An entry stores the sum of the generations it depends on, and is live while the sum is the
// same. So one increment flushes a port or a peer from ten thousand tables. Entries store the
// sum modulo 2^15. A dead entry would be live again after 2^15 flushes and kills, so tables
// must be swept before that: see [Table.MustSweep].
//
// All methods are safe for concurrent use. Memory grows with the number of ports and peers
// that were ever flushed or killed.
type Gens struct {
	bumps atomic.Uint64 // flushes and kills so far; incremented after the generation
	watch atomic.Pointer[func(frame.VNI, frame.MAC)]
	all   counter
	ports [256]atomic.Pointer[[256]portGen] // by port>>8, port&255
	_     [64]byte                          // separates fields that are written from those that look-ups read

	total  atomic.Int64 // learned entries in all tables
	limit  atomic.Int64 // 0 = none
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

// SetLimit sets the limit of learned entries in all tables together; 0 = no limit. At the limit, a
// table with less than an equal share still learns. The tables then exceed the limit until those
// with more than their share evict entries, in the next round of [Table.Sweep]. Tables that
// do not evict make room as entries age, also after the limit was lowered.
func (g *Gens) SetLimit(n int) { g.limit.Store(int64(max(n, 0))) }

// Learned returns the number of learned entries in all tables. Flushed entries count until the
// next round of [Table.Sweep] of their table at the latest.
func (g *Gens) Learned() int { return int(g.total.Load()) }

// FlushAll removes all learned entries of all tables.
func (g *Gens) FlushAll() { g.bump(&g.all, learned) }

// FlushPort removes the learned entries of a port and of all its peers.
func (g *Gens) FlushPort(port uint16) { g.bump(&g.port(port).own, learned) }

// FlushPeer removes the learned entries of one peer. It ignores a Dest without a peer.
func (g *Gens) FlushPeer(d frame.Dest) {
	if d.Peer() != 0 {
		g.bump(g.peer(d), learned)
	}
}

// KillPort removes all entries of a port and of all its peers, static ones too, so that the number
// can be used again. Port 0 has the filter entries and the switch's own MACs.
func (g *Gens) KillPort(port uint16) { g.bump(&g.port(port).own, pinned) }

// KillPeer removes all entries of one peer, static ones too. It ignores a Dest without a peer.
func (g *Gens) KillPeer(d frame.Dest) {
	if d.Peer() != 0 {
		g.bump(g.peer(d), pinned)
	}
}

// Kills returns a number that changes with each KillPort or KillPeer of a Dest.
func (g *Gens) Kills(d frame.Dest) uint32 { return g.sum(d, pinned) }

// bump increments a generation for the classes up to c.
func (g *Gens) bump(n *counter, c int) {
	for ; c >= 0; c-- {
		n[c].Add(1)
	}
	g.bumps.Add(1)
	g.changed(0, 0)
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

// take reserves one learned entry within the limit. give returns n.
func (g *Gens) take() bool {
	limit := g.limit.Load()
	if n := g.total.Add(1); limit > 0 && n > limit {
		g.total.Add(-1)
		return false
	}
	return true
}

// share returns the number of entries that each table may have.
func (g *Gens) share() int { return int(g.limit.Load() / max(1, g.tables.Load())) }

// over reports whether the limit is exceeded.
func (g *Gens) over() bool {
	limit := g.limit.Load()
	return limit > 0 && g.total.Load() > limit
}

func (g *Gens) give(n int) { g.total.Add(-int64(n)) }
