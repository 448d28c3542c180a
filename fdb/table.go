package fdb

import (
	"math"
	"sync"
	"sync/atomic"

	"github.com/vxswitch/vxswitch/frame"
)

// Defaults of [Config].
const (
	DefaultLimit      = 8192
	DefaultAgeing     = frame.Tick(300) // IEEE 802.1Q, clause 8.8.3
	DefaultMoveWindow = 180             // RFC 7432, section 15.1
	DefaultFreezeTime = 180
	DefaultFlaps      = 10
)

// Never, as an ageing time, keeps learned entries.
const Never = ^frame.Tick(0)

// Config configures a [Table]. The zero value is ready to use.
type Config struct {
	VNI  frame.VNI             // for events
	Gens *Gens                 // shared by the tables of a switch; nil = the table's own
	Has  func(frame.Dest) bool // reports whether a Dest exists, for Set; called with the table locked; nil = all exist

	// Leads reports whether frames to one peer of a port may reach another. If so, that other peer may
	// send from a MAC whose entry refers to the first. It must not block; nil = no.
	Leads func(to, peer frame.Dest) bool

	Notify func(frame.Event) // gets the events of learned entries; called with the table locked, so it must not block or call the table

	Limit   int        // limit of learned entries; 0 = DefaultLimit, negative = no limit
	PerDest int        // limit of learned entries of one Dest; 0 = no limit
	Evict   bool       // at a limit, replace an entry instead of refusing the new one; see [Table.Learn]
	Ageing  frame.Tick // 0 = DefaultAgeing; or [Never]

	// Freeze is the number of moves within MoveWindow after which a MAC is frozen (RFC 7432, section
	// 15.1, suggests 5); 0 = never. For FreezeTime it then stays where it last was for a whole
	// MoveWindow.
	Freeze     uint8
	MoveWindow uint16 // ticks; 0 = DefaultMoveWindow
	FreezeTime uint16 // ticks; 0 = DefaultFreezeTime

	// Flaps is how often a MAC may move in one tick; 0 = DefaultFlaps, negative = no limit. If a MAC
	// moves more often, an EventMACFlapping reports it, and for the rest of the tick it stays where it
	// was before it began to move, so that a loop does not take MACs away from their hosts.
	Flaps int
}

// A Table is the MAC table of a VSI. It is safe for concurrent use; the package documentation says which
// methods may wait.
type Table struct {
	arr     atomic.Pointer[array]
	gens    *Gens
	swept   atomic.Uint64 // t.bumps() when the last complete round began
	flushed counter
	ageing  atomic.Uint32
	cfg     Config
	_       [64]byte // separates fields that are written from those that look-ups read

	counters counters
	crowded  atomic.Bool // Sweep should rebuild
	rounds   atomic.Uint64

	mu       sync.Mutex // for writers; Learn only tries it
	used     int        // slots that are not empty
	least    int        // slots that Grow asked for
	count    [2]int     // entries by class
	holders  map[holderKey]*holder
	rank     []*holder // heap by number of learned entries, in tables that evict
	reaped   uint64    // t.bumps() when the holders were last checked
	limit    int
	freeze   uint8
	flaps    int
	perDest  int
	portDest map[uint16]int

	hk     sync.Mutex // Sweep
	on     *array     // what the hand moves over
	hand   int
	starts uint64 // t.bumps() when this round began
}

// NewTable returns an empty table. A nil cfg is the zero Config.
func NewTable(cfg *Config) *Table {
	t := &Table{holders: make(map[holderKey]*holder)}
	if cfg != nil {
		t.cfg = *cfg
	}
	if t.cfg.MoveWindow == 0 {
		t.cfg.MoveWindow = DefaultMoveWindow
	}
	if t.cfg.FreezeTime == 0 {
		t.cfg.FreezeTime = DefaultFreezeTime
	}
	t.SetFlaps(t.cfg.Flaps)
	if t.gens = t.cfg.Gens; t.gens == nil {
		t.gens = NewGens()
	}
	t.gens.tables.Add(1)
	t.SetAgeing(t.cfg.Ageing)
	t.limit = limitOf(t.cfg.Limit)
	t.perDest, t.freeze = max(t.cfg.PerDest, 0), t.cfg.Freeze
	t.swept.Store(t.bumps())
	t.arr.Store(newArray(minSlots, t.cfg.Evict))
	return t
}

func limitOf(n int) int {
	switch {
	case n == 0:
		return DefaultLimit
	case n < 0:
		return math.MaxInt
	}
	return n
}

// Lookup returns the Dest of a MAC, or [frame.Filter] for a filter entry. It is wait-free, writes nothing
// and does not allocate.
func (t *Table) Lookup(mac frame.MAC) (frame.Dest, bool) { return t.LookupUint64(mac.Uint64()) }

