package controltest

import (
	"github.com/vxswitch/vxswitch/control"
	"github.com/vxswitch/vxswitch/frame"
)

// A filter is in the place of a host, and gives way to no other kind of row.
func filters(t tester) {
	row := control.MAC{VNI: t.VNIs[0], MAC: host(1), Filter: true}
	group := control.MAC{VNI: t.VNIs[0], MAC: frame.MAC{1, 0, 0x5e, 0, 0, 9}, Filter: true}
	t.add(t.Owners[1], t.at(1, 0))
	t.add(t.Owners[0], row, group)
	t.wantPlace(host(1), "filter")
	t.wantPlace(group.MAC, "filter")
	t.unwritten("the same again", func() { t.snapshot(t.Owners[0], row, group) })
	t.add(t.Owners[0], t.at(1, 1))
	t.wantMAC(1, 1)
	t.add(t.Owners[0], row)
	t.wantPlace(host(1), "filter")
	t.snapshot(t.Owners[0])
	t.wantMAC(1, 0)
	t.wantPlace(group.MAC, "")
}

// A group MAC has one place.
func groupMACs(t tester) {
	row := control.MAC{VNI: t.VNIs[0], MAC: frame.MAC{1, 0, 0x5e, 0, 0, 9}, VTEP: t.VTEPs[0]}
	t.add(t.Owners[0], row)
	t.wantPlace(row.MAC, t.VTEPs[0].Addr().String())
	if t.Port != "" {
		t.add(t.Owners[0], control.MAC{VNI: row.VNI, MAC: row.MAC, Port: t.Port})
		t.wantPlace(row.MAC, t.Port)
	}
	t.del(t.Owners[0], row)
	t.wantPlace(row.MAC, "")
}

// What the far end calls a network is part of where a host is.
func farVNIs(t tester) {
	row := t.with(2, 0)
	row.FarVNI = 7001
	want := func(far frame.VNI) {
		t.Helper()
		t.wantPlace(host(2), Behind(t.VNIs[0], t.VTEPs[0].Addr(), far))
		t.wantNeighbour(2, host(2))
	}
	t.add(t.Owners[0], row, t.at(1, 0))
	want(7001)
	t.wantMAC(1, 0)
	t.unwritten("the same again", func() { t.add(t.Owners[0], row) })
	row.FarVNI = 7002
	t.add(t.Owners[0], row)
	want(7002)
	row.FarVNI = t.VNIs[0] // as we do
	t.add(t.Owners[0], row)
	want(0)
	t.del(t.Owners[0], row)
	t.wantMAC(2, -1)
	t.wantMAC(1, 0)
}

// A group is all its rows, and hosts behind it follow.
func groups(t tester) {
	owner, name := t.Owners[0], "pair"
	with := t.behind(2, name)
	with.IP = addr(2)
	t.add(owner, t.behind(1, name), with, t.group(name, 0), t.group(name, 1)) // in any order
	t.wantBehind(1, 0, 1)
	t.wantBehind(2, 0, 1)
	t.wantNeighbour(2, host(2))
	t.unwritten("the same again", func() { t.add(owner, t.group(name, 1), t.behind(1, name)) })
	t.add(owner, t.group(name, 2))
	t.wantBehind(1, 0, 1, 2)
	t.wantBehind(2, 0, 1, 2)
	t.del(owner, t.group(name, 0))
	t.wantBehind(1, 1, 2)
	far := t.group(name, 0)
	far.FarVNI = 7001
	t.program(owner, control.Update{Add: []control.Row{far}, Del: []control.Row{t.group(name, 1)}})
	want := []string{Behind(t.VNIs[0], t.VTEPs[0].Addr(), 7001), t.VTEPs[2].Addr().String()}
	t.wantPlace(host(1), min(want[0], want[1])+", "+max(want[0], want[1]))
	t.del(owner, far)
	t.wantBehind(1, 2)
	t.add(owner, t.group("other", 1))
	t.unwritten("a group without hosts", func() { t.add(owner, t.group("other", 0)) })
	t.add(owner, t.behind(1, "other"))
	t.wantBehind(1, 0, 1)
	t.wantBehind(2, 2)

	// Without its group a row waits.
	t.del(owner, t.group(name, 2))
	t.wantMAC(2, -1)
	t.wantNeighbour(2, frame.MAC{})
	t.add(t.Owners[1], t.at(2, 0))
	t.wantMAC(2, 0)
	t.add(owner, t.group(name, 1))
	t.wantBehind(2, 1)
	t.wantNeighbour(2, host(2))
	t.snapshot(owner, t.group(name, 1))
	t.wantMAC(2, 0)
	t.snapshot(owner)
}

// Owners may have groups of one name, each its own.
func groupsOfOwners(t tester) {
	t.add(t.Owners[1], t.group("pair", 0), t.group("pair", 1), t.behind(1, "pair"))
	t.add(t.Owners[0], t.group("pair", 2))
	t.wantBehind(1, 0, 1)
	t.add(t.Owners[0], t.behind(1, "pair"))
	t.wantBehind(1, 2)
	t.add(t.Owners[0], t.group("pair", 1))
	t.wantBehind(1, 1, 2)
	t.del(t.Owners[0], t.group("pair", 1), t.group("pair", 2))
	t.wantBehind(1, 0, 1)
	t.refuse(t.Owners[0], control.Update{Add: []control.Row{t.behind(3, "pair")}}, t.behind(3, "pair"), control.ErrNoGroup)
	t.snapshot(t.Owners[1])
	t.wantMAC(1, -1)
}
