package main

import (
	"strings"
	"testing"
)

func TestReadCarried(t *testing.T) {
	c, err := readCarried(`stats {"rx":{"frames":7,"bytes":700},"tx":{"frames":5},"offload":{"flows":4,"carried":{"frames":11,"bytes":9}}}` + "\n")
	if err != nil || c.Rx.Frames != 7 || c.Tx.Frames != 5 || c.Offload.Flows != 4 || c.Offload.Carried.Frames != 11 {
		t.Errorf("%+v, %v", c, err)
	}
	for _, line := range []string{"", "stats ", `stats {"rx":{"frames":7}}`, `{"offload":{"flows":4}}`} {
		if _, err := readCarried(line); err == nil || !strings.Contains(err.Error(), "no flows in the kernel") {
			t.Errorf("%q: %v", line, err)
		}
	}
}

// What user space has carried is no figure, and neither is what nobody has.
func TestSince(t *testing.T) {
	at := func(rx, tx, kernel string) carried {
		c, err := readCarried(`stats {"rx":{"frames":` + rx + `},"tx":{"frames":` + tx + `},"offload":{"carried":{"frames":` + kernel + `}}}`)
		must(t, err)
		return c
	}
	before := at("100", "1000", "900")
	for _, x := range []struct {
		after carried
		ok    bool
	}{
		{at("150", "11000", "10950"), true},
		{at("150", "11000", "10860"), true},  // 90 by user space
		{at("150", "11000", "10840"), false}, // 110
		{at("150", "11000", "900"), false},
		{at("150", "10800", "10750"), false}, // less than has arrived
		{before, false},
	} {
		if err := x.after.since(before, 10000); (err == nil) != x.ok {
			t.Errorf("%+v: %v", x.after, err)
		}
	}
}
