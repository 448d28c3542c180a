package fdb

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/vxswitch/vxswitch/frame"
)

// The golden model: a plain map, every rule written down once more in the
// simplest way, and nothing about memory. A program of operations, decoded from
// bytes, is run on a table and on the model, and after every operation both must
// say the same.

type row struct {
	dest   frame.Dest
	pinned bool
	flags  Flags
	seen   frame.Tick
	since  frame.Tick
	moves  int
	frozen bool

	home *row       // where it was before it moved; nil: nowhere any more
	last frame.Tick // move
	now  int        // moves in that tick
}

type model struct {
	t      testing.TB
	cfg    Config
	gens   *Gens
	table  *Table
	rows   map[frame.MAC]*row
	now    frame.Tick
	events []frame.Event

	limit, perDest, budget int
	freeze                 int
	portDest               map[uint16]int
	ageing                 frame.Tick
	prog                   []byte
	step                   int
	stats                  Stats
}

func (m *model) byte() int {
	if len(m.prog) == 0 {
		return 0
	}
	b := m.prog[0]
	m.prog = m.prog[1:]
	return int(b)
}

func (m *model) fatalf(format string, args ...any) {
	m.t.Helper()
	m.t.Fatalf("step %d, tick %d: %s", m.step, m.now, fmt.Sprintf(format, args...))
}

// mac returns one of 160 MACs, some of them groups, one zero.
func (m *model) mac() frame.MAC {
	switch b := m.byte(); {
	case b == 0:
		return frame.MAC{}
	case b < 4:
		return frame.MAC{1, 0, 0x5e, 0, 0, byte(b)}
	default:
		return frame.MAC{2, 0, 0, 0, byte(b & 1), byte(b >> 1 % 80)}
	}
}

func (m *model) dest() frame.Dest {
	b := m.byte()
	if b == 255 {
		return frame.Filter
	}
	ports := [...]uint16{1, 2, 3, 300, 0, 1, 2, 1}
	peers := [...]uint16{0, 0, 0, 1, 2, 1500, 65535, 1}
	return frame.NewDest(ports[b&7], peers[b>>3&7])
}

func newModel(t testing.TB, prog []byte) *model {
	m := &model{t: t, prog: prog, rows: map[frame.MAC]*row{}, gens: NewGens(), portDest: map[uint16]int{}}
	b := m.byte()
	m.cfg = Config{VNI: 7, Gens: m.gens, Evict: b&1 != 0, Notify: func(e frame.Event) { m.events = append(m.events, e) }}
	if b&2 != 0 {
		m.cfg.Limit = 1 + m.byte()%60
	}
	if b&4 != 0 {
		m.cfg.PerDest = 1 + m.byte()%20
	}
	if b&8 != 0 {
		m.cfg.Freeze = 3
		m.cfg.MoveWindow = 20
		m.cfg.FreezeTime = 30
		m.cfg.Flaps = 4
	}
	if b&16 != 0 {
		m.budget = 1 + m.byte()%60
		m.gens.SetLimit(m.budget)
	}
	m.cfg.Ageing = [...]frame.Tick{0, 5, 30, Never}[b>>5&3]
	m.limit, m.perDest, m.freeze = limitOf(m.cfg.Limit), m.cfg.PerDest, int(m.cfg.Freeze)
	m.ageing = m.cfg.Ageing
	if m.ageing == 0 {
		m.ageing = 300
	}
	m.table = NewTable(&m.cfg)
	return m
}

func (m *model) run() {
	for ; len(m.prog) > 0; m.step++ {
		m.op()
		if len(m.events) != 0 {
			m.fatalf("events nobody expected: %v", m.events)
		}
		if m.step%32 == 0 {
			m.compare()
		}
	}
	m.compare()
}

