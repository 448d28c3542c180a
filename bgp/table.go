package bgp

import (
	"cmp"
	"iter"
	"net/netip"
	"slices"
	"unique"

	"github.com/vxswitch/vxswitch/bgp/internal/engine"
	"github.com/vxswitch/vxswitch/control"
	"github.com/vxswitch/vxswitch/internal/batch"
)

// A table makes rows of the best paths of peers. It knows no sessions and no clock.
type table struct {
	rules    *rules
	prefixes map[netip.Prefix]known
	n        int // paths
	peers    map[netip.Addr]*tally
	gone     int // paths that are TooMany of who is in peers no more

	missing bool                      // paths were left out since the engine was asked for all
	high    int                       // and so many paths there were then at most
	dirty   batch.Queue[netip.Prefix] // their rows have changed
	all     bool                      // rows are passed again

	used struct { // memory of the last rows, used again
		paths    []path
		ways     []way
		rows     []control.Prefix
		add, del []control.Row
	}
}

// A known prefix has paths, rows or both.
type known struct {
	paths []path
	rows  rows // as last passed
}

// A path is one to a prefix, and whether it is taken. There may be very many, of few peers by few next hops.
type path struct {
	peer    unique.Handle[netip.Addr]
	nextHop unique.Handle[netip.Addr]
	id      uint32
	width   float32 // of the link to it; 0 = not said
	why     Reason
}

func (x *path) from(e engine.Source) bool { return x.id == e.ID && x.peer.Value() == e.Peer }

// A tally counts the paths of a peer by Reason; those of TooMany are all there ever were.
type tally [reasons]int

func newTable(c *Config) *table {
	t := &table{rules: newRules(c), prefixes: map[netip.Prefix]known{}, peers: map[netip.Addr]*tally{}}
	t.configure(c)
	return t
}

// configure takes other settings and the addresses of the gateway of each link, and judges all paths anew.
func (t *table) configure(c *Config, gateways ...[]netip.Prefix) {
	was := t.rules
	t.rules = newRules(c, gateways...)
	for b := range was.blocks {
		t.write(b)
	}
	for b := range t.rules.blocks {
		t.write(b)
	}
	for p, k := range t.prefixes {
		list := k.paths
		for i := range list {
			t.count(&list[i], -1)
			_, list[i].why = t.rules.judge(p, list[i].nextHop.Value(), list[i].peer.Value())
			t.count(&list[i], 1)
		}
		t.write(p)
	}
}

func (t *table) count(x *path, by int) {
	peer := x.peer.Value()
	n := t.peers[peer]
	if n == nil {
		n = new(tally)
		t.peers[peer] = n
	}
	n[x.why] += by
}

func (t *table) most() int { return cmp.Or(t.rules.cfg.MaxRoutes, DefaultMaxRoutes) }

// learned adds a path, or replaces it.
func (t *table) learned(e engine.Path) {
	p := e.Prefix.Masked()
	nextHop := e.NextHop.Unmap()
	x := path{peer: unique.Make(e.Peer), nextHop: unique.Make(nextHop), id: e.ID, width: e.Bandwidth}
	_, x.why = t.rules.judge(p, nextHop, e.Peer)
	k := t.prefixes[p]
	i := slices.IndexFunc(k.paths, func(o path) bool { return o.from(e.Source) })
	switch {
	case i >= 0:
		t.count(&k.paths[i], -1)
		k.paths[i] = x
	case !t.room(e.Peer):
		t.missing, t.high = true, max(t.high, t.n)
		x.why = TooMany
		t.count(&x, 1)
		return
	default:
		k.paths = append(k.paths, x)
		t.prefixes[p] = k
		t.n++
	}
	t.count(&x, 1)
	t.write(p)
}

// withdrawn removes a path, if it is there.
func (t *table) withdrawn(e engine.Path) {
	t.remove(e.Prefix.Masked(), func(x path) bool { return x.from(e.Source) })
}

// down removes the paths of a peer.
func (t *table) down(peer netip.Addr) {
	for p := range t.prefixes {
		t.remove(p, func(x path) bool { return x.peer.Value() == peer })
	}
}

// forget is down for a peer that is none any more.
func (t *table) forget(peer netip.Addr) {
	t.down(peer)
	t.drop(peer)
}

// drop forgets how many paths of a peer there are, and were too many.
func (t *table) drop(peer netip.Addr) {
	if n := t.peers[peer]; n != nil {
		t.gone += n[TooMany]
		delete(t.peers, peer)
	}
}

// ended notes that a session has ended. Who came from a prefix leaves nothing behind with its last path: it would have its share of all.
func (t *table) ended(peer netip.Addr) {
	if n := t.peers[peer]; n != nil && n.kept() == 0 && !t.rules.named(peer) {
		t.drop(peer)
	}
}

func (t *table) remove(p netip.Prefix, gone func(path) bool) {
	k := t.prefixes[p]
	n := len(k.paths)
	k.paths = slices.DeleteFunc(k.paths, func(x path) bool {
		if !gone(x) {
			return false
		}
		t.count(&x, -1)
		peer := x.peer.Value()
		if *t.peers[peer] == (tally{}) {
			delete(t.peers, peer)
		}
		t.ended(peer) // if it has, this was its last
		return true
	})
	if len(k.paths) == n {
		return
	}
	t.n -= n - len(k.paths)
	t.keep(p, k)
	t.write(p)
}

// keep keeps what is known of a prefix.
func (t *table) keep(p netip.Prefix, k known) {
	if len(k.paths) == 0 {
		k.paths = nil
	}
	if k.paths == nil && k.rows == (rows{}) {
		delete(t.prefixes, p)
	} else {
		t.prefixes[p] = k
	}
}

// room reports whether a peer may have one more path: half of all is shared equally by the peers, and the rest is for who comes first.
func (t *table) room(peer netip.Addr) bool {
	most := t.most()
	if t.n < most/2 {
		return true
	}
	all := max(len(t.peers), len(t.rules.cfg.Peers), 1)
	share := most / 2 / all
	if n := t.peers[peer]; share > 0 && (n == nil || n.kept() < share) {
		return true
	}
	taken := (all - len(t.peers)) * share
	for _, n := range t.peers {
		taken += max(n.kept(), share)
	}
	return taken < most
}

// kept returns how many paths of a peer there are.
func (n *tally) kept() (sum int) {
	for r, k := range n {
		if Reason(r) != TooMany {
			sum += k
		}
	}
	return sum
}

// hungry reports whether paths were left out, and an eighth of all is free that was not then: the engine is to be asked for all. It
// says so once.
func (t *table) hungry() bool {
	if !t.missing || t.n > t.high-max(t.most()/8, 1) {
		return false
	}
	t.missing, t.high = false, 0
	return true
}

// write has the rows of a prefix set by flush.
func (t *table) write(p netip.Prefix) { t.dirty.Add(p) }

// routes returns all paths, in no order.
func (t *table) routes() iter.Seq[Route] {
	return func(yield func(Route) bool) {
		for p, k := range t.prefixes {
			for _, x := range k.paths {
				r := Route{Prefix: p, Peer: x.peer.Value(), PathID: x.id, NextHop: x.nextHop.Value(), Bandwidth: x.width, Refused: x.why}
				if x.why == None {
					r.Via, _ = t.rules.judge(p, r.NextHop, r.Peer)
				}
				if !yield(r) {
					return
				}
			}
		}
	}
}
