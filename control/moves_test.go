package control_test

import (
	"testing"

	"github.com/vxswitch/vxswitch/arp"
	"github.com/vxswitch/vxswitch/control"
	"github.com/vxswitch/vxswitch/fdb"
	"github.com/vxswitch/vxswitch/frame"
)

// speak has a host heard on the local port of red.
func (l *leaf) speak(n byte) fdb.Outcome {
	return l.segment(red).FDB().Learn(mac(n), l.local.Dest(0), 0)
}

func (l *leaf) want(n byte, origin fdb.Origin, where string) {
	l.t.Helper()
	e, ok := l.entry(red, mac(n))
	if got := l.MAC(red, mac(n)); !ok && where != "" || ok && e.Origin != origin || got != where {
		l.t.Errorf("%v: %v at %q, want %v at %q", mac(n), e.Origin, got, origin, where)
	}
}

// A row gives way to its host, does not fight it, and is written again when it is advertised
// anew.
func TestMoves(t *testing.T) {
	l := newLeaf(t, control.Config{})
	events := l.sw.Events()
	defer events.Close()
	r := control.MAC{VNI: red, MAC: mac(1), VTEP: at(2)}
	l.add("bgp", r)
	l.want(1, fdb.OriginControl, "10.0.0.2")
	remote, _ := l.entry(red, mac(1))
	for turn := range 3 {
		if o := l.speak(1); o != fdb.Moved {
			t.Fatalf("a host that came here: %v", o)
		}
		var e frame.Event
		for e.Kind != frame.EventMACMoved {
			var err error
			e, err = events.Next(t.Context())
			l.must(err)
		}
		if !e.Pinned || e.MAC != mac(1) || e.Old != remote.Dest || e.Dest != l.local.Dest(0) {
			t.Errorf("event %+v", e)
		}
		before := l.writes()
		l.add("bgp", r) // what it has said already
		l.program("bgp", control.Update{Snapshot: true, Add: rows(r)})
		l.add("other", r)
		l.Reapply()
		l.want(1, fdb.OriginLearned, "pipe")
		if n := l.writes() - before; n != 0 {
			t.Errorf("%d writes against a host that is here", n)
		}
		l.Forget("other")
		switch turn { // the host has gone back
		case 0:
			l.program("bgp", control.Update{Del: rows(r), Add: rows(r)})
			l.want(1, fdb.OriginControl, "10.0.0.2")
		case 1:
			r.VTEP = at(3)
			l.add("bgp", r)
			l.want(1, fdb.OriginControl, "10.0.0.3")
			remote, _ = l.entry(red, mac(1))
		case 2:
			l.del("bgp", r) // it stays here
			l.want(1, fdb.OriginLearned, "pipe")
		}
	}
	l.check()
	if len(listed(l.vtep)) != 0 {
		t.Errorf("peers %v are left", listed(l.vtep))
	}
}

// A new row does not push out a host that is here, and gets its place when the host has gone.
func TestNewRowGivesWay(t *testing.T) {
	l := newLeaf(t, control.Config{})
	l.speak(1)
	l.speak(2)
	l.speak(3)
	l.add("bgp", control.MAC{VNI: red, MAC: mac(1), VTEP: at(2)},
		control.MAC{VNI: red, MAC: mac(2), VTEP: at(2), Sticky: true}, control.MAC{VNI: red, MAC: mac(3), Port: "pipe"})
	l.want(1, fdb.OriginLearned, "pipe")
	l.want(2, fdb.OriginControl, "10.0.0.2")
	l.want(3, fdb.OriginControl, "pipe") // where it is anyway
	if n := l.Stats().GivenWay; n != 1 {
		t.Errorf("gave way %d times, want 1", n)
	}
	if o := l.speak(2); o != fdb.Refused {
		t.Errorf("a sticky MAC: %v", o)
	}
	l.segment(red).FDB().Delete(mac(1)) // it has aged
	l.Reapply()
	l.want(1, fdb.OriginControl, "10.0.0.2")
	l.speak(4)
	r := control.MAC{VNI: red, MAC: mac(4), VTEP: at(2)}
	l.program("bgp", control.Update{Del: rows(r), Add: rows(r)}) // it is said to be newer
	l.want(4, fdb.OriginControl, "10.0.0.2")
}

// A tunnel teaches what no row says, and rows replace that.
func TestTunnelGivesWay(t *testing.T) {
	l := newLeaf(t, control.Config{})
	l.add("bgp", control.MAC{VNI: red, MAC: mac(1), VTEP: at(2)})
	e, _ := l.entry(red, mac(1))
	table := l.segment(red).FDB()
	table.Learn(mac(2), e.Dest, 0)
	l.want(2, fdb.OriginLearned, "10.0.0.2")
	l.add("bgp", control.MAC{VNI: red, MAC: mac(2), VTEP: at(3)})
	l.want(2, fdb.OriginControl, "10.0.0.3")
	if o := table.Learn(mac(2), e.Dest, 0); o != fdb.Kept {
		t.Errorf("a claim out of a tunnel: %v", o)
	}
}

