package control_test

import (
	"slices"
	"testing"

	"github.com/vxswitch/vxswitch/control"
	"github.com/vxswitch/vxswitch/fdb"
	"github.com/vxswitch/vxswitch/frame"
	vswitch "github.com/vxswitch/vxswitch/switch"
)

// numbers returns how many hops of each kind a VTEP has.
func numbers(v *counted) (peers, hops, groups int) {
	v.Control().Free(v.Control().Retire(func(uint16) bool { return true })) // what is deleted
	for n := range uint16(200) {
		switch s := v.PeerName(n + 1); {
		case s == "":
		case len(s) > 5 && s[:5] == "group":
			groups++
		case slices.Contains([]byte(s), ' '):
			hops++
		default:
			peers++
		}
	}
	return peers, hops, groups
}

// A group has a number from its first MAC to its last row; it and the numbers of next hops go with them.
func TestNumbers(t *testing.T) {
	l := newLeaf(t, control.Config{Static: []string{"file"}})
	want := func(what string, peers, hops, groups int) {
		t.Helper()
		if p, h, g := numbers(l.vtep); p != peers || h != hops || g != groups {
			t.Errorf("%s: %d peers, %d next hops and %d groups, want %d, %d and %d", what, p, h, g, peers, hops, groups)
		}
	}
	group := func(vni frame.VNI, name string, n byte, far frame.VNI) control.Group {
		return control.Group{VNI: vni, Name: name, VTEP: at(n), FarVNI: far}
	}
	l.add("bgp", group(red, "a", 2, 0), group(red, "a", 3, 0), group(blue, "b", 3, 0), group(blue, "b", 2, 0))
	want("two groups of the same VTEPs", 2, 0, 0)
	l.add("file", group(red, "a", 2, 0), group(red, "a", 3, 7), control.MAC{VNI: red, MAC: mac(1), Group: "a"})
	want("one with a next hop", 2, 1, 1)
	l.add("bgp", control.MAC{VNI: red, MAC: mac(2), Group: "a"}, control.MAC{VNI: blue, MAC: mac(2), Group: "b"},
		control.MAC{VNI: red, MAC: mac(3), VTEP: at(3), FarVNI: 7})
	want("MACs", 2, 1, 3)
	a, _ := l.entry(red, mac(2))
	if a.Origin != fdb.OriginControl {
		t.Errorf("at %v", a)
	}
	if e, _ := l.entry(red, mac(1)); e.Dest == a.Dest || e.Origin != fdb.OriginStatic {
		t.Errorf("the file's is at %+v", e)
	}
	l.Forget("file")
	want("the next hop that a MAC names", 2, 1, 2)
	l.del("bgp", control.MAC{VNI: red, MAC: mac(3)})
	want("and nobody names", 2, 0, 2)
	l.del("bgp", group(red, "a", 2, 0))
	want("a group of one", 2, 0, 2)
	if e, _ := l.entry(red, mac(2)); e.Dest != a.Dest || l.MAC(red, mac(2)) != "10.0.0.3" {
		t.Errorf("at %v, %s", e.Dest, l.MAC(red, mac(2)))
	}
	l.del("bgp", group(blue, "b", 2, 0))
	want("a peer less", 1, 0, 2)
	l.Forget("bgp")
	want("all gone", 0, 0, 0)
	l.check()
}

// A VTEP that leaves a group, or joins it, is one write to the group, whatever the number of MACs behind it, and two of its own number.
func TestGroupOfManyMACs(t *testing.T) {
	const hosts = 10_000
	l := newLeaf(t, control.Config{})
	l.must(l.segment(blue).Configure(vswitch.VSIConfig{MaxMACs: hosts}))
	two := control.Group{VNI: blue, Name: "es", VTEP: at(2)}
	all := []control.Row{two, control.Group{VNI: blue, Name: "es", VTEP: at(3)}}
	for i := range hosts {
		all = append(all, control.MAC{VNI: blue, MAC: hostMAC(i), Group: "es"})
	}
	l.add("bgp", all...)
	was, _ := l.entry(blue, hostMAC(0))
	writes := func(what string, peers, macs uint64, do func()) {
		t.Helper()
		before, done := l.Stats(), l.vtep.peers.Load()
		do()
		now := l.Stats()
		if n, m := now.Peers-before.Peers, now.MACs-before.MACs; n != peers || m != macs || l.vtep.peers.Load()-done != peers {
			t.Errorf("%s: %d writes to the VTEP and %d MACs, want %d and %d", what, n, m, peers, macs)
		}
	}
	where := func(want string) {
		t.Helper()
		for i := range hosts {
			if e, _ := l.entry(blue, hostMAC(i)); want == "" && e.Dest != 0 || want != "" && (e.Dest != was.Dest || l.MAC(blue, hostMAC(i)) != want) {
				t.Fatalf("%v is at %v, %s, want %s", hostMAC(i), e.Dest, l.MAC(blue, hostMAC(i)), want)
			}
		}
	}
	where("10.0.0.2, 10.0.0.3")
	writes("a VTEP leaves", 2, 0, func() { l.del("bgp", two) })
	where("10.0.0.3")
	writes("and is back", 2, 0, func() { l.add("bgp", two) })
	where("10.0.0.2, 10.0.0.3")
	writes("both leave", 3, hosts, func() { l.program("bgp", control.Update{Loose: true, Del: all[:2]}) })
	where("")
	l.Forget("bgp")
	l.check()
}

