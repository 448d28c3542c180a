package table

import (
	"net/netip"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/evpn/internal/route"
	"github.com/vxswitch/vxswitch/frame"
)

// mapped returns an IPv4 address as a peer can say it in 16 bytes.
func mapped(s string) route.Addr {
	b := netip.MustParseAddr("::ffff:" + s).As16()
	return route.AddrOf(b[:])
}

// moving is macIP of mac(1) with a sequence, behind a VTEP.
func moving(vtep string, seq uint32, sticky bool) *route.Route {
	return with(macIP(mac(1), ""), func(r *route.Route) {
		r.NextHop = at(vtep)
		communities2(r, target(65000, 100), route.Mobility(seq, sticky))
	})
}

// claimed reports whether peers are told that mac(1) is here, and whether it never moves.
func (l *lab) claimed() (is, sticky bool) {
	seq, _ := l.claim()
	for k, r := range l.told {
		if k.MAC == mac(1) {
			_, sticky = r.Communities.Mobility()
		}
	}
	return seq >= 0, sticky
}

// A host that was learned and is then configured: that the switch has no longer learned it may be heard of later.
func TestConfiguredStays(t *testing.T) {
	l := newLab(t, nil)
	l.Here(0, 100, mac(1), frame.NewDest(3, 0), false)
	l.flush()
	l.Configured(0, 100, mac(1), netip.Addr{}, "p3", false, 1)
	l.Gone(0, 100, mac(1))
	if is, sticky := l.claimed(); !is || !sticky {
		t.Errorf("claimed %v, sticky %v", is, sticky)
	}
	l.Configured(0, 100, mac(1), netip.Addr{}, "p3", false, -1)
	if is, _ := l.claimed(); is {
		t.Error("it stays behind")
	}
}

// A configured host that a sticky one has beaten is ours again when that goes, whoever else claims it.
func TestConfiguredReturns(t *testing.T) {
	l := newLab(t, nil)
	l.Configured(0, 100, mac(1), netip.Addr{}, "p3", false, 1)
	l.Learned(0, reflector, moving("192.0.2.3", 0, false))
	if is, _ := l.claimed(); !is {
		t.Error("a host that is not sticky takes it")
	}
	l.Learned(0, peer, moving("192.0.2.2", 1, true))
	if is, _ := l.claimed(); is {
		t.Error("a later sticky one does not take it")
	}
	l.Withdrawn(0, peer, &moving("192.0.2.2", 1, true).Key)
	if is, _ := l.claimed(); !is {
		t.Error("it does not return")
	}
}

// The last move of a duplicate may be found out when the switch has forgotten it: it is told, and ends after Release, as any.
func TestDuplicateGone(t *testing.T) {
	told := 0
	l := newLab(t, func(c *Config) {
		c.Mobility.Moves, c.Release = 2, time.Minute
		c.Duplicated = func(frame.VNI, frame.MAC) { told++ }
	})
	l.Here(l.now, 100, mac(1), frame.NewDest(3, 0), false)
	l.Learned(l.now, peer, moving("192.0.2.2", 1, false))
	l.Learned(l.now, reflector, moving("192.0.2.3", 2, false))
	l.Gone(l.now, 100, mac(1))
	if l.duplicates() != 1 || told != 1 {
		t.Errorf("%d duplicates, %d told", l.duplicates(), told)
	}
	l.now += time.Minute
	if l.duplicates() != 0 {
		t.Error("it has not ended")
	}
}

// A duplicate that no peer has any more is here, as the list of them says: the switch need not learn it again with each of its frames. When a
// peer says it again, it is there.
func TestDuplicateAlone(t *testing.T) {
	l := newLab(t, func(c *Config) { c.Mobility.Moves = 2 })
	theirs := moving("192.0.2.2", 1, false)
	here := func() { l.Here(l.now, 100, mac(1), frame.NewDest(3, 0), false); l.flush() }
	here()
	l.Learned(l.now, peer, theirs)
	l.flush()
	l.Gone(l.now, 100, mac(1)) // the row took its place
	here()
	l.Gone(l.now, 100, mac(1))
	l.Withdrawn(l.now, peer, &theirs.Key)
	l.flush()
	l.lost = nil
	for range 3 {
		here()
	}
	if is, _ := l.claimed(); is || len(l.lost) != 0 {
		t.Errorf("claimed %v, forgotten %v", is, l.lost)
	}
	l.Learned(l.now, peer, theirs)
	anew := l.segments[100].hosts[mac(1)].override
	if l.flush(); !anew || len(l.list()) != 1 {
		t.Errorf("anew %v, rows %q", anew, l.list())
	}
}