// What was set by hand as static is nobody's; the entries of static owners are the Plane's, and
// give place to those of others.
func TestStatic(t *testing.T) {
	l := newLeaf(t, control.Config{Owners: []string{"admin", "bgp"}, Static: []string{"admin"}})
	table := l.segment(red).FDB()
	l.must(table.Set(mac(1), l.local.Dest(0), fdb.Static))
	l.must(l.arps[red].Set(ip(1), mac(9), arp.Static, 0))
	r := control.MAC{VNI: red, MAC: mac(1), IP: ip(1), VTEP: at(2)}
	l.program("bgp", control.Update{Del: rows(r), Add: rows(r)})
	l.Reapply()
	l.Forget("bgp")
	if e, ok := table.Get(mac(1)); !ok || e.Dest != l.local.Dest(0) || e.Origin != fdb.OriginStatic {
		t.Errorf("a MAC set by hand has become %+v", e)
	}
	if l.Neighbour(red, ip(1)) != mac(9) {
		t.Error("a neighbour set by hand has changed")
	}
	l.speak(2)
	r = control.MAC{VNI: red, MAC: mac(2), IP: ip(2), VTEP: at(2)}
	other := r
	other.VTEP = at(3)
	l.add("bgp", other)
	l.add("admin", r)
	l.want(2, fdb.OriginStatic, "10.0.0.2")
	if e, _ := l.arps[red].Lookup(ip(2)); e.Origin != arp.Static || e.MAC != mac(2) {
		t.Errorf("neighbour of a static owner: %+v", e)
	}
	l.del("admin", r)
	l.want(2, fdb.OriginControl, "10.0.0.3")
	if e, _ := l.arps[red].Lookup(ip(2)); e.Origin != arp.Control {
		t.Errorf("neighbour of the next owner: %+v", e)
	}
}

func TestNeighbours(t *testing.T) {
	l := newLeaf(t, control.Config{})
	table := l.arps[red]
	heard := func(n, m byte, from frame.Dest) arp.LearnOutcome {
		return table.Learn(&arp.Claim{IP: ip(n), MAC: mac(m), From: from}, 0)
	}
	want := func(n, m byte, o arp.Origin) {
		t.Helper()
		if e, ok := table.Lookup(ip(n)); !ok || e.MAC != mac(m) || e.Origin != o {
			t.Errorf("%v: %+v %v, want %v %v", ip(n), e, ok, mac(m), o)
		}
	}
	heard(1, 9, l.local.Dest(0))
	heard(2, 2, l.local.Dest(0))
	heard(3, 9, frame.NewDest(7, 7))
	row := func(n byte) control.MAC {
		return control.MAC{VNI: red, MAC: mac(n), IP: ip(n), VTEP: at(2), Router: n == 3}
	}
	l.add("bgp", row(1), row(2), row(3), row(4))
	want(1, 9, arp.Snooped) // a host that is here says otherwise
	want(2, 2, arp.Snooped) // or is here
	want(3, 3, arp.Control)
	want(4, 4, arp.Control)
	if e, _ := table.Lookup(ip(3)); e.Flags != arp.Router|arp.Taught {
		t.Errorf("flags %v", e.Flags)
	}
	if o := heard(4, 8, l.local.Dest(0)); o != arp.Moved {
		t.Fatalf("an address that came here: %v", o)
	}
	l.Reapply()
	want(4, 8, arp.Snooped)
	l.program("bgp", control.Update{Del: rows(row(4)), Add: rows(row(4))})
	want(4, 4, arp.Control)
	heard(4, 8, l.local.Dest(0))
	l.Forget("bgp")
	want(4, 8, arp.Snooped)
	want(1, 9, arp.Snooped)
	want(2, 2, arp.Snooped)
	if table.Len() != 3 {
		t.Errorf("%d neighbours are left, want 3", table.Len())
	}
}

// What was learned stays when a row for it is refused.
func TestRefusedLeavesLearned(t *testing.T) {
	l := newLeaf(t, control.Config{})
	table := l.segment(red).FDB()
	table.Learn(mac(0x77), l.local.Dest(0), 7)
	l.arps[red].Learn(&arp.Claim{IP: ip(1), MAC: mac(8), From: l.local.Dest(0)}, 7)
	err := l.Program("bgp", control.Update{Add: rows(
		control.MAC{VNI: red, MAC: mac(0x77), IP: ip(1), VTEP: six, Sticky: true}, bad["peer"])})
	if len(control.Refused(err)) != 2 {
		t.Fatal(err)
	}
	if e, _ := table.Get(mac(0x77)); e.Seen != 7 || e.Dest != l.local.Dest(0) {
		t.Errorf("entry %+v", e)
	}
	if e, _ := l.arps[red].Lookup(ip(1)); e.Origin != arp.Snooped || e.MAC != mac(8) || e.Seen != 7 {
		t.Errorf("neighbour %+v", e)
	}
	if got := listed(l.vtep); len(got) != 0 {
		t.Errorf("peers %v, want none", got)
	}
}

// Again has a Ledger pass rows as advertised again, new ones too, whether or not they change.
func TestLedgerAgain(t *testing.T) {
	l := newLeaf(t, control.Config{})
	var led control.Ledger[int]
	flush := func() {
		t.Helper()
		l.must(led.Flush("bgp", l))
	}
	l.speak(1)
	led.Set(1, control.MAC{VNI: red, MAC: mac(1), VTEP: at(2)})
	flush()
	l.want(1, fdb.OriginLearned, "pipe") // a new row gives way
	led.Again(1)
	led.Again(7) // nothing
	flush()
	l.want(1, fdb.OriginControl, "10.0.0.2")
	l.speak(1)
	flush()
	l.want(1, fdb.OriginLearned, "pipe") // once is once
	led.Again(1)
	led.Resync()
	flush()
	l.want(1, fdb.OriginControl, "10.0.0.2")
	l.speak(2)
	led.Set(2, control.MAC{VNI: red, MAC: mac(2), VTEP: at(2)})
	led.Again(2)
	flush()
	l.want(2, fdb.OriginControl, "10.0.0.2") // a new row, too
	led.Again(2)
	led.Set(2)
	flush()
	l.want(2, fdb.OriginControl, "")
}
