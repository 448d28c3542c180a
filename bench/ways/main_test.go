package main

import (
	"flag"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// The test program is an end of a round trip too, when the lab starts it as one.
func TestMain(m *testing.M) {
	if inside(os.Args[1:]) {
		return
	}
	goleak.VerifyTestMain(m)
}

func TestParse(t *testing.T) {
	o, err := parse(strings.Fields("-rounds 3 -seconds 0.25 -json x"), nil)
	if err != nil || o.rounds != 3 || o.each != 250*time.Millisecond || o.json != "x" || len(o.groups) != len(groups()) {
		t.Errorf("%+v, %v", o, err)
	}
	for args, want := range map[string]string{
		"-rounds 0":     "flag -rounds: allowed are 1 to 1000",
		"-seconds 0":    "flag -seconds: allowed are 0.01 to 60",
		"-seconds NaN":  "flag -seconds: allowed are 0.01 to 60",
		"-group AZ":     `invalid value "AZ" for flag -group: "AZ" is not a set of groups`,
		"-rounds 1 off": `argument "off": allowed are flags only`,
	} {
		if _, err := parse(strings.Fields(args), nil); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", args, err, want)
		}
	}
	var usage strings.Builder
	if _, err := parse([]string{"-h"}, &usage); err != flag.ErrHelp || !strings.Contains(usage.String(), "-seconds S") {
		t.Errorf("%v\n%s", err, &usage)
	}
}
