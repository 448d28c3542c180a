package fdb

import (
	"slices"
	"testing"

	"github.com/vxswitch/vxswitch/frame"
)

var (
	tap1, tap2 = frame.NewDest(1, 0), frame.NewDest(2, 0)
	tun5, tun6 = frame.NewDest(9, 5), frame.NewDest(9, 6)
	host       = frame.MAC{2, 0, 0, 0, 0, 1}
)

// TestRules has one row for each rule about a single MAC. The rule is quoted.
func TestRules(t *testing.T) {
	learnedAt := func(d frame.Dest) func(*Table) { return func(t *Table) { t.Learn(host, d, 0) } }
	set := func(d frame.Dest, f Flags) func(*Table) { return func(t *Table) { t.Set(host, d, f) } }
	nothing := func(*Table) {}
	const nowhere = ^frame.Dest(0)
	tests := []struct {
		rule  string
		given func(*Table)
		claim frame.Dest
		want  Outcome
		at    frame.Dest
		event frame.EventKind
	}{
		{"learning: a new source", nothing, tap1, New, tap1, frame.EventMACLearned},
		{"look, compare, write only on change", learnedAt(tap1), tap1, Known, tap1, 0},
		{"a move (other port) is followed at once, and is one event", learnedAt(tap1), tap2, Moved, tap2, frame.EventMACMoved},
		{"a move (other peer) is followed at once, and is one event", learnedAt(tun5), tun6, Moved, tun6, frame.EventMACMoved},
		{"a move (port to tunnel)", learnedAt(tap1), tun5, Moved, tun5, frame.EventMACMoved},
		{"static entries never move by learning (port)", set(tap1, Static), tap2, Refused, tap1, 0},
		{"static entries never move by learning (tunnel)", set(tap1, Static), tun5, Refused, tap1, 0},
		{"a static entry where it is", set(tap1, Static), tap1, Known, tap1, 0},
		{"sticky entries never move by learning (port)", set(tun5, Control|Sticky), tap1, Refused, tun5, 0},
		{"sticky entries never move by learning (tunnel)", set(tun5, Control|Sticky), tun6, Refused, tun5, 0},
		{"a control entry without sticky gives way on a non-tunnel attachment", set(tun5, Control), tap1, Moved, tap1, frame.EventMACMoved},
		{"never to learning from a tunnel", set(tun5, Control), tun6, Kept, tun5, 0},
		{"never to learning from a tunnel (local control entry)", set(tap1, Control), tun6, Kept, tap1, 0},
		{"filter entry: frames from that MAC are dropped", set(tap1, Filter), tap1, Filtered, frame.Filter, 0},
		{"filter entry, by Dest", set(frame.Filter, Static), tap2, Filtered, frame.Filter, 0},
		{"filter entry of a control plane does not give way", set(0, Filter|Control), tap1, Filtered, frame.Filter, 0},
		{"own MAC claimed on a port", set(0, Static), tap1, Own, 0, 0},
		{"own MAC claimed through a tunnel", set(0, Static), tun5, Own, 0, 0},
		{"own MAC of a control plane does not give way", set(0, Control), tap1, Own, 0, 0},
		{"anycast MAC from a tunnel: accepted, never learned", set(0, Anycast), tun5, Kept, 0, 0},
		{"anycast MAC from a local port: drop", set(0, Anycast), tap1, Own, 0, 0},
		{"port 0 does not learn", nothing, 0, Invalid, nowhere, 0},
		{"nobody learns a filter", nothing, frame.Filter, Invalid, nowhere, 0},
	}
	for _, tt := range tests {
		t.Run(tt.rule, func(t *testing.T) {
			var events []frame.Event
			table := NewTable(&Config{VNI: 77, Notify: func(e frame.Event) { events = append(events, e) }})
			tt.given(table)
			before, _ := table.Get(host)
			events = nil
			if got := table.Learn(host, tt.claim, 1); got != tt.want {
				t.Errorf("Learn: %v, want %v", got, tt.want)
			}
			d, ok := table.Lookup(host)
			if ok != (tt.at != nowhere) || ok && d != tt.at {
				t.Errorf("then at %v, %v; want %v", d, ok, tt.at)
			}
			if tt.event == 0 {
				if len(events) > 0 {
					t.Errorf("events %v", events)
				}
				return
			}
			want := frame.Event{Kind: tt.event, VNI: 77, MAC: host, Dest: tt.at}
			if tt.event == frame.EventMACMoved {
				want.Old, want.Pinned = before.Dest, before.Origin != OriginLearned
			}
			if len(events) != 1 || events[0] != want {
				t.Errorf("events %v, want %v", events, want)
			}
			if e, _ := table.Get(host); e.Origin != OriginLearned || e.Seen != 1 {
				t.Errorf("then %+v", e)
			}
		})
	}
}

