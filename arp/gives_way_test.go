package arp

import (
	"net/netip"
	"testing"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// A control entry gives way to its host on a local port, told once; from a tunnel it stays, and a static one always.
func TestGivesWayWithItsMAC(t *testing.T) {
	ip, mac := netip.MustParseAddr("192.0.2.1"), frame.MAC{2, 0, 0, 0, 0, 1}
	here, tunnel := frame.NewDest(1, 0), frame.NewDest(2, 7)
	for _, c := range []struct {
		origin Origin
		from   frame.Dest
		told   int
		stays  bool
	}{
		{Control, here, 1, false},
		{Control, tunnel, 0, true},
		{Static, here, 0, true},
	} {
		var events []frame.Event
		var table *Table
		table = check.Must(NewTable(&TableConfig{VNI: 5, Notify: func(e frame.Event) {
			check.True(t, !table.mu.TryLock(), "told without the lock")
			events = append(events, e)
		}}))(t)
		check.OK(t, table.Set(ip, mac, c.origin, Router))
		for range 2 {
			table.Learn(&Claim{IP: ip, MAC: mac, From: c.from}, 3)
		}
		e, _ := table.Lookup(ip)
		check.True(t, (e.Origin == c.origin) == c.stays && e.Flags&Router != 0, "%v at %v: %+v", c.origin, c.from, e)
		check.True(t, len(events) == c.told, "%v at %v: told %+v", c.origin, c.from, events)
		for _, ev := range events {
			check.True(t, ev == frame.Event{Kind: frame.EventNeighbourMoved, VNI: 5, IP: ip, MAC: mac, OldMAC: mac, Dest: here, Pinned: true}, "told %+v", ev)
		}
	}
}
