package main

import "testing"

func TestProcs(t *testing.T) {
	for _, x := range []struct {
		name            string
		asked           string
		now, processors int
		want            int
	}{
		{"one processor", "", 1, 1, 4},
		{"two processors", "", 2, 2, 4},
		{"as many as it takes", "", 4, 4, 0},
		{"more", "", 64, 64, 0},
		{"the user's", "2", 2, 2, 0},
		{"a control group's", "", 2, 8, 0},
	} {
		if got := procs(x.asked, x.now, x.processors); got != x.want {
			t.Errorf("%s: %d, want %d", x.name, got, x.want)
		}
	}
}