func TestNeverLearned(t *testing.T) {
	table := NewTable(nil)
	for _, mac := range []frame.MAC{{}, frame.Broadcast, {1, 0, 0x5e, 0, 0, 1}, {0x33, 0x33, 0, 0, 0, 1}} {
		if o := table.Learn(mac, tap1, 0); o != Invalid {
			t.Errorf("Learn(%v) = %v", mac, o)
		}
	}
	if table.Len() != 0 {
		t.Error("something was learned")
	}
	if err := table.Set(frame.MAC{1, 0, 0x5e, 0, 0, 1}, tun5, Control); err != nil {
		t.Error("an FDB entry for a group MAC that names a replication set is allowed for:", err)
	}
	if o := table.Learn(frame.MAC{1, 0, 0x5e, 0, 0, 1}, tun5, 0); o != Invalid {
		t.Errorf("a group MAC that has an entry is learned: %v", o)
	}
}

// "Ageing 300 s by default, refreshed by reception only, never by look-ups for
// sending. Static and control entries do not age."
func TestAgeing(t *testing.T) {
	var events []frame.Event
	table := NewTable(&Config{Notify: func(e frame.Event) { events = append(events, e) }})
	silent, talking, static, control := macAt(1), macAt(2), macAt(3), macAt(4)
	table.Learn(silent, tap1, 10)
	table.Learn(talking, tap1, 10)
	table.Set(static, tap1, Static)
	table.Set(control, tap1, Control)
	table.Learn(talking, tap1, 11)
	events = nil
	table.Lookup(silent)
	table.Sweep(309, 4096)
	if len(events) != 0 {
		t.Fatalf("aged after 299 s: %v", events)
	}
	table.Sweep(310, 4096)
	if len(events) != 1 || events[0] != (frame.Event{Kind: frame.EventMACAged, MAC: silent, Dest: tap1}) {
		t.Fatalf("after 300 s: %v", events)
	}
	table.SetAgeing(Never)
	table.Sweep(1<<30, 4096)
	table.SetAgeing(0)
	table.Sweep(1<<30, 4096)
	if len(events) != 2 || table.Len() != 2 {
		t.Errorf("%v, %d left", events, table.Len())
	}
}

// A worker whose clock is behind neither ages an entry nor takes its time back,
// and the clock may pass 2^32.
func TestClock(t *testing.T) {
	table := NewTable(nil)
	table.Learn(host, tap1, 100)
	table.Learn(host, tap1, 99)
	if e, _ := table.Get(host); e.Seen != 100 || e.Age(99) != 0 || e.Age(107) != 7 {
		t.Errorf("%+v", e)
	}
	if table.Sweep(99, 100); table.Len() != 1 {
		t.Error("aged before it was heard")
	}
	table.Delete(host)
	table.Learn(host, tap1, ^frame.Tick(0)-10)
	table.Learn(host, tap1, 5)
	if e, _ := table.Get(host); e.Seen != 5 || e.Age(300) != 295 {
		t.Errorf("%+v", e)
	}
}

