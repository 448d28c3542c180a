package tool

import (
	"slices"
	"testing"
)

// Over as many rounds as there are contenders each is in each place once.
func TestRotate(t *testing.T) {
	all := []string{"a", "b", "c"}
	for round, want := range [][]string{{"a", "b", "c"}, {"b", "c", "a"}, {"c", "a", "b"}, {"a", "b", "c"}} {
		if got := Rotate(all, round); !slices.Equal(got, want) {
			t.Errorf("round %d: %v, want %v", round, got, want)
		}
	}
	if !slices.Equal(all, []string{"a", "b", "c"}) {
		t.Errorf("changed to %v", all)
	}
}