// A refused row leaves groups as they were, with the numbers that they had.
func TestGroupStays(t *testing.T) {
	l := newLeaf(t, control.Config{})
	all := rows(control.Group{VNI: red, Name: "a", VTEP: at(2)}, control.Group{VNI: red, Name: "a", VTEP: at(3), FarVNI: 7},
		control.MAC{VNI: red, MAC: mac(1), IP: ip(1), Group: "a"})
	l.add("bgp", all...)
	was, _ := l.entry(red, mac(1))
	for name, row := range bad {
		for _, u := range []control.Update{
			{Add: rows(row)},
			{Snapshot: true, Add: rows(row, all[0], all[1], all[2])},
			{Add: rows(control.Group{VNI: red, Name: "a", VTEP: at(1)})}, // an address of its own
			{Add: rows(control.Group{VNI: red, Name: "a", VTEP: six})},
		} {
			if l.Program("bgp", u) == nil {
				t.Fatalf("%s: %v was taken", name, u)
			}
			if e, _ := l.entry(red, mac(1)); e != was || l.MAC(red, mac(1)) != "10.0.0.2, 10.0.0.3 vni 7" || l.Neighbour(red, ip(1)) != mac(1) {
				t.Fatalf("%s: %v: at %v, %s, was %v", name, u, e.Dest, l.MAC(red, mac(1)), was.Dest)
			}
			if p, h, g := numbers(l.vtep); p != 2 || h != 1 || g != 1 {
				t.Fatalf("%s: %v: %d peers, %d next hops and %d groups", name, u, p, h, g)
			}
		}
	}
	l.check()
}

// A group whose VTEP has gone waits with its MACs, and comes back with it.
func TestGroupWaits(t *testing.T) {
	l := newLeaf(t, control.Config{})
	l.add("bgp", control.Group{VNI: blue, Name: "a", VTEP: at(2)}, control.Group{VNI: blue, Name: "a", VTEP: at(3)},
		control.MAC{VNI: blue, MAC: mac(1), IP: ip(1), Group: "a"})
	l.must(l.segment(blue).Delete())
	l.Reapply()
	l.wantWaiting("bgp", 3, control.ErrNoSegment)
	if p, h, g := numbers(l.vtep); p+h+g != 0 {
		t.Errorf("%d peers, %d next hops and %d groups are left", p, h, g)
	}
	l.segment(blue)
	l.Reapply()
	if got := l.MAC(blue, mac(1)); got != "10.0.0.2, 10.0.0.3" {
		t.Errorf("at %q", got)
	}
	l.Forget("bgp")
	if !l.Empty() {
		t.Error("something is left")
	}
	l.check()
}

// A filter is there for a host that was learned here, too, and stays.
func TestFilterStays(t *testing.T) {
	l := newLeaf(t, control.Config{})
	table := l.segment(red).FDB()
	if o := table.Learn(mac(1), l.local.Dest(0), 5); o != fdb.New {
		t.Fatal(o)
	}
	l.add("bgp", control.MAC{VNI: red, MAC: mac(1), Filter: true})
	if o := table.Learn(mac(1), l.local.Dest(0), 6); o != fdb.Filtered || l.MAC(red, mac(1)) != "filter" {
		t.Errorf("%v, at %s", o, l.MAC(red, mac(1)))
	}
	l.Reapply()
	l.del("bgp", control.MAC{VNI: red, MAC: mac(1)})
	if got := l.MAC(red, mac(1)); got != "" {
		t.Errorf("at %s", got)
	}
	l.check()
}

// A router may be in a network that its end calls otherwise.
func TestRouterFarVNI(t *testing.T) {
	l := newLeaf(t, control.Config{})
	via := control.Via{VNI: l3vni, MAC: mac(0x50), VTEP: at(5), FarVNI: 7}
	l.add("bgp", control.Prefix{VRF: "red", Prefix: pfx("10.9.0.0/16"), Via: via})
	if got := l.MAC(l3vni, mac(0x50)); got != "10.0.0.5 vni 7" {
		t.Errorf("at %q", got)
	}
	l.Forget("bgp")
	l.check()
}
