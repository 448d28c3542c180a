package arp

import (
	"cmp"
	"fmt"
	"iter"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/follow"
	"github.com/vxswitch/vxswitch/internal/hostaddr"
	"github.com/vxswitch/vxswitch/internal/shares"
	"github.com/vxswitch/vxswitch/setting"
)

// Defaults of [TableConfig].
const (
	DefaultLimit           = 8192
	DefaultAgeing          = 300 * time.Second
	DefaultDuplicateMoves  = 5
	DefaultDuplicateWindow = 180 * time.Second
)

// TableConfig holds the settings of a [Table]. The zero value works.
type TableConfig struct {
	VNI     frame.VNI     `json:"-"`                            // the segment in events
	Limit   int           `json:"limit,omitzero"`               // most snooped entries; 0 = 8192
	PerDest int           `json:"perDest,omitzero"`             // most snooped entries of one port, or of one peer behind it; 0 = half of Limit
	Ageing  time.Duration `json:"ageing,omitzero" zero:"never"` // time without a message after which a snooped entry is deleted; default 300 s, negative = never

	DuplicateMoves  int           `json:"duplicateMoves,omitzero"`  // moves between MACs that make an address a duplicate; 0 = 5, negative = never
	DuplicateWindow time.Duration `json:"duplicateWindow,omitzero"` // the time they are counted in; default 180 s
	Freeze          bool          `json:"freeze,omitzero"`          // a duplicate keeps its MAC and gets no answers until it has been silent for the ageing time

	// Notify receives the events of snooped neighbours, in their order. It is called with the table locked, so it must
	// not wait or call the table; may be nil.
	Notify func(frame.Event) `json:"-"`
}

// A Table holds the neighbours of one segment. Make one with NewTable.
type Table struct {
	cfg            TableConfig
	ageing, window frame.Tick

	watch    atomic.Pointer[watch]
	answer   atomic.Pointer[func(netip.Addr)] // to hosts that asked for what is set; nil = none
	adjacent adjacencies                      // what Resolve returns; written under mu

	followers follow.List[frame.MAC]

	mu      sync.RWMutex
	index   map[netip.Addr]int32
	rows    rows               // in no order
	snooped shares.List[int32] // snooped rows by Dest, least recently seen first

	outcomes   [numLearnOutcomes]atomic.Uint64
	duplicates atomic.Uint64
	aged       atomic.Uint64
}

// never is the ageing time of entries that do not age.
const never = ^frame.Tick(0)

// NewTable returns an empty table. A nil cfg means defaults.
func NewTable(cfg *TableConfig) (*Table, error) {
	t := &Table{index: map[netip.Addr]int32{}}
	t.adjacent.init()
	if cfg != nil {
		t.cfg = *cfg
	}
	c := &t.cfg
	if err := c.Check(); err != nil {
		return nil, err
	}
	c.Limit = cmp.Or(c.Limit, DefaultLimit)
	c.PerDest = cmp.Or(c.PerDest, c.Limit/2+c.Limit%2)
	c.DuplicateMoves = cmp.Or(c.DuplicateMoves, DefaultDuplicateMoves)
	t.window = ticks(cmp.Or(c.DuplicateWindow, DefaultDuplicateWindow))
	t.ageing = never
	if c.Ageing >= 0 {
		t.ageing = ticks(cmp.Or(c.Ageing, DefaultAgeing))
	}
	return t, nil
}

// maxTime is the longest time between two ticks that can be compared: 68 years.
const maxTime = (1<<31 - 1) * time.Second

// Check returns what is wrong with the settings, as NewTable does.
func (c *TableConfig) Check() error {
	w := setting.Of("arp: TableConfig")
	if !c.VNI.Valid() {
		w.Want("VNI", c.VNI, "0 to %d", frame.MaxVNI)
	}
	w.Limit("Limit", c.Limit)
	w.Limit("PerDest", c.PerDest)
	if c.Ageing > 0 && c.Ageing < time.Second || c.Ageing > maxTime {
		w.Want("Ageing", c.Ageing, "1s to %v", maxTime)
	}
	if c.DuplicateWindow != 0 && c.DuplicateWindow < time.Second || c.DuplicateWindow > maxTime {
		w.Want("DuplicateWindow", c.DuplicateWindow, "1s to %v, or 0 for %v", maxTime, DefaultDuplicateWindow)
	}
	return w.Err()
}

