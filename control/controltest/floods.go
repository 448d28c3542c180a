package controltest

import (
	"github.com/vxswitch/vxswitch/control"
	"github.com/vxswitch/vxswitch/frame"
)

func floodUnion(t tester) {
	t.add(t.Owners[1], t.flood(2), t.flood(0))
	t.wantFlood(0, 2)
	t.add(t.Owners[0], t.flood(1))
	t.wantFlood(0, 1, 2)
	t.unwritten("one that is in it", func() { t.add(t.Owners[0], t.flood(2)) })
	t.unwritten("one that another owner has", func() { t.del(t.Owners[1], t.flood(2)) })
	t.wantFlood(0, 1, 2)
	t.snapshot(t.Owners[0], t.flood(1))
	t.wantFlood(0, 1)
	t.snapshot(t.Owners[0])
	t.snapshot(t.Owners[1])
	t.wantFlood()
}

// Rows for the MACs of groups are beside those for all frames, and of several owners.
func ofGroups(t tester) {
	to := func(vtep int, mac frame.MAC) control.Flood {
		r := t.flood(vtep)
		r.MAC = mac
		return r
	}
	one, two := frame.MAC{1, 0, 0x5e, 1, 1, 1}, frame.MAC{1, 0, 0x5e, 1, 1, 2}
	quiet := to(0, two)
	quiet.NoBroadcast = true
	t.add(t.Owners[0], t.flood(0), to(0, one), quiet)
	t.wantFloods(t.bare(t.flood(0)), t.bare(to(0, one)), t.bare(quiet))
	t.add(t.Owners[1], to(1, one), to(0, two))
	t.wantFloods(t.bare(t.flood(0)), t.bare(to(0, one)), t.bare(to(0, two)), t.bare(to(1, one)))
	t.del(t.Owners[0], t.flood(0), to(0, one))
	t.del(t.Owners[1], to(0, two))
	t.wantFloods(t.bare(quiet), t.bare(to(1, one)))
	t.refuse(t.Owners[0], control.Update{Add: []control.Row{to(0, host(1))}}, to(0, host(1)), nil)
	t.snapshot(t.Owners[0])
	t.snapshot(t.Owners[1])
	t.wantFlood()
}

// A VTEP gets the frames that a row of any owner sends it, and a row with other flags replaces that of its owner.
func pruned(t tester) {
	a, b := t.flood(0), t.flood(1)
	b.NoBroadcast = true
	t.add(t.Owners[0], a, b)
	t.wantFloods(t.bare(a), t.bare(b))
	t.unwritten("the same again", func() { t.add(t.Owners[0], b) })
	b.NoUnknown = true
	t.add(t.Owners[0], b) // may only send
	t.wantFloods(t.bare(a), t.bare(b))
	other := t.flood(1)
	other.NoUnknown = true
	t.add(t.Owners[1], other)
	t.wantFloods(t.bare(a), t.bare(other))
	t.snapshot(t.Owners[1])
	t.wantFloods(t.bare(a), t.bare(b))
	t.add(t.Owners[0], t.flood(1))
	t.wantFlood(0, 1)
	t.del(t.Owners[0], b) // the key says which
	t.wantFlood(0)
	t.snapshot(t.Owners[0])
	t.wantFlood()
}
