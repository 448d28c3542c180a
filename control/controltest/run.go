package controltest

import (
	"net/netip"
	"slices"
	"sync"
	"testing"

	"github.com/vxswitch/vxswitch/control"
	"github.com/vxswitch/vxswitch/frame"
)

// Run tests a Programmer: each case with a fixture of its own.
func Run(t *testing.T, fixture func(t *testing.T) Fixture) {
	for _, c := range []struct {
		name string
		test func(tester)
	}{
		{"add", add}, {"replace", replace}, {"withdraw", withdraw}, {"last row counts", lastRow},
		{"snapshot", snapshot}, {"other owner untouched", otherOwner}, {"precedence", precedence},
		{"flood lists are joined", floodUnion}, {"pruned flood lists", pruned}, {"flood lists of groups", ofGroups}, {"next hops", nextHops}, {"distances", distances}, {"routers", routers},
		{"filters", filters}, {"group MACs", groupMACs}, {"far VNIs", farVNIs}, {"groups", groups}, {"groups of owners", groupsOfOwners},
		{"idempotent", idempotent}, {"restart", restart}, {"unknown", unknown}, {"malformed", malformed},
		{"refused when written", lateRefusal}, {"loose", loose}, {"concurrent owners", concurrent},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := fixture(t)
			c.test(tester{t, &f})
		})
	}
}

func add(t tester) {
	t.wantAll(-1)
	t.add(t.Owners[0], t.all(0)...)
	t.wantAll(0)
	t.wantNeighbour(1, frame.MAC{}) // it came without an address
	if got := t.Tables.MAC(t.VNIs[1], host(1)); got != "" {
		t.Errorf("the other segment has it too: at %s", got)
	}
	if t.Port != "" {
		t.add(t.Owners[0], control.MAC{VNI: t.VNIs[0], MAC: host(9), Port: t.Port})
		if got := t.Tables.MAC(t.VNIs[0], host(9)); got != t.Port {
			t.Errorf("%v is at %q, want %q", host(9), got, t.Port)
		}
	}
}

// A row with the key of another replaces it, without a withdrawal.
func replace(t tester) {
	t.add(t.Owners[0], t.at(1, 0), t.with(2, 0))
	t.add(t.Owners[0], t.at(1, 1), t.with(2, 1))
	t.wantMAC(1, 1)
	t.wantMAC(2, 1)
	t.del(t.Owners[0], t.at(1, 0)) // the key says which
	t.wantMAC(1, -1)
	t.program(t.Owners[0], control.Update{Del: []control.Row{t.with(2, 1)}, Add: []control.Row{t.with(2, 2)}})
	t.wantMAC(2, 2)
	t.wantNeighbour(2, host(2))
}

func withdraw(t tester) {
	t.add(t.Owners[0], t.all(0)...)
	t.add(t.Owners[0], t.at(3, 0))
	t.del(t.Owners[0], t.all(0)...)
	t.wantAll(-1)
	t.wantMAC(3, 0)
	t.unwritten("a row that is not there", func() { t.del(t.Owners[0], t.all(0)...) })
	t.unwritten("an owner without rows", func() { t.snapshot(t.Owners[1]) })
}

// A host has a row for each address: its place is what was said last.
func lastRow(t tester) {
	t.add(t.Owners[0], t.at(2, 0), t.with(2, 0))
	t.add(t.Owners[0], t.with(2, 1)) // it has moved, and the other row follows
	t.wantMAC(2, 1)
	t.add(t.Owners[0], t.at(2, 1))
	t.del(t.Owners[0], t.with(2, 1))
	t.wantMAC(2, 1)
	t.wantNeighbour(2, frame.MAC{})
	other := control.MAC{VNI: t.VNIs[0], MAC: host(3), IP: addr(2), VTEP: t.VTEPs[0]}
	t.add(t.Owners[0], t.with(2, 1), other) // an address goes from one host to another
	t.wantNeighbour(2, host(3))
	t.del(t.Owners[0], other)
	t.wantNeighbour(2, host(2))
}

func snapshot(t tester) {
	t.add(t.Owners[0], t.all(0)...)
	t.add(t.Owners[0], t.at(3, 0))
	t.snapshot(t.Owners[0], t.at(3, 1), t.at(4, 0), t.flood(0))
	t.wantMAC(1, -1)
	t.wantMAC(2, -1)
	t.wantMAC(3, 1)
	t.wantMAC(4, 0)
	t.wantFlood(0)
	t.wantNeighbour(2, frame.MAC{})
	t.snapshot(t.Owners[0])
	t.wantMAC(3, -1)
	t.wantAll(-1)
}

