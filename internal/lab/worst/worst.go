// Package worst is the list of tables that strangers fill. Whoever can send frames or
// packets makes entries in them, so each has a limit, a share for each port or peer that others cannot take,
// and a rule for who gives way when it is full; each has a test in which one port or peer does its worst
// for ten simulated minutes beside another.
//
// SECURITY.md has the list as a table. A map, slice, channel or ring in a struct of the
// library that no list here names fails a test of this package: see list_test.go.
package worst

import (
	"slices"
	"testing"
)

// Least is what a port or peer must keep of what it has alone, in percent, whatever the others do.
const Least = 95

// A Row is one table.
type Row struct {
	Name  string // as in SECURITY.md
	Holds string // the fields that hold it, and what goes with it: package.Type.field
	Limit string // how much it takes, and the setting
	Share string // whose share is whose
	Full  string // who gives way when it, or a share, is full
	Test  string // package.Test, which calls Kept with the name
	Kept  int    // what that test measures, in percent
}

// Kept reports what somebody had of a table alone, and what beside the worst neighbour. It
// fails the test if that is less than [Least] percent, or another figure than the list has.
func Kept(t testing.TB, name string, alone, beside int) {
	t.Helper()
	i := slices.IndexFunc(Rows, func(r Row) bool { return r.Name == name })
	if i < 0 {
		t.Fatalf("worst: no row %q in the list", name)
	}
	if alone <= 0 {
		t.Fatalf("worst: %s: alone it had %d: the test measures nothing", name, alone)
	}
	percent := beside * 100 / alone
	t.Logf("worst: %s: %d of %d, %d%%", name, beside, alone, percent)
	if percent < Least {
		t.Errorf("worst: %s: kept %d%% of what it had alone, must be at least %d%%", name, percent, Least)
	}
	if d := percent - Rows[i].Kept; d < -2 || d > 2 {
		t.Errorf("worst: %s: kept %d%%, the list says %d%%", name, percent, Rows[i].Kept)
	}
}
