package arp

import (
	"cmp"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/frame"
)

// A goldenTable is what a Table is, as a map that is searched from end to end.
type goldenTable struct {
	cfg        TableConfig
	rows       map[netip.Addr]*Entry
	began      map[netip.Addr]frame.Tick // the window of moves
	heard      map[netip.Addr]int        // in which order
	asked      map[netip.Addr]bool
	turn       int
	duplicates uint64
	aged       uint64
}

func (g *goldenTable) snooped(from *frame.Dest) (n int) {
	for _, e := range g.rows {
		if e.Origin == Snooped && (from == nil || e.From == *from) {
			n++
		}
	}
	return n
}

// room makes room for a snooped entry from a place, and reports whether there is any; e is
// what there is of it.
func (g *goldenTable) room(c Claim, e *Entry) bool {
	if e != nil && e.Origin == Snooped && e.From == c.From {
		return true
	}
	forget := func(from frame.Dest) bool {
		var oldest *Entry
		for _, x := range g.rows {
			if x.Origin == Snooped && x.From == from && (oldest == nil || g.heard[x.IP] < g.heard[oldest.IP]) {
				oldest = x
			}
		}
		delete(g.rows, oldest.IP)
		g.aged++
		return true
	}
	n := g.snooped(&c.From)
	if n >= g.cfg.PerDest {
		return g.asked[c.IP] && forget(c.From)
	}
	if e != nil && e.Origin == Snooped || g.snooped(nil) < g.cfg.Limit {
		return true
	}
	var most frame.Dest
	for _, x := range g.rows {
		if x.Origin != Snooped {
			continue
		}
		if d := g.snooped(&x.From) - g.snooped(&most); d > 0 || d == 0 && x.From < most {
			most = x.From
		}
	}
	if n+1 < g.snooped(&most) {
		return forget(most)
	}
	if g.asked[c.IP] && n > 0 {
		return forget(c.From)
	}
	return g.asked[c.IP] && forget(most)
}

// hears notes that an entry was heard at a place.
func (g *goldenTable) hears(e *Entry, from frame.Dest, now frame.Tick) {
	if e.Seen != now || e.From != from || g.heard[e.IP] == 0 {
		g.turn++
		g.heard[e.IP] = g.turn
	}
	e.From, e.Seen, e.State = from, now, Reachable
}

func (g *goldenTable) learn(c Claim, now frame.Tick) LearnOutcome {
	e := g.rows[c.IP]
	switch {
	case !isHost(c.IP) || !c.MAC.IsHost():
		return Invalid
	case e == nil:
		if c.Foreign && !g.asked[c.IP] {
			return Refused
		}
		if !g.room(c, nil) {
			return Full
		}
		e = &Entry{IP: c.IP, MAC: c.MAC, Flags: c.Flags}
		g.rows[c.IP], g.heard[c.IP] = e, 0
		g.hears(e, c.From, now)
		return New
	case e.State == Duplicate: // stays so for the ageing time
		return Refused
	case e.MAC == c.MAC && (e.Origin == Static || e.Origin == Control && (c.From.Port() == 0 || c.From.Peer() != 0)):
		return Known
	case e.MAC != c.MAC && (c.Weak || e.Origin == Static || e.Origin == Control && c.From.Peer() != 0):
		return Refused
	case !g.room(c, e):
		return Full
	}
	pinned := e.Origin == Control
	if pinned { // gives way
		e.Origin, e.From = Snooped, c.From
		g.turn++
		g.heard[c.IP] = g.turn
	}
	if e.MAC == c.MAC {
		g.hears(e, c.From, now)
		if c.Flags&Taught != 0 {
			e.Flags = c.Flags
		}
		if pinned {
			return Moved
		}
		return Known
	}
	if e.Moves == 0 || now-g.began[c.IP] >= frame.Tick(g.cfg.DuplicateWindow/time.Second) {
		e.Moves, g.began[c.IP] = 0, now
	}
	if e.Moves++; g.cfg.DuplicateMoves > 0 && e.Moves >= g.cfg.DuplicateMoves {
		e.Moves = 0
		g.duplicates++
		if g.cfg.Freeze {
			e.State, e.Seen = Duplicate, now
			return Refused
		}
	}
	e.MAC, e.Flags = c.MAC, c.Flags
	g.hears(e, c.From, now)
	return Moved
}

func (g *goldenTable) sweep(now frame.Tick, ask bool) (asked int) {
	ageing := frame.Tick(g.cfg.Ageing / time.Second)
	for ip, e := range g.rows {
		switch age := now - e.Seen; {
		case g.cfg.Ageing < 0:
		case e.Origin == Snooped && age >= ageing:
			delete(g.rows, ip)
			g.aged++
		case ask && e.State == Reachable && age >= ageing-ageing/4:
			e.State = Probing
			asked++
		}
	}
	return asked
}

// FuzzTable: whatever is said, set, forgotten and aged, the table is the map.
func FuzzTable(f *testing.F) {
	f.Add([]byte{3, 1, 8, 3, 1, 0, 1, 1, 0, 0, 2, 1, 0, 1, 2, 0, 6, 20, 0, 1, 1, 9, 6, 3})
	f.Add([]byte{0, 0, 0, 0, 0, 0, 1, 1, 0, 0, 1, 2, 1, 0, 1, 1, 0, 0, 1, 2, 1, 6, 1, 4, 1, 5, 0, 1, 3})
	f.Fuzz(againstModel)
}