// "After 5 moves in 180 s (RFC 7432 §15.1) the MAC can be frozen, where it was before the moves
// began; off by default."
func TestFreeze(t *testing.T) {
	at := [2]frame.Dest{tap1, tap2}
	table := NewTable(&Config{Freeze: 5})
	for i := range 6 {
		table.Learn(host, at[i&1], frame.Tick(i))
	}
	if e, _ := table.Get(host); e.Moves != 5 || !e.Frozen || e.Dest != tap1 {
		t.Errorf("%+v", e)
	}
	if o := table.Learn(host, tap2, 7); o != Frozen {
		t.Error(o)
	}
	if o := table.Learn(host, tap1, 8); o != Known {
		t.Error(o)
	}
	if s := table.Stats(); s.Frozen != 1 || s.Refused != 2 || s.Moved != 4 {
		t.Errorf("%+v", s)
	}
	for name, thaw := range map[string]func(t *Table){
		"Delete": func(t *Table) { t.Delete(host) }, "Flush": func(t *Table) { t.Flush() }, "a flushed port": func(t *Table) { t.gens.FlushPort(tap2.Port()) },
		"Set": func(t *Table) { t.Set(host, tap2, Static); t.Delete(host) },
	} {
		cold := NewTable(nil)
		cold.SetFreeze(2)
		for i := range 3 {
			cold.Learn(host, at[(i+1)&1], 0)
		}
		if o := cold.Learn(host, tap1, 0); o != Frozen {
			t.Error(name, "before:", o)
		}
		if e, _ := cold.Get(host); e.Dest != tap2 {
			t.Error(name, "before:", e)
		}
		cold.SetFreeze(0)
		if o := cold.Learn(host, tap1, 0); o != Frozen {
			t.Error(name, "the setting thaws nothing:", o)
		}
		thaw(cold)
		if o := cold.Learn(host, tap1, 0); o != New {
			t.Error(name, "thaws:", o)
		}
	}
	slow, off := NewTable(&Config{Freeze: 5}), NewTable(&Config{Flaps: -1})
	for i := range 300 {
		if o := slow.Learn(host, at[i&1], frame.Tick(i*45)); i > 0 && o != Moved {
			t.Fatal("4 moves in 180 s:", i, o)
		}
		if o := off.Learn(host, at[i&1], 0); i > 0 && o != Moved {
			t.Fatal("off by default:", i, o)
		}
	}
	if e, _ := off.Get(host); e.Moves != 255 {
		t.Errorf("%+v", e)
	}
}

// Who claims a MAC does not get it for good, however often, however slowly and however long he
// claims it: it is frozen where it was, and for a time that he does not make longer.
func TestFreezeNoHijack(t *testing.T) {
	for _, every := range []frame.Tick{0, 1, 30, 44, 60, 179} {
		table := NewTable(&Config{Freeze: 5, Ageing: Never})
		table.Learn(host, tap1, 0)
		frozen, thawed := 0, 0
		for now := frame.Tick(200); now < 4000; now += max(every, 1) {
			n := 1
			if every == 0 {
				n = 100
			}
			for range n { // the claim last, so that it holds the MAC while nobody speaks
				was, _ := table.Get(host)
				table.Learn(host, tap1, now)
				o := table.Learn(host, tun5, now)
				e, _ := table.Get(host)
				if o == Frozen && e.Dest != tap1 || e.Frozen && e.Dest != tap1 {
					t.Fatalf("every %d: %v, %+v", every, o, e)
				}
				if e.Frozen && !was.Frozen {
					frozen++
				}
			}
			before, _ := table.Get(host)
			table.Sweep(now, 100)
			if e, _ := table.Get(host); before.Frozen && !e.Frozen {
				thawed++
			}
		}
		if frozen == 0 && every < 60 || frozen-thawed > 1 {
			t.Errorf("every %d: frozen %d times, thawed %d times", every, frozen, thawed)
		}
	}
}

// The third of three places: frozen is where it was first, and events say so.
func TestFreezeGoesHome(t *testing.T) {
	var events []frame.Event
	gens := NewGens()
	table := NewTable(&Config{Freeze: 3, Gens: gens, Notify: func(e frame.Event) { events = append(events, e) }})
	table.Learn(host, tap1, 0)
	table.Learn(host, tap2, 1)
	table.Learn(host, tun5, 2)
	events = nil
	if o := table.Learn(host, tun6, 3); o != Frozen {
		t.Error(o)
	}
	want := []frame.Event{{Kind: frame.EventMACMoved, MAC: host, Dest: tap1, Old: tun5}, {Kind: frame.EventMACFrozen, MAC: host, Dest: tap1, Old: tun6}}
	if !slices.Equal(events, want) {
		t.Errorf("%v, want %v", events, want)
	}
	// A home that has gone is none.
	for name, gone := range map[string]func(t *Table){
		"port killed": func(*Table) { gens.KillPort(tap1.Port()) }, "port flushed": func(*Table) { gens.FlushPort(tap1.Port()) },
		"port out of the segment": func(t *Table) { t.DeletePort(tap1.Port()) },
	} {
		table := NewTable(&Config{Freeze: 3, Gens: gens})
		table.Learn(host, tap1, 0)
		table.Learn(host, tap2, 1)
		gone(table)
		for i := range frame.Tick(10) {
			table.Learn(host, []frame.Dest{tun5, tun6}[i&1], 2+i)
			if e, _ := table.Get(host); e.Dest == tap1 || e.Frozen && e.Dest != tap2 {
				t.Errorf("%s: %+v", name, e)
			}
		}
		if e, _ := table.Get(host); !e.Frozen {
			t.Errorf("%s: %+v", name, e)
		}
	}
}