func otherOwner(t tester) {
	t.add(t.Owners[1], t.all(0)...)
	t.add(t.Owners[0], t.at(3, 1))
	t.unwritten("another owner's empty snapshot", func() { t.snapshot("somebody") })
	t.snapshot(t.Owners[0])
	t.wantMAC(3, -1)
	t.wantAll(0)
	t.unwritten("withdrawing what another owner has", func() { t.del(t.Owners[0], t.all(0)...) })
	t.wantAll(0)
}

// Whoever comes first in precedence, whenever it comes in time, is in the tables, and is
// followed at once when it withdraws.
func precedence(t tester) {
	first, second := t.Owners[0], t.Owners[1]
	rows := func(vtep int) []control.Row { return append(t.all(vtep)[:2:2], t.all(vtep)[3:]...) } // without the flood list
	t.add(second, t.flood(0))
	for range 2 {
		t.add(second, rows(0)...)
		t.wantAll(0)
		t.add("zzz", rows(2)...)
		t.wantAll(0)
		t.add(first, rows(1)...)
		t.wantMAC(1, 1)
		t.wantMAC(2, 1)
		if t.VRF != "" {
			t.wantRoute("10.9.0.0/16", t.Links[1])
		}
		t.unwritten("the second changes", func() { t.add(second, t.at(1, 2)) })
		t.wantMAC(1, 1)
		t.add(second, t.at(1, 0))
		t.snapshot(first)
		t.wantAll(0)
		t.unwritten("the last goes", func() { t.snapshot("zzz") })
		t.snapshot(second, t.flood(0))
		t.wantMAC(1, -1)
		t.wantMAC(2, -1)
	}
}

func nextHops(t tester) {
	if t.VRF == "" {
		t.Skip("no VRF")
	}
	const p = "10.9.0.0/16"
	a, b, none := t.prefix(p, t.Links[0]), t.prefix(p, t.Links[1]), t.prefix(p, control.Via{})
	t.add(t.Owners[1], none)
	t.wantRoute(p)
	t.add(t.Owners[1], a)
	t.wantRoute(p, t.Links[0])
	t.add(t.Owners[1], b)
	t.wantRoute(p, t.Links[0], t.Links[1])
	t.del(t.Owners[1], a, none)
	t.wantRoute(p, t.Links[1])
	t.add(t.Owners[0], a) // not one route of two owners
	t.wantRoute(p, t.Links[0])
	t.del(t.Owners[0], a)
	t.wantRoute(p, t.Links[1])
	t.del(t.Owners[1], b)
	t.wantNoRoute(p)
}

// The lowest distance counts, whoever has it; of equal ones the first owner's.
func distances(t tester) {
	if t.VRF == "" {
		t.Skip("no VRF")
	}
	const p = "10.9.0.0/16"
	row := func(link int, distance uint8) control.Prefix {
		r := t.prefix(p, t.Links[link])
		r.Distance = distance
		return r
	}
	t.add(t.Owners[0], row(0, 20))
	t.wantRoute(p, t.Links[0])
	t.add(t.Owners[1], row(1, 10))
	t.wantRoute(p, t.Links[1])
	t.unwritten("a backup", func() { t.add(t.Owners[1], row(0, 255)) })
	t.unwritten("a better distance of the same", func() { t.add(t.Owners[1], row(1, 5)) })
	t.add(t.Owners[0], row(0, 5))
	t.wantRoute(p, t.Links[0])
	t.add(t.Owners[0], row(1, 5))
	t.wantRoute(p, t.Links[0], t.Links[1])
	t.snapshot(t.Owners[0])
	t.wantRoute(p, t.Links[1])
	t.del(t.Owners[1], row(1, 10), row(1, 5))
	t.wantRoute(p, t.Links[0])
	t.snapshot(t.Owners[1])
	t.wantNoRoute(p)
}

// The MAC of a router is behind its VTEP for as long as a prefix names it.
func routers(t tester) {
	if t.Router.MAC.IsZero() {
		t.Skip("no routers behind tunnels")
	}
	want := func(at string) {
		t.Helper()
		if got := t.Tables.MAC(t.Router.VNI, t.Router.MAC); got != at {
			t.Errorf("the router is at %q, want %q", got, at)
		}
	}
	a, b := t.prefix("10.9.0.0/16", t.Router), t.prefix("10.10.0.0/16", t.Router)
	t.add(t.Owners[0], a, b)
	want(t.Router.VTEP.Addr().String())
	t.wantRoute("10.9.0.0/16", t.Router)
	t.del(t.Owners[0], a)
	want(t.Router.VTEP.Addr().String())
	t.wantNoRoute("10.9.0.0/16")
	t.add(t.Owners[1], a)
	t.del(t.Owners[0], b)
	want(t.Router.VTEP.Addr().String())
	t.del(t.Owners[1], a)
	want("")
}