func (m *model) op() {
	switch b := m.byte(); {
	case b < 120:
		m.learn(m.mac(), m.dest())
	case b < 140:
		m.set(m.mac(), m.dest(), Flags(m.byte())&31)
	case b < 150:
		mac := m.mac()
		_, want := m.rows[mac]
		if got := m.table.Delete(mac); got != want {
			m.fatalf("Delete(%v) = %v, want %v", mac, got, want)
		}
		m.wantDeleted(mac)
		delete(m.rows, mac)
	case b < 190:
		m.lookup(m.mac())
	case b < 205:
		m.now += frame.Tick(b & 3)
	case b == 205:
		m.now += frame.Tick(m.byte() * 2)
	case b < 210:
		m.table.Flush()
		m.drop(func(r *row) bool { return !r.pinned })
	case b < 212:
		m.gens.FlushAll()
		m.drop(func(r *row) bool { return !r.pinned })
	case b < 216:
		d := m.dest()
		m.gens.FlushPort(d.Port())
		m.drop(func(r *row) bool { return !r.pinned && r.dest.Port() == d.Port() })
	case b < 220:
		d := m.dest()
		m.gens.FlushPeer(d)
		m.drop(func(r *row) bool { return !r.pinned && d.Peer() != 0 && r.dest == d })
	case b < 222:
		d := m.dest()
		m.gens.KillPort(d.Port())
		m.drop(func(r *row) bool { return r.dest.Port() == d.Port() })
	case b < 225:
		d := m.dest()
		m.gens.KillPeer(d)
		m.drop(func(r *row) bool { return d.Peer() != 0 && r.dest == d })
	case b < 235:
		m.sweep()
	case b < 240:
		for r, n := m.table.Rounds(), 1+m.byte(); m.table.Rounds() < r+2; {
			if got := m.table.Sweep(m.now, n); got < 1 || got > n {
				m.fatalf("Sweep(%d) looked at %d", n, got)
			}
		}
		m.aged()
		for mac, r := range m.rows {
			if !r.pinned && m.ageing != Never && m.now-r.seen >= m.ageing {
				m.fatalf("%v still there after a round: %+v", mac, *r)
			}
			if e, _ := m.table.Get(mac); e.Frozen && m.now-r.since >= frame.Tick(m.table.cfg.FreezeTime) {
				m.fatalf("%v still frozen after a round: %+v", mac, *r)
			}
		}
	case b < 243:
		m.limit = 1 + m.byte()%60
		m.table.SetLimit(m.limit)
		m.shed()
	case b < 246:
		port, n := m.dest().Port(), m.byte()%10-1
		m.table.SetPerDest(port, n)
		if m.portDest[port] = n; n < 0 {
			delete(m.portDest, port)
		}
		m.shed()
	case b < 248:
		m.ageing = frame.Tick(1 + m.byte()%40)
		m.table.SetAgeing(m.ageing)
	case b < 250:
		m.budget = m.byte() % 60
		m.gens.SetLimit(m.budget)
	case b == 250 && m.step&1 != 0:
		m.freeze = m.byte() % 5
		m.table.SetFreeze(uint8(m.freeze))
	case b == 250:
		m.table.Grow(m.byte() * 4)
	default:
		m.check()
	}
}

// learn is the model of Learn.
func (m *model) learn(mac frame.MAC, d frame.Dest) {
	r := m.rows[mac]
	if e, ok := m.table.Get(mac); ok && r != nil {
		m.thaw(r, e)
	}
	got := m.table.Learn(mac, d, m.now)
	want := New
	switch {
	case mac.IsGroup() || mac.IsZero():
		want = Invalid
	case r == nil:
	case r.dest == frame.Filter:
		want = Filtered
	case r.dest == d:
		want = Known
		r.seen = m.now
	case !r.pinned && r.frozen:
		want = Frozen
	case !r.pinned:
		want = Moved
	case r.dest == 0 && r.flags&Anycast != 0 && d.Peer() != 0:
		want = Kept
	case r.dest == 0:
		want = Own
	case r.flags&Control == 0 || r.flags&Sticky != 0:
		want = Refused
	case d.Peer() != 0:
		want = Kept
	default:
		want = Moved
	}
	to, freezes, flaps := d, false, false
	if want == Moved && d.Port() != 0 {
		moves, home := 1, r.home
		if r.moves > 0 && m.now-r.since < frame.Tick(m.table.cfg.MoveWindow) {
			moves = r.moves + 1
		}
		if home == nil || m.now-r.last >= frame.Tick(m.table.cfg.MoveWindow) {
			home = r
		}
		now := 1
		if r.last == m.now && r.home != nil && m.now-r.last < frame.Tick(m.table.cfg.MoveWindow) {
			now = r.now + 1
		}
		if flaps = now > m.table.flaps && !(r.pinned && r.dest == home.dest); flaps {
			if to = home.dest; to != d {
				want = Kept
			}
		}
		if freezes = m.freeze > 0 && moves >= m.freeze && !(r.pinned && r.dest == home.dest); freezes {
			if to = home.dest; to != d {
				want = Frozen
			}
		}
	}
	if (want <= Moved || (freezes || flaps) && to != r.dest) && want != Known {
		switch {
		case d.Port() == 0:
			want = Invalid
		case !m.room(to, r != nil && !r.pinned):
			want = Full
		}
	}
	if got != want {
		m.fatalf("Learn(%v, %v) = %v, want %v; row %+v", mac, d, got, want, r)
	}
	if want == Moved || want == Frozen && freezes || want == Kept && flaps {
		m.moved(mac, r, d, to, freezes)
	}
	switch want {
	case New:
		m.want(frame.Event{Kind: frame.EventMACLearned, VNI: 7, MAC: mac, Dest: d})
		m.rows[mac] = &row{dest: d, seen: m.now}
		m.stats.Learned++
	case Full:
		m.stats.Full++
	case Refused, Frozen:
		m.stats.Refused++
	}
	m.lookup(mac)
}