// A MAC that would move more often than Flaps in a tick is told of once in it, and stays where it
// was at first until the next one.
func TestFlaps(t *testing.T) {
	var events []frame.Event
	table := NewTable(&Config{Notify: func(e frame.Event) {
		if e.Kind == frame.EventMACFlapping {
			events = append(events, e)
		}
	}})
	table.Learn(host, tap1, 0)
	claims := func(from, to frame.Tick, n int) {
		for now := from; now < to; now++ {
			for i := range n {
				o := table.Learn(host, []frame.Dest{tap2, tap1}[i&1], now)
				if e, _ := table.Get(host); i > 10 && (o == Moved || e.Dest != tap1 || e.Frozen) {
					t.Fatalf("tick %d, claim %d: %v, %+v", now, i, o, e)
				}
			}
		}
	}
	claims(1, 6, 30)
	want := slices.Repeat([]frame.Event{{Kind: frame.EventMACFlapping, MAC: host, Dest: tap2, Old: tap1}}, 5)
	if !slices.Equal(events, want) {
		t.Errorf("%v, want %v", events, want)
	}
	claims(6, 11, 10)
	table.SetFlaps(-1)
	for i := range 100 {
		if o := table.Learn(host, []frame.Dest{tap2, tap1}[i&1], 20); o != Moved {
			t.Error(i, o)
		}
	}
	if s := table.Stats(); len(events) != 5 || s.Flapped != 5 {
		t.Errorf("%d events, %d counted", len(events), s.Flapped)
	}
}

// Pinned is for entries that somebody made, at the place they were made for.
func TestPinned(t *testing.T) {
	table := NewTable(nil)
	want := func(d frame.Dest, want bool) {
		t.Helper()
		if got := table.Pinned(host, d); got != want {
			t.Errorf("at %v: %v", d, got)
		}
	}
	want(tap1, false)
	table.Learn(host, tap1, 0)
	want(tap1, false)
	for _, f := range []Flags{Static, Control | Override, Control | Sticky | Override} {
		table.Set(host, tap1, f)
		want(tap1, true)
		want(tap2, false)
	}
	table.gens.FlushPort(tap1.Port())
	want(tap1, true)
	table.gens.KillPort(tap1.Port())
	want(tap1, false)
	table.Set(host, 0, Filter)
	want(tap1, false)
	if table.Pinned(frame.MAC{}, tap1) || table.Pinned(frame.MAC{}, 0) {
		t.Error("the zero MAC")
	}
}

func TestControlOverLocal(t *testing.T) {
	table := NewTable(nil)
	table.Learn(host, tap1, 0)
	if err := table.Set(host, tun5, Control); err != ErrLocal {
		t.Error(err)
	}
	if err := table.Set(host, tun5, Control|Override); err != nil {
		t.Error(err)
	}
	if err := table.Set(host, tun6, Static); err != nil {
		t.Error(err)
	}
	if err := table.Set(host, tun5, Control); err != ErrStatic {
		t.Error(err)
	}
	if err := table.Set(frame.MAC{}, tun5, Static); err != ErrZeroMAC {
		t.Error(err)
	}
	remote := macAt(9)
	table.Learn(remote, tun6, 0)
	if err := table.Set(remote, tun5, Control); err != nil {
		t.Error("learned from a tunnel:", err)
	}
	if e, _ := table.Get(host); e.Dest != tun6 || e.Flags != Static || e.Origin != OriginStatic {
		t.Errorf("%+v", e)
	}
}

func TestNames(t *testing.T) {
	for o := Known; o <= Invalid; o++ {
		if o != Invalid && o.String() == "invalid" {
			t.Error(uint8(o))
		}
	}
	if Outcome(99).String() != "invalid" || Origin(9).String() != "invalid" ||
		OriginControl.String() != "control" || OriginStatic.String() != "static" || OriginLearned.String() != "learned" {
		t.Error("names")
	}
}