// The same for a while, whatever a fuzzer has found.
func TestModel(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	in := make([]byte, 600) // enough for 200 steps
	for range 1000 {
		for i := range in {
			in[i] = byte(rng.Uint32())
		}
		againstModel(t, in)
	}
}

// againstModel has the bytes say what is done with a table, and its model.
func againstModel(t *testing.T, in []byte) {
	next := func() byte {
		if len(in) == 0 {
			return 0
		}
		b := in[0]
		in = in[1:]
		return b
	}
	b := next()
	g := goldenTable{rows: map[netip.Addr]*Entry{}, began: map[netip.Addr]frame.Tick{}, heard: map[netip.Addr]int{}, asked: map[netip.Addr]bool{}}
	g.cfg = TableConfig{
		Limit: 1 + int(b&7), PerDest: int(b >> 3 & 3), Freeze: b&32 != 0, Ageing: 8 * time.Second, DuplicateMoves: 1 + int(b>>6),
		DuplicateWindow: time.Duration(1+next()&15) * time.Second,
	}
	if b&63 == 63 {
		g.cfg.Ageing, g.cfg.DuplicateMoves = -1, -1
	}
	events := map[frame.EventKind]uint64{}
	g.cfg.Notify = func(e frame.Event) { events[e.Kind]++ }
	table, err := NewTable(&g.cfg)
	must(t, err)
	table.Watch(func(ip netip.Addr) bool { return g.asked[ip] }, func(netip.Addr) {})
	g.cfg.PerDest = cmp.Or(g.cfg.PerDest, (g.cfg.Limit+1)/2)
	now, told := frame.Tick(1), map[LearnOutcome]uint64{}
	ipOf := func(b byte) netip.Addr { return addr(b&8 != 0, b&7) }
	for steps := 0; len(in) > 0 && steps < 200; steps++ {
		switch op := next(); op % 8 {
		default:
			x, y, z := next(), next(), next()
			c := Claim{IP: ipOf(x), MAC: mac(y & 3), Flags: Flags(y >> 2 & 7), Weak: y&32 != 0, From: frame.NewDest(uint16(1+z&3), uint16(z>>2&1))}
			if y&0xc0 == 0xc0 {
				c.MAC = frame.MAC{1, 0, 0, 0, 0, 1}
			}
			if x > 250 {
				c.IP = netip.MustParseAddr("224.0.0.1")
			}
			c.Foreign, g.asked[c.IP] = z&8 != 0, z&16 != 0
			got, want := table.Learn(&c, now), g.learn(c, now)
			if told[want]++; got != want {
				t.Fatalf("%+v: %v, want %v", c, got, want)
			}
		case 4:
			x, y := next(), next()
			o := []Origin{Static, Control}[y>>4&1]
			must(t, table.Set(ipOf(x|1), mac(1+y&3), o, Flags(y>>2&3)))
			g.rows[ipOf(x|1)] = &Entry{IP: ipOf(x | 1), MAC: mac(1 + y&3), Origin: o, Flags: Flags(y>>2&3) | Taught}
		case 5:
			ip := ipOf(next())
			if _, want := g.rows[ip]; table.Delete(ip) != want {
				t.Fatalf("delete %v: want %v", ip, want)
			}
			delete(g.rows, ip)
		case 6:
			now += frame.Tick(next() & 15)
			var due func(Entry) bool
			asked := 0
			if op&8 != 0 {
				due = func(Entry) bool { asked++; return true }
			}
			table.Sweep(now, due)
			if want := g.sweep(now, due != nil); asked != want {
				t.Fatalf("%d asked, want %d", asked, want)
			}
		case 7:
			table.Flush()
			for ip, e := range g.rows {
				if e.Origin == Snooped {
					delete(g.rows, ip)
				}
			}
		}
		g.compare(t, table)
	}
	s := table.Stats()
	if s.Learned != told[New] || s.Moved != told[Moved] || s.Refused != told[Refused] || s.Full != told[Full] || s.Invalid != told[Invalid] || s.Busy != 0 ||
		s.Aged != g.aged || s.Duplicates != g.duplicates || events[frame.EventNeighbourAged] != g.aged || events[frame.EventNeighbourDuplicate] != g.duplicates {
		t.Fatalf("%+v, want %v, %d aged, %d duplicates; events %v", s, told, g.aged, g.duplicates, events)
	}
}

func (g *goldenTable) compare(t *testing.T, table *Table) {
	n := 0
	for e := range table.All() {
		want := g.rows[e.IP]
		if e.since = 0; want == nil {
			t.Fatalf("%+v is there", e)
		}
		w := *want
		if w.State == Permanent && w.Origin == Snooped {
			t.Fatalf("model: %+v", w)
		}
		if e != w {
			t.Fatalf("%+v, want %+v", e, w)
		}
		n++
	}
	if s := table.Stats(); n != len(g.rows) || s.Entries != n || table.Len() != n || s.Snooped != g.snooped(nil) {
		t.Fatalf("%d entries, %+v, want %d", n, s, len(g.rows))
	}
	for _, v6 := range []bool{false, true} {
		for k := range byte(8) {
			ip := addr(v6, k)
			h, e := table.Resolve(ip), g.rows[ip]
			switch {
			case e == nil || e.State == Duplicate:
				if h != 0 {
					t.Fatalf("%v is at %x", ip, h)
				}
			case h.MAC() != e.MAC.Uint64() || h.Remote() != (e.From.Peer() != 0):
				t.Fatalf("%v is at %x, want %+v", ip, h, e)
			}
		}
	}
}