func ticks(d time.Duration) frame.Tick { return frame.Tick(d / time.Second) }

// Lookup returns the neighbour with an address.
func (t *Table) Lookup(ip netip.Addr) (Entry, bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	i, ok := t.index[ip]
	if !ok {
		return Entry{}, false
	}
	return t.rows.at(i).Entry, true
}

// Set makes a static or control entry in place of any other. It takes effect at once and does not age. Only a snooped
// entry that it replaces causes an event.
func (t *Table) Set(ip netip.Addr, mac frame.MAC, o Origin, f Flags) error {
	_, err := t.SetIf(ip, mac, o, f, func(Entry) bool { return true })
	return err
}

// SetIf is Set if there is no entry, or ok returns true for it, and reports whether it has set one. No other change comes
// between, such as that the host speaks. ok must not call the Table.
func (t *Table) SetIf(ip netip.Addr, mac frame.MAC, o Origin, f Flags, ok func(Entry) bool) (set bool, err error) {
	if err := CheckNeighbour(ip, mac); err != nil {
		return false, err
	}
	if o != Static && o != Control {
		return false, fmt.Errorf("arp: origin %v: must be static or control", o)
	}
	t.mu.Lock()
	i, had := t.index[ip]
	if had && !ok(t.rows.at(i).Entry) {
		t.mu.Unlock()
		return false, nil
	}
	moved := !had
	if had {
		moved = t.rows.at(i).MAC != mac
		t.delete(i)
	}
	t.add(Entry{IP: ip, MAC: mac, Origin: o, Flags: f | Taught})
	t.mu.Unlock()
	if moved {
		t.found(ip)
	}
	if answer := t.answer.Load(); answer != nil {
		(*answer)(ip)
	}
	return true, nil
}

// Delete removes an entry of any origin and reports whether there was one. Only a snooped one causes an event.
func (t *Table) Delete(ip netip.Addr) bool {
	return t.DeleteIf(ip, func(Entry) bool { return true })
}

// DeleteIf is Delete if f returns true for the entry. No other change comes between. f must not call the Table.
func (t *Table) DeleteIf(ip netip.Addr, f func(Entry) bool) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	i, ok := t.index[ip]
	if !ok || !f(t.rows.at(i).Entry) {
		return false
	}
	t.delete(i)
	return true
}

// delete is remove with an event if the row is snooped. t.mu is held.
func (t *Table) delete(i int32) {
	e := t.rows.at(i).Entry
	t.remove(i)
	if e.Origin == Snooped {
		t.notify(frame.Event{Kind: frame.EventNeighbourDeleted, IP: e.IP, MAC: e.MAC, Dest: e.From})
	}
}

// Flush removes all snooped entries.
func (t *Table) Flush() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := t.rows.n - 1; i >= 0; i-- {
		if t.rows.at(i).Origin == Snooped {
			t.delete(i)
		}
	}
}

// FlushDest removes all entries snooped from a Dest, for a port also those from the peers behind it, without events:
// the switch, which calls it for what has gone, tells of it with one event.
func (t *Table) FlushDest(d frame.Dest) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := t.rows.n - 1; i >= 0; i-- {
		from := t.rows.at(i).From
		if t.rows.at(i).Origin == Snooped && (from == d || d.Peer() == 0 && from.Port() == d.Port()) {
			t.remove(i)
		}
	}
}

// Len returns how many entries there are.
func (t *Table) Len() int {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return int(t.rows.n)
}

// All iterates over the entries in the order of their addresses, as they were at the start.
func (t *Table) All() iter.Seq[Entry] {
	return func(yield func(Entry) bool) {
		t.mu.RLock()
		list := make([]Entry, t.rows.n)
		for i := range list {
			list[i] = t.rows.at(int32(i)).Entry
		}
		t.mu.RUnlock()
		slices.SortFunc(list, func(a, b Entry) int { return a.IP.Compare(b.IP) })
		for _, e := range list {
			if !yield(e) {
				return
			}
		}
	}
}