// moved is the model of a move to a Dest, because the MAC was heard at d.
func (m *model) moved(mac frame.MAC, r *row, d, to frame.Dest, freezes bool) {
	old := *r
	if r.home == nil || m.now-r.last >= frame.Tick(m.table.cfg.MoveWindow) {
		r.home, r.now = &row{dest: r.dest, pinned: r.pinned}, 0
	}
	if r.moves == 0 || m.now-r.since >= frame.Tick(m.table.cfg.MoveWindow) {
		r.since, r.moves = m.now, 0
	}
	if r.last != m.now {
		r.now = 0
	}
	r.moves, r.now, r.last, r.frozen = r.moves+1, r.now+1, m.now, freezes
	other := d
	if d == r.home.dest {
		other = r.dest
	}
	if freezes {
		r.since = m.now
	}
	if to != r.dest {
		m.want(frame.Event{Kind: frame.EventMACMoved, VNI: 7, MAC: mac, Dest: to, Old: old.dest, Pinned: old.pinned})
		m.stats.Moved++
		r.dest, r.pinned, r.flags, r.seen = to, false, 0, m.now
	}
	if freezes {
		m.want(frame.Event{Kind: frame.EventMACFrozen, VNI: 7, MAC: mac, Dest: r.home.dest, Old: other})
		m.stats.Frozen++
	}
	if r.now == m.table.flaps+1 {
		m.want(frame.Event{Kind: frame.EventMACFlapping, VNI: 7, MAC: mac, Dest: other, Old: r.home.dest})
		m.stats.Flapped++
	}
}

// thaw takes note that Sweep has ended a freeze whose time is over.
func (m *model) thaw(r *row, e Entry) {
	if r.frozen && !e.Frozen && m.now-r.since >= frame.Tick(m.table.cfg.FreezeTime) {
		r.frozen, r.moves = false, 0
	}
}

func (m *model) set(mac frame.MAC, d frame.Dest, f Flags) {
	got := m.table.Set(mac, d, f)
	if f&Filter != 0 {
		d = frame.Filter
	}
	if d == frame.Filter {
		f |= Filter
	}
	r := m.rows[mac]
	var want error
	switch {
	case mac.IsZero():
		want = ErrZeroMAC
	case r == nil || f&Control == 0 || f&Override != 0:
	case !r.pinned && r.dest.Peer() == 0:
		want = ErrLocal
	case r.pinned && r.flags&Control == 0:
		want = ErrStatic
	}
	if !errors.Is(got, want) {
		m.fatalf("Set(%v, %v, %b) = %v, want %v", mac, d, f, got, want)
	}
	if want != nil {
		return
	}
	m.wantDeleted(mac)
	n := &row{dest: d, pinned: true, flags: f &^ Override}
	if r != nil {
		n.seen = r.seen
	}
	m.rows[mac] = n
	m.lookup(mac)
}

func (m *model) lookup(mac frame.MAC) {
	m.t.Helper()
	d, ok := m.table.Lookup(mac)
	e, ok2 := m.table.Get(mac)
	r := m.rows[mac]
	switch {
	case ok != ok2 || ok != (r != nil):
		m.fatalf("Lookup(%v) = %v, Get = %v, row %+v", mac, ok, ok2, r)
	case ok && (d != r.dest || !m.same(e, mac, r)):
		m.fatalf("Lookup(%v) = %v, Get = %+v, row %+v", mac, d, e, *r)
	}
}

func (m *model) drop(gone func(*row) bool) {
	for mac, r := range m.rows {
		if gone(r) {
			delete(m.rows, mac)
		} else if r.home != nil && gone(r.home) {
			r.home = nil
		}
	}
}

func (m *model) want(e frame.Event) {
	m.t.Helper()
	if len(m.events) == 0 || m.events[0] != e {
		m.fatalf("events %v, want %v", m.events, e)
	}
	m.events = m.events[1:]
}

// wantDeleted wants an event if the entry of a MAC was learned.
func (m *model) wantDeleted(mac frame.MAC) {
	if r := m.rows[mac]; r != nil && !r.pinned {
		m.want(frame.Event{Kind: frame.EventMACDeleted, VNI: 7, MAC: mac, Dest: r.dest})
	}
}

func TestModel(t *testing.T) {
	seeds := uint64(128) // each combination of settings four times
	if testing.Short() {
		seeds = 32
	}
	for seed := range seeds {
		t.Run(fmt.Sprint("seed", seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 1))
			prog := make([]byte, 5000)
			for i := range prog {
				prog[i] = byte(r.Uint32())
			}
			prog[0] = byte(seed) // every combination of settings
			newModel(t, prog).run()
		})
	}
}

func FuzzTable(f *testing.F) {
	for seed := range uint64(16) {
		r := rand.New(rand.NewPCG(seed, 2))
		prog := make([]byte, 400)
		for i := range prog {
			prog[i] = byte(r.Uint32())
		}
		prog[0] = byte(seed)
		f.Add(prog)
	}
	f.Fuzz(func(t *testing.T, prog []byte) { newModel(t, prog[:min(len(prog), 4096)]).run() })
}
