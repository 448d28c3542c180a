package fdb

import (
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

// "After 5 moves in 180 s (RFC 7432 §15.1) the MAC can be frozen; off by default."
func TestFreeze(t *testing.T) {
	at := [2]frame.Dest{tap1, tap2}
	table := NewTable(&Config{Freeze: 5})
	for i := range 6 {
		table.Learn(host, at[i&1], frame.Tick(i))
	}
	if e, _ := table.Get(host); e.Moves != 5 || !e.Frozen || e.Dest != tap2 {
		t.Errorf("%+v", e)
	}
	if o := table.Learn(host, tap1, 7); o != Frozen {
		t.Error(o)
	}
	if o := table.Learn(host, tap2, 8); o != Known {
		t.Error(o)
	}
	table.Sweep(308, 100)
	if o := table.Learn(host, tap1, 309); o != New {
		t.Error("it thaws when it ages:", o)
	}
	if s := table.Stats(); s.Frozen != 1 || s.Refused != 1 || s.Moved != 5 {
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
		cold.SetFreeze(0)
		if o := cold.Learn(host, tap1, 0); o != Frozen {
			t.Error(name, "the setting thaws nothing:", o)
		}
		thaw(cold)
		if o := cold.Learn(host, tap1, 0); o != New {
			t.Error(name, "thaws:", o)
		}
	}
	slow, off := NewTable(&Config{Freeze: 5}), NewTable(nil)
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
