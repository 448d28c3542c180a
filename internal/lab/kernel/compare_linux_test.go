package kernel

import (
	"slices"
	"testing"

	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// A difference is one that is meant to be.
type difference struct {
	only         string   // the underlay it is met on, "" = both
	setting      string   // "" = all
	packets      []string // by name, nil = all
	field        string   // what differs
	kernel, ours string   // what each does
	rule         string   // the row of the documentation: see rules
}

func (d *difference) covers(fam family, setting, packet, field string) bool {
	return d.field == field && (d.only == "" || d.only == fam.name) && (d.setting == "" || d.setting == setting) &&
		(d.packets == nil || slices.Contains(d.packets, packet))
}

// ledger compares, and knows which differences there should be.
type ledger struct {
	known []difference
	used  map[int]map[string]bool // entry, packet
	equal int
}

// newLedger returns a ledger for one test. At the test's end every known difference
// must have been met.
func newLedger(t *testing.T, known []difference) *ledger {
	netns.RequireRoot(t)
	l := &ledger{known: known, used: map[int]map[string]bool{}}
	for i := range known {
		l.used[i] = map[string]bool{}
	}
	t.Cleanup(func() {
		for i, d := range known {
			for _, p := range d.packets {
				check.True(t, l.used[i][p], "no packet %q has this difference: %+v", p, d)
			}
			check.True(t, len(l.used[i]) != 0, "nothing has this difference: %+v", d)
		}
		t.Logf("%d comparisons were equal", l.equal)
	})
	return l
}

// compare fails on a difference that is not in the list, and on one that is in the
// list and is none.
func (l *ledger) compare(t *testing.T, fam family, setting, packet, field, kernel, ours string) {
	t.Helper()
	for i, d := range l.known {
		if !d.covers(fam, setting, packet, field) {
			continue
		}
		l.used[i][packet] = true
		check.True(t, d.kernel == kernel && d.ours == ours,
			"%s, %s: %s: the kernel: %s; ours: %s; documented as %s and %s", setting, packet, field, kernel, ours, d.kernel, d.ours)
		return
	}
	if kernel != ours {
		t.Errorf("%s, %s: %s: the kernel: %s; ours: %s; not documented", setting, packet, field, kernel, ours)
		return
	}
	l.equal++
}
