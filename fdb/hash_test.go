package fdb

import "testing"

// Nobody can send MACs that pile up: each array hashes with a secret of its own.
func TestSeeds(t *testing.T) {
	a, b := newArray(16, false), newArray(16, false)
	if a.seed == b.seed || a.home(1) != a.seed.Hash64(1) {
		t.Error("two arrays have one seed, or do not hash with it")
	}
}
