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

// Config configures a [Plane].
type Config struct {
	Switch  *vswitch.Switch // required
	Gateway *l3.Gateway     // nil = there are no VRFs

	// Neighbours returns the neighbour table of a segment, or nil: then the addresses of MAC rows are
	// not used. It must not call the Plane.
	Neighbours func(frame.VNI) *arp.Table

	// First returns the name of the VTEP for rows without a Tunnel, in a segment with several VTEPs; "" =
	// the VTEP that was attached first. It must not call the Plane.
	First func(frame.VNI) string

	Owners []string // in order of precedence, the first wins; all others follow, sorted by name
	Static []string // owners whose FDB entries and neighbours are static: hosts cannot move them, and they replace existing entries
}

// A Plane writes the rows of all control planes into the tables of a switch. It implements [Programmer].
type Plane struct {
	cfg Config

	mu     sync.Mutex
	owners map[string]map[Row]stored // by keyOf
	slots  map[entryKey]*slot
	lists  map[floodTarget]*floodList // as they are in VTEPs
	peers  map[peerKey]*peer
	users  map[groupKey]map[MAC]struct{} // keys of the rows that refer to a group
	seq    uint64
	stats  Stats
}

// Stats counts the writes of a [Plane], including those that it has undone, and the undoing.
type Stats struct {
	Rows       int    `json:"rows"`       // current rows of all owners
	Peers      uint64 `json:"peers"`      // peers, next hops and groups added to and deleted from VTEPs
	Floods     uint64 `json:"floods"`     // flood lists set
	MACs       uint64 `json:"macs"`       // FDB entries set and deleted
	Neighbours uint64 `json:"neighbours"` // set and deleted
	Routes     uint64 `json:"routes"`     // added and deleted
	GivenWay   uint64 `json:"given_way"`  // entries not written because of a local host or a static entry
}

// New returns a Plane without rows.
func New(cfg *Config) (*Plane, error) {
	if cfg == nil || cfg.Switch == nil {
		return nil, errors.New("control: Config.Switch: required")
	}
	c := *cfg
	c.Owners, c.Static = slices.Clone(c.Owners), slices.Clone(c.Static)
	for i, o := range c.Owners {
		if slices.Contains(c.Owners[:i], o) {
			return nil, fmt.Errorf("control: Config.Owners: %q: duplicate", o)
		}
	}
	return &Plane{cfg: c, owners: map[string]map[Row]stored{}, slots: map[entryKey]*slot{},
		lists: map[floodTarget]*floodList{}, peers: map[peerKey]*peer{}, users: map[groupKey]map[MAC]struct{}{}}, nil
}

// Program implements [Programmer]. It checks new and changed rows before it writes anything; see
// [ErrNoSegment] and the errors beside it. An error names the row. Then all tables and rows are as before,
// except for the ages of learned entries. A row of another owner that can no longer be written does not
// fail the Update; it waits for Reapply.
func (p *Plane) Program(owner string, u Update) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if owner == "" {
		return errors.New("control: Program: owner: a name is required")
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

// Forget removes all rows of an owner.
func (p *Plane) Forget(owner string) {
	if owner != "" {
		p.Program(owner, Update{Snapshot: true}) // cannot fail, since no row is new
	}
}

// Reapply writes rows again that the tables have lost or could not take: after a port was attached again, a
// segment or interface was added, an entry was deleted by hand, or one has aged that kept a row from being
// written. It leaves everything else as it is. If some rows cannot be written now, it writes all others and
// returns an error that wraps a [LostError].
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

// A LostError is about an entry that cannot be written now. If there are several, it is about one of the owner
// with the highest precedence.
type LostError struct {
	Owner string // of the row
	Err   error
}

// Error returns the text of Err.
func (e *LostError) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *LostError) Unwrap() error { return e.Err }

// Rows iterates over an owner's rows as they were when the iteration began: MACs, groups,
// floods, prefixes, each in order of their keys.
func (p *Plane) Rows(owner string) iter.Seq[Row] {
	return func(yield func(Row) bool) {
		p.mu.Lock()
		rows := make([]Row, 0, len(p.owners[owner]))
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

// Owners returns the owners of rows, by precedence.
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

// A delta is the change of one row.
type delta struct {
	key      Row
	old, new stored
	renewed  bool // advertised again: replaces entries of local hosts
}

// diff returns what an update changes. p.mu is held.
func (p *Plane) diff(owner string, u Update) ([]delta, error) {
	rows := p.owners[owner]
	adds := make(map[Row]Row, len(u.Add))
	for _, r := range u.Add {
		if err := known(r); err != nil {
			return nil, err
		}
		r = clean(r)
		adds[keyOf(r)] = r
	}
	var list []delta
	dels := make(map[Row]bool, len(u.Del))
	del := func(key Row) {
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
	renewed := maps.Clone(dels)
	if u.Snapshot {
		for key := range rows {
			if !dels[key] {
				del(key)
			}
		}
	}
	for _, r := range u.Add { // in order, because the last of several for one key counts
		key := keyOf(clean(r))
		r, ok := adds[key]
		if !ok {
			continue
		}
		delete(adds, key)
		if old := rows[key]; old.row != r || renewed[key] {
			p.seq++
			list = append(list, delta{key, old, stored{r, p.seq}, old.row != nil || renewed[key]})
		}
	}
	return list, nil
}