func idempotent(t tester) {
	for range 2 {
		t.add(t.Owners[0], t.all(0)...)
		t.unwritten("the same again", func() { t.add(t.Owners[0], t.all(0)...) })
		t.unwritten("the same as a snapshot", func() { t.snapshot(t.Owners[0], t.all(0)...) })
		t.unwritten("the same twice", func() { t.snapshot(t.Owners[0], append(t.all(0), t.all(0)...)...) })
		t.unwritten("the same from another owner", func() { t.add(t.Owners[1], t.all(0)...) })
		t.wantAll(0)
		t.snapshot(t.Owners[1])
		t.snapshot(t.Owners[0])
		t.wantAll(-1)
	}
}

// A control plane that comes back says what it knows: only what is new is written.
func restart(t tester) {
	t.add(t.Owners[0], t.all(0)...)
	t.add(t.Owners[0], t.at(3, 0))
	t.add(t.Owners[1], t.at(4, 1))
	var before uint64
	if t.Writes != nil {
		before = t.Writes()
	}
	t.snapshot(t.Owners[0], append(t.all(0), t.at(5, 0))...)
	if t.Writes != nil && t.Writes()-before != 2 {
		t.Errorf("%d writes, want 2: one row has come, one has gone", t.Writes()-before)
	}
	t.wantAll(0)
	t.wantMAC(3, -1)
	t.wantMAC(4, 1)
	t.wantMAC(5, 0)
}

func unknown(t tester) {
	t.add(t.Owners[0], t.at(1, 0))
	for _, c := range t.placeless() {
		u := control.Update{Snapshot: true, Add: []control.Row{t.at(1, 1), c.row, t.at(2, 0)}}
		t.refuse(t.Owners[0], u, c.row, c.want)
		t.wantMAC(1, 1)
		t.wantMAC(2, 0)
		t.unwritten(c.row.String(), func() { t.refuse(t.Owners[0], u, c.row, c.want) })
	}
}

type placeless struct {
	row  control.Row
	want error
}

// placeless returns rows without a place.
func (f *Fixture) placeless() []placeless {
	nowhere := frame.VNI(frame.MaxVNI)
	list := []placeless{
		{control.MAC{VNI: nowhere, MAC: host(3), VTEP: f.VTEPs[0]}, control.ErrNoSegment},
		{control.Flood{VNI: nowhere, VTEP: f.VTEPs[0]}, control.ErrNoSegment},
		{control.Group{VNI: nowhere, Name: "pair", VTEP: f.VTEPs[0]}, control.ErrNoSegment},
		{f.behind(3, "no such group"), control.ErrNoGroup},
		{control.MAC{VNI: f.VNIs[0], MAC: host(3), Port: "no such port"}, control.ErrNoPort},
		{control.Prefix{VRF: "no such VRF", Prefix: netip.MustParsePrefix("10.0.0.0/8")}, control.ErrNoVRF},
	}
	if f.VRF != "" {
		list = append(list, placeless{f.prefix("10.0.0.0/8", control.Via{VNI: nowhere, IP: addr(1)}), control.ErrNoInterface})
	}
	return list
}

// In a loose Update rows without a place wait, and others are in theirs.
func loose(t tester) {
	for _, c := range t.placeless() {
		t.add(t.Owners[1], t.with(2, 1))
		t.program(t.Owners[0], control.Update{Snapshot: true, Loose: true, Add: append(t.all(0), c.row)})
		t.wantAll(0)
		t.wantMAC(3, -1)
		t.unwritten("the same again", func() { t.snapshot(t.Owners[0], append(t.all(0), c.row)...) })
		t.snapshot(t.Owners[0], c.row)
		t.wantMAC(2, 1) // the next owner's
		t.snapshot(t.Owners[0])
		t.snapshot(t.Owners[1])
		t.wantAll(-1)
	}
	t.program(t.Owners[0], control.Update{Loose: true, Add: []control.Row{t.behind(1, "pair"), t.at(2, 0)}})
	t.wantMAC(1, -1)
	t.add(t.Owners[0], t.group("pair", 1))
	t.wantMAC(1, 1)
	if t.Bad != nil {
		t.program(t.Owners[0], control.Update{Loose: true, Snapshot: true, Add: append(t.all(0), t.Bad)})
		t.wantAll(0)
	}
}

