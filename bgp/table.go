package bgp

import (
	"cmp"
	"iter"
	"net/netip"
	"slices"

	"github.com/vxswitch/vxswitch/bgp/internal/engine"
	"github.com/vxswitch/vxswitch/control"
	"github.com/vxswitch/vxswitch/internal/batch"
)

// blackhole is the distance of the rows of our own blocks: whatever else the VRF has comes before.
const blackhole = 255

// A table makes rows of the best paths of peers. It knows no sessions and no clock.
type table struct {
	rules *rules
	paths map[netip.Prefix][]path
	n     int // paths
	peers map[netip.Addr]*tally

	missing bool                      // paths were left out since the engine was asked for all
	high    int                       // and so many paths there were then at most
	dirty   batch.Queue[netip.Prefix] // their rows have changed
	ledger  control.Ledger[netip.Prefix]
}

// A path is one to a prefix, and whether it is taken.
type path struct {
	engine.Source
	nextHop netip.Addr
	width   float32 // of the link to it; 0 = not said
	why     Reason
}

// A tally counts the paths of a peer by Reason; those of TooMany are all there ever were.
type tally [reasons]int

func newTable(c *Config) *table {
	t := &table{rules: newRules(c, nil), paths: map[netip.Prefix][]path{}, peers: map[netip.Addr]*tally{}}
	t.ledger.Loose = true
	t.configure(c, nil)
	return t
}

// configure takes other settings and the addresses of the interface of Config.Segment, and judges all paths anew.
func (t *table) configure(c *Config, gateway []netip.Prefix) {
	was := t.rules
	t.rules = newRules(c, gateway)
	for b := range was.blocks {
		t.write(b)
	}
	for b := range t.rules.blocks {
		t.write(b)
	}
	for p, list := range t.paths {
		for i := range list {
			t.count(&list[i], -1)
			_, list[i].why = t.rules.judge(p, list[i].nextHop)
			t.count(&list[i], 1)
		}
		t.write(p)
	}
}

func (t *table) count(x *path, by int) {
	n := t.peers[x.Peer]
	if n == nil {
		n = new(tally)
		t.peers[x.Peer] = n
	}
	n[x.why] += by
}

func (t *table) most() int { return cmp.Or(t.rules.cfg.MaxRoutes, DefaultMaxRoutes) }

// learned adds a path, or replaces it.
func (t *table) learned(e engine.Path) {
	p := e.Prefix.Masked()
	x := path{Source: e.Source, nextHop: e.NextHop.Unmap(), width: e.Bandwidth}
	_, x.why = t.rules.judge(p, x.nextHop)
	list := t.paths[p]
	i := slices.IndexFunc(list, func(o path) bool { return o.Source == x.Source })
	switch {
	case i >= 0:
		t.count(&list[i], -1)
		list[i] = x
	case !t.room(x.Peer):
		t.missing, t.high = true, max(t.high, t.n)
		x.why = TooMany
		t.count(&x, 1)
		return
	default:
		t.paths[p] = append(list, x)
		t.n++
	}
	t.count(&x, 1)
	t.write(p)
}

// withdrawn removes a path, if it is there.
func (t *table) withdrawn(e engine.Path) {
	t.remove(e.Prefix.Masked(), func(x path) bool { return x.Source == e.Source })
}

// down removes the paths of a peer.
func (t *table) down(peer netip.Addr) {
	for p := range t.paths {
		t.remove(p, func(x path) bool { return x.Peer == peer })
	}
}

// forget is down for a peer that is none any more.
func (t *table) forget(peer netip.Addr) {
	t.down(peer)
	delete(t.peers, peer)
}

func (t *table) remove(p netip.Prefix, gone func(path) bool) {
	list := t.paths[p]
	n := len(list)
	list = slices.DeleteFunc(list, func(x path) bool {
		if !gone(x) {
			return false
		}
		if t.count(&x, -1); *t.peers[x.Peer] == (tally{}) {
			delete(t.peers, x.Peer)
		}
		return true
	})
	if len(list) == n {
		return
	}
	t.n -= n - len(list)
	if len(list) == 0 {
		delete(t.paths, p)
	} else {
		t.paths[p] = list
	}
	t.write(p)
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

// flush writes rows that have changed: not too many at once, so that peers need not wait for all. It reports whether there are more.
func (t *table) flush(owner string, p control.Programmer) (more bool, err error) {
	_, more = t.dirty.Pass(func(p netip.Prefix) { t.ledger.Set(p, t.rows(p)...) })
	return more, t.ledger.Flush(owner, p)
}

// rows returns a row for each way that is taken; those that are the same once, and of too many the lowest.
func (t *table) rows(p netip.Prefix) (rows []control.Row) {
	c := t.rules.cfg
	if t.rules.blocks[p] {
		if p.IsSingleIP() {
			return nil
		}
		return []control.Row{control.Prefix{VRF: c.VRF, Prefix: p, Distance: blackhole}}
	}
	for _, w := range t.ways(p) {
		rows = append(rows, control.Prefix{VRF: c.VRF, Prefix: p, Via: w, Distance: cmp.Or(c.Distance, DefaultDistance)})
	}
	return rows
}

// routes returns all paths, in no order.
func (t *table) routes() iter.Seq[Route] {
	return func(yield func(Route) bool) {
		for p, list := range t.paths {
			for _, x := range list {
				r := Route{Prefix: p, Peer: x.Peer, PathID: x.ID, NextHop: x.nextHop, Bandwidth: x.width, Refused: x.why}
				if x.why == None {
					r.Via, _ = t.rules.judge(p, x.nextHop)
				}
				if !yield(r) {
					return
				}
			}
		}
	}
}
