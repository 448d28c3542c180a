package control

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"

	"github.com/vxswitch/vxswitch/arp"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/l3"
	vswitch "github.com/vxswitch/vxswitch/switch"
)

// Config holds the settings of a [Plane].
type Config struct {
	Switch  *vswitch.Switch // needed
	Gateway *l3.Gateway     // nil: there are no VRFs

	// Neighbours returns a segment's table, nil if it has none: then the addresses of its MAC
	// rows are not written anywhere. It must not call the Plane.
	Neighbours func(frame.VNI) *arp.Table

	// First returns the name of the VTEP that rows without one are about, in a segment that is
	// in several; "": the one that was attached first. It must not call the Plane.
	First func(frame.VNI) string

	Owners []string // by precedence, the first wins; others come after them, in order of their names
	Static []string // owners whose entries in FDB and neighbour table are static: no host moves them, and they replace what is there
}

// A Plane writes the rows of all control planes of a switch into its tables. It is a
// [Programmer]. Make one with New.
type Plane struct {
	cfg Config

	mu     sync.Mutex
	owners map[string]map[Route]stored // by keyOf
	slots  map[place]*slot
	lists  map[floodTarget]*floodList // those in VTEPs
	peers  map[peerKey]*peer
	users  map[groupPlace]map[MAC]struct{} // the keys of the rows that name a group
	seq    uint64
	stats  Stats
}

// Stats counts what a [Plane] has written, undone writes and their undoing included.
type Stats struct {
	Rows       int    `json:"rows"`       // that there are, of all owners
	Peers      uint64 `json:"peers"`      // next hops and groups likewise: added to and deleted from VTEPs
	Floods     uint64 `json:"floods"`     // flood lists set
	MACs       uint64 `json:"macs"`       // FDB entries set and deleted
	Neighbours uint64 `json:"neighbours"` // set and deleted
	Routes     uint64 `json:"routes"`     // added and deleted
	GivenWay   uint64 `json:"given_way"`  // entries not written, since a local host or somebody's static entry was there
}

// New returns a Plane without rows.
func New(cfg *Config) (*Plane, error) {
	if cfg == nil || cfg.Switch == nil {
		return nil, errors.New("control: Config.Switch: needed")
	}
	c := *cfg
	c.Owners, c.Static = slices.Clone(c.Owners), slices.Clone(c.Static)
	for i, o := range c.Owners {
		if slices.Contains(c.Owners[:i], o) {
			return nil, fmt.Errorf("control: Config.Owners: %q is in it twice", o)
		}
	}
	return &Plane{cfg: c, owners: map[string]map[Route]stored{}, slots: map[place]*slot{},
		lists: map[floodTarget]*floodList{}, peers: map[peerKey]*peer{}, users: map[groupPlace]map[MAC]struct{}{}}, nil
}

// Program implements [Programmer]. Rows that are new or have changed are checked before
// anything is written: see [ErrNoSegment] and its like. An error names the row that is wrong,
// and then all tables and rows are as before, but for the ages of entries that were learned.
// What another owner's row no longer finds never fails an Update: it waits for Reapply.
func (p *Plane) Program(owner string, u Update) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if owner == "" {
		return errors.New("control: Program: the owner has no name")
	}
	t := p.begin()
	diff, err := p.diff(owner, u)
	if err == nil {
		t.stage(owner, diff)
		if err = t.checkAll(owner, diff); err == nil {
			err = t.write()
		}
		if err != nil {
			t.unstage(owner, diff)
		}
	}
	if err != nil {
		return fmt.Errorf("control: owner %s: %w", owner, err)
	}
	return nil
}

// Forget withdraws all rows of an owner.
func (p *Plane) Forget(owner string) {
	if owner != "" {
		p.Program(owner, Update{Snapshot: true}) // nothing is new that could be wrong
	}
}

// Reapply writes again what tables have lost, or had no place for: after a port was attached
// anew, a segment or interface was made, an entry was deleted by hand, or one that rows had
// given way to has aged. It changes nothing that is as it should be, and gives way as Program
// does. The error is about rows that cannot be written now, and wraps a [LostError]; all others
// have been.
func (p *Plane) Reapply() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	t := p.begin()
	t.again = true
	for at := range p.slots {
		t.touch(at)
	}
	t.write()
	if t.lost != nil {
		return fmt.Errorf("control: Reapply: %d entries cannot be written, one of them: %w", t.losses, t.lost)
	}
	return nil
}

// A LostError is about an entry that cannot be written now: of several, about one of the owner
// who comes first.
type LostError struct {
	Owner string // whose row it is
	Err   error
}

// Error returns the text of Err.
func (e *LostError) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *LostError) Unwrap() error { return e.Err }

// Rows iterates over an owner's rows as they were when the iteration began: MACs, groups,
// floods, prefixes, each in order of their keys.
func (p *Plane) Rows(owner string) iter.Seq[Route] {
	return func(yield func(Route) bool) {
		p.mu.Lock()
		rows := make([]Route, 0, len(p.owners[owner]))
		for _, s := range p.owners[owner] {
			rows = append(rows, s.row)
		}
		p.mu.Unlock()
		slices.SortFunc(rows, compare)
		for _, r := range rows {
			if !yield(r) {
				return
			}
		}
	}
}

// Owners returns who has rows, by precedence.
func (p *Plane) Owners() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.SortedFunc(maps.Keys(p.owners), p.rank)
}

// Stats returns a snapshot.
func (p *Plane) Stats() Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.stats
	for _, rows := range p.owners {
		s.Rows += len(rows)
	}
	return s
}

// delta is one row that changes.
type delta struct {
	key      Route
	old, new stored
	anew     bool // advertised anew: it need not give way
}

// diff returns what an update changes. p.mu is held.
func (p *Plane) diff(owner string, u Update) ([]delta, error) {
	rows := p.owners[owner]
	adds := make(map[Route]Route, len(u.Add))
	for _, r := range u.Add {
		if err := known(r); err != nil {
			return nil, err
		}
		r = clean(r)
		adds[keyOf(r)] = r
	}
	var list []delta
	dels := make(map[Route]bool, len(u.Del))
	del := func(key Route) {
		old, ok := rows[key]
		if _, back := adds[key]; ok && !back && !dels[key] {
			list = append(list, delta{key: key, old: old})
		}
		dels[key] = true
	}
	for _, r := range u.Del {
		if err := known(r); err != nil {
			return nil, err
		}
		del(keyOf(clean(r)))
	}
	anew := maps.Clone(dels)
	if u.Snapshot {
		for key := range rows {
			if !dels[key] {
				del(key)
			}
		}
	}
	for _, r := range u.Add { // in their order: the last of several for one place counts
		key := keyOf(clean(r))
		r, ok := adds[key]
		if !ok {
			continue
		}
		delete(adds, key)
		if old := rows[key]; old.row != r || anew[key] {
			p.seq++
			list = append(list, delta{key, old, stored{r, p.seq}, old.row != nil || anew[key]})
		}
	}
	return list, nil
}