func malformed(t tester) {
	rows := []control.Row{
		nil,
		control.MAC{VNI: t.VNIs[0], VTEP: t.VTEPs[0]},
		control.MAC{VNI: t.VNIs[0], MAC: frame.Broadcast, VTEP: t.VTEPs[0], IP: addr(3)},
		control.MAC{VNI: t.VNIs[0], MAC: host(3), Filter: true, VTEP: t.VTEPs[0]},
		control.MAC{VNI: t.VNIs[0], MAC: host(3), Filter: true, IP: addr(3)},
		control.MAC{VNI: t.VNIs[0], MAC: host(3), VTEP: t.VTEPs[0], FarVNI: frame.MaxVNI + 1},
		control.MAC{VNI: t.VNIs[0], MAC: host(3), Filter: true, FarVNI: 7},
		control.MAC{VNI: t.VNIs[0], MAC: host(3), Group: "pair", VTEP: t.VTEPs[0]},
		control.Group{VNI: t.VNIs[0], VTEP: t.VTEPs[0]},
		control.Group{VNI: t.VNIs[0], Name: "pair"},
		control.Group{VNI: t.VNIs[0], Name: "pair", VTEP: t.VTEPs[0], FarVNI: frame.MaxVNI + 1},
		control.MAC{VNI: t.VNIs[0], MAC: host(3)},
		control.MAC{VNI: t.VNIs[0], MAC: host(3), VTEP: t.VTEPs[0], Port: "both"},
	}
	if t.VRF != "" {
		r := t.prefix("10.9.0.0/16", t.Links[0])
		r.Prefix = netip.MustParsePrefix("10.9.0.1/16")
		rows = append(rows, r)
	}
	for _, r := range rows {
		for _, loose := range []bool{false, true} {
			t.refuse(t.Owners[0], control.Update{Loose: loose, Add: append(t.all(0), r, t.at(4, 0))}, r, nil)
			t.wantAll(0)
			t.wantMAC(4, 0)
			t.snapshot(t.Owners[0])
		}
	}
	if err := t.Programmer.Program("", control.Update{Add: t.all(0)}); err == nil {
		t.Error("an owner without a name was taken")
	}
	t.wantAll(-1)
}

// A refused row counts as removed, and the next owner's takes its place.
func lateRefusal(t tester) {
	if t.Bad == nil {
		t.Skip("no row that only writing shows to be wrong")
	}
	t.add(t.Owners[0], t.all(0)...)
	t.add(t.Owners[1], t.at(1, 2), t.at(3, 2))
	rows := append(t.all(1), t.at(3, 1), t.Bad, t.at(4, 1))
	for _, u := range []control.Update{{Add: rows}, {Snapshot: true, Add: rows}} {
		t.refuse(t.Owners[0], u, t.Bad, nil)
		t.wantMAC(1, 1)
		t.wantMAC(2, 1)
		t.wantMAC(3, 1)
		t.wantMAC(4, 1)
	}
	taken := slices.DeleteFunc(rows, func(r control.Row) bool { return r == t.Bad })
	t.unwritten("what was taken", func() { t.snapshot(t.Owners[0], taken...) })
	t.snapshot(t.Owners[0], t.at(4, 1))
	t.wantMAC(1, 2)
	wrong := t.at(1, 1)
	wrong.FarVNI = frame.MaxVNI + 1
	t.snapshot(t.Owners[0], t.at(1, 1))
	t.refuse(t.Owners[0], control.Update{Add: []control.Row{wrong}}, wrong, nil)
	t.wantMAC(1, 2) // the other owner's
}

// Owners that come and go at once do not see each other. For the race detector.
func concurrent(t tester) {
	const owners, turns = 4, 50
	var all sync.WaitGroup
	for o := range byte(owners) {
		all.Go(func() {
			name := "owner" + string('a'+rune(o))
			for i := range byte(turns) {
				rows := []control.Row{t.with(10*o+i%7, int(i)%3), t.at(10*o+9, int(o)%3), t.flood(int(o) % 3)}
				if err := t.Programmer.Program(name, control.Update{Snapshot: i%2 == 0, Add: rows}); err != nil {
					t.Error(err)
				}
				t.Tables.Flood(t.VNIs[0])
				t.Tables.MAC(t.VNIs[0], host(10*o+9))
			}
			if err := t.Programmer.Program(name, control.Update{Snapshot: true, Add: []control.Row{t.at(10*o+9, int(o)%3), t.flood(int(o) % 3)}}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	t.wantFlood(0, 1, 2)
	for o := range byte(owners) {
		t.wantMAC(10*o+9, int(o)%3)
		for i := range byte(7) {
			t.wantMAC(10*o+i, -1)
			t.wantNeighbour(10*o+i, frame.MAC{})
		}
	}
}