// LookupUint64 is [Table.Lookup] for a MAC as [frame.MAC.Uint64] has it: a worker has it from a frame in one load.
func (t *Table) LookupUint64(u uint64) (frame.Dest, bool) {
	a := t.arr.Load()
	mask := uint64(len(a.slots) - 1)
	for i := a.home(u) & mask; ; i = (i + 1) & mask {
		s := &a.slots[i]
		k := s.key.Load()
		if k>>16 == 0 { // first: the zero MAC is nowhere
			return 0, false
		}
		if k>>16 == u {
			v := s.val.Load()
			if (v^k)&stampMask != 0 || t.bumps() != t.swept.Load() && !t.current(v) { // t.live, inlined
				return 0, false
			}
			return destOf(v), true
		}
	}
}

// gen returns the generation of an entry that is stored now.
func (t *Table) gen(d frame.Dest, class uint64) uint64 {
	return uint64(t.gens.sum(d, class)+t.flushed[class&1].Load()) & genMask
}

// live reports whether v, which is not 0, is of the current generation. If nothing was flushed since the
// last complete round of Sweep began, there are no dead entries, and no generation has to be read.
func (t *Table) live(v uint64) bool { return t.bumps() == t.swept.Load() || t.current(v) }

func (t *Table) current(v uint64) bool { return t.gen(destOf(v), classOf(v)) == genOf(v) }

// bumps returns the number of changes of generations that matter to this table.
func (t *Table) bumps() uint64 { return t.gens.bumps.Load() + uint64(t.flushed[learned].Load()) }

// Close flushes the table and returns its share of the limit of all tables. The table must not be used again.
func (t *Table) Close() {
	t.Flush()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.reap()
	t.gens.tables.Add(-1)
}

// Flush removes all learned entries in constant time, without events. Sweep frees their slots later.
func (t *Table) Flush() {
	t.flushed[learned].Add(1)
	t.gens.changed(t.cfg.VNI, 0)
}

// SetAgeing sets the ageing time as in [Config], also for existing entries.
func (t *Table) SetAgeing(ticks frame.Tick) {
	if ticks == 0 {
		ticks = DefaultAgeing
	}
	t.ageing.Store(uint32(ticks))
}

// aged reports whether a learned entry was not seen for the ageing time.
func (t *Table) aged(m uint64, now frame.Tick) bool {
	ageing := frame.Tick(t.ageing.Load())
	return ageing != Never && ageOf(seenOf(m), now) >= ageing
}

// put stores an entry in slot i, which is that of the MAC, dead, or empty. The lock is held.
func (t *Table) put(a *array, i, mac, v, m uint64) {
	s := &a.slots[i]
	k := s.key.Load()
	old := s.val.Load()
	if old != 0 {
		t.forget(a, i, old)
	}
	a.meta[i].Store(m)
	if a.mark != nil {
		a.mark[i] = mark{}
	}
	if k>>16 == mac {
		s.val.Store(v | k&stampMask)
	} else {
		if k>>16 == 0 {
			t.used++
		}
		stamp := nextStamp(k)
		s.val.Store(v | stamp) // no MAC has this stamp yet
		s.key.Store(mac<<16 | stamp)
	}
	t.enter(a, i, v)
	t.changed(mac, old, v)
}

// changed tells of another value of an entry. A MAC of the switch's own, which has Dest 0, may concern every answer: all that is
// routed goes through it.
func (t *Table) changed(mac, old, v uint64) {
	own := func(v uint64) bool { return v != 0 && destOf(v) == 0 }
	if own(old) || own(v) {
		mac = 0
	}
	t.gens.changed(t.cfg.VNI, mac)
}

// remove kills the entry in slot i. The lock is held.
func (t *Table) remove(a *array, i, v uint64) {
	t.forget(a, i, v)
	t.clear(a, i)
}

func (t *Table) clear(a *array, i uint64) {
	mac := a.slots[i].key.Load() >> 16
	old := a.slots[i].val.Swap(0)
	t.used -= a.trim(i)
	t.changed(mac, old, 0)
}

// emptySlot returns the slot for a MAC that has no live entry: the one it had, else the first dead one of its
// chain, else the empty one at the end of it unless the table is too full. The lock is held.
func (t *Table) emptySlot(a *array, mac uint64) (uint64, bool) {
	mask := uint64(len(a.slots) - 1)
	dead, found := uint64(0), false
	for i := a.home(mac) & mask; ; i = (i + 1) & mask {
		s := &a.slots[i]
		switch k := s.key.Load() >> 16; {
		case k == mac:
			return i, true
		case k == 0:
			if found {
				return dead, true
			}
			return i, t.used < len(a.slots)/8*7
		case !found:
			if v := s.val.Load(); v == 0 || !t.live(v) {
				dead, found = i, true
			}
		}
	}
}

func (t *Table) notify(kind frame.EventKind, mac uint64, d, old frame.Dest, pinned bool) {
	if t.cfg.Notify != nil {
		t.cfg.Notify(frame.Event{Kind: kind, Pinned: pinned, VNI: t.cfg.VNI, MAC: frame.MACFrom(mac), Dest: d, Old: old})
	}
}