// TableStats counts what learning did.
type TableStats struct {
	Entries    int    `json:"entries"`
	Snooped    int    `json:"snooped"` // of Entries
	Learned    uint64 `json:"learned"`
	Moved      uint64 `json:"moved"`
	Refused    uint64 `json:"refused"`    // a static, control or frozen entry contradicted, or the address is outside the gateway's prefixes
	Full       uint64 `json:"full"`       // a limit was reached
	Busy       uint64 `json:"busy"`       // another goroutine was changing the table
	Invalid    uint64 `json:"invalid"`    // the address or the MAC cannot be a host's
	Aged       uint64 `json:"aged"`       // silent for the ageing time, or deleted to make room
	Duplicates uint64 `json:"duplicates"` // addresses that several MACs claimed
}

// Stats returns a snapshot.
func (t *Table) Stats() TableStats {
	n := func(o LearnOutcome) uint64 { return t.outcomes[o].Load() }
	t.mu.RLock()
	defer t.mu.RUnlock()
	return TableStats{
		Entries: int(t.rows.n), Snooped: t.snooped.Size(), Learned: n(New), Moved: n(Moved), Refused: n(Refused),
		Full: n(Full), Busy: n(Busy), Invalid: n(Invalid), Aged: t.aged.Load(), Duplicates: t.duplicates.Load(),
	}
}

// add appends a row for a new address. t.mu is held.
func (t *Table) add(e Entry) {
	i := t.rows.add(row{Entry: e})
	t.index[e.IP] = i
	t.show(&e)
	if e.Origin == Snooped {
		t.enter(i)
	}
}

// remove deletes row i and moves the last row there. t.mu is held.
func (t *Table) remove(i int32) {
	r := t.rows.at(i)
	if r.Origin == Snooped {
		t.snooped.Remove(r.at)
	}
	delete(t.index, r.IP)
	t.hide(r.IP)
	if last := t.rows.n - 1; i != last {
		*r = *t.rows.at(last)
		t.index[r.IP] = i
		if r.Origin == Snooped {
			r.at.Value = i
		}
	}
	t.rows.drop()
}

type watch struct {
	asked func(netip.Addr) bool
	found func(netip.Addr)
}

// Watch serves a gateway that waits for neighbours. asked reports whether it has an open
// question for an address: the table then learns the answer even if it is full. The table
// calls found for each neighbour that is new or has another MAC. Neither may wait, and asked
// must not call the table. Two nils end it.
func (t *Table) Watch(asked func(netip.Addr) bool, found func(netip.Addr)) {
	if asked == nil || found == nil {
		t.watch.Store(nil)
		return
	}
	t.watch.Store(&watch{asked, found})
}

// asked reports whether the gateway has an open question for an address.
func (t *Table) asked(ip netip.Addr) bool {
	w := t.watch.Load()
	return w != nil && w.asked(ip)
}

// found tells the gateway about a neighbour that is new or has another MAC.
func (t *Table) found(ip netip.Addr) {
	if w := t.watch.Load(); w != nil {
		w.found(ip)
	}
}

// notify sends an event. t.mu is held.
func (t *Table) notify(e frame.Event) {
	if t.cfg.Notify != nil {
		e.VNI = t.cfg.VNI
		t.cfg.Notify(e)
	}
}

// CheckNeighbour returns what is wrong with an address and a MAC, as [Table.Set] does.
func CheckNeighbour(ip netip.Addr, mac frame.MAC) error {
	if err := hostaddr.Neighbour(ip); err != nil {
		return fmt.Errorf("arp: address %v: %w", ip, err)
	}
	if !mac.IsHost() {
		return fmt.Errorf("arp: MAC %v: must be the MAC of one host", mac)
	}
	return nil
}

// isHost reports whether one host on a segment may have an address.
func isHost(ip netip.Addr) bool { return hostaddr.Neighbour(ip) == nil }
