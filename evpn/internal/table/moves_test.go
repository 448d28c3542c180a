package table

import (
	"slices"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/control"
	"github.com/vxswitch/vxswitch/evpn/internal/route"
	"github.com/vxswitch/vxswitch/frame"
)

// A host that moves: from a peer to here, to the peer, and away.
func TestMoves(t *testing.T) {
	l := newLab(t, nil)
	here := func() { l.Here(l.now, 100, mac(1), frame.NewDest(3, 0), false) }
	theirs := func(seq uint32) { l.Learned(l.now, peer, moving("192.0.2.2", seq, false)) }
	told := func(seq int) {
		t.Helper()
		if got, _ := l.claim(); got != seq {
			t.Errorf("told %d, want %d", got, seq)
		}
	}
	is := row(1, 100, "").String()
	theirs(0)
	l.want(is)
	here()
	told(1)
	l.want()
	theirs(1) // equal: ours is the lower address
	told(1)
	theirs(2)
	told(-1)
	l.want(is)
	l.Gone(l.now, 100, mac(1)) // what the switch says when the row has replaced its entry
	l.want(is)
	here()
	told(3)
	l.Withdrawn(l.now, peer, &macIP(mac(1), "").Key)
	told(3)
	l.Gone(l.now, 100, mac(1))
	told(-1)
	l.now += 200 * time.Second
	here()
	told(3) // remembered
	l.Gone(l.now, 100, mac(1))
	l.flush()
	l.now += 301 * time.Second
	l.flush()
	if len(l.resting) != 0 || len(l.segments[100].hosts) != 0 {
		t.Errorf("%d MACs rest", len(l.resting))
	}
	here()
	told(-1 + 1)
	// A peer has it and loses it before the row is written: nobody knows where it is, so that the switch forgets it.
	theirs(5)
	l.Withdrawn(l.now, peer, &macIP(mac(1), "").Key)
	l.want()
	if !slices.Equal(l.lost, []frame.MAC{mac(1)}) {
		t.Errorf("to be forgotten: %v", l.lost)
	}
	// A sticky host does not come here, and a sequence at the end is sticky.
	for _, c := range []route.Community{route.Mobility(0, true), route.Mobility(1<<32-1, false)} {
		l.Gone(l.now, 100, mac(1))
		l.Learned(l.now, peer, with(macIP(mac(1), ""), func(r *route.Route) { communities2(r, target(65000, 100), c) }))
		l.flush()
		here()
		told(-1)
		l.want(with(row(1, 100, ""), func(r *control.MAC) { r.Sticky = true }).String())
	}
}

// A duplicate ends after Release, which may change at any time.
func TestRelease(t *testing.T) {
	l := newLab(t, nil)
	l.now = time.Hour
	for i := range 5 {
		l.Learned(l.now, peer, moving("192.0.2.2", uint32(2*i), false))
		l.Here(l.now, 100, mac(1), frame.NewDest(3, 0), false)
		l.flush()
	}
	if l.duplicates() != 1 || len(l.frozen) != 1 {
		t.Fatalf("%d duplicates after five moves", l.duplicates())
	}
	l.now += 24 * time.Hour
	if l.duplicates() != 1 {
		t.Error("a duplicate has ended by itself")
	}
	c := l.cfg
	c.Release = 25 * time.Hour
	l.Configure(c)
	if l.duplicates() != 1 {
		t.Error("a duplicate has ended too early")
	}
	l.now += time.Hour
	if l.duplicates() != 0 || len(l.frozen) != 0 {
		t.Error("a duplicate has not ended")
	}
}
