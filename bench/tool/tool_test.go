package tool

import (
	"errors"
	"flag"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

type thing string

func (t thing) String() string { return string(t) }

func TestPick(t *testing.T) {
	all := []thing{"a", "b", "c"}
	got, err := Pick(all, "c,a")
	if err != nil || strings.Join(Names(got), "") != "ac" {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := Pick(all, "a,x"); err == nil || err.Error() != `"x" is none of a, b, c` {
		t.Error(err)
	}
}

func TestStatus(t *testing.T) {
	for _, c := range []struct {
		flags, measured error
		status          int
		text            string
	}{
		{nil, nil, 0, ""}, {flag.ErrHelp, nil, 0, ""}, {errors.New("wrong"), nil, 2, "prog: wrong\n"}, {nil, errors.New("slow"), 1, "prog: slow\n"},
	} {
		var b strings.Builder
		if got := Status(&b, "prog", c.flags, c.measured); got != c.status || b.String() != c.text {
			t.Errorf("%v: %d, %q", c, got, b.String())
		}
	}
}

func TestParse(t *testing.T) {
	for args, want := range map[string]string{
		"-n 3": "", "-n x": `invalid value "x" for flag -n: parse error`, "-n 3 more": `argument "more": allowed are flags only`, "-h": "flag: help requested",
	} {
		fs := flag.NewFlagSet("prog", flag.ContinueOnError)
		n := fs.Int("n", 0, "`N` times")
		var usage strings.Builder
		err := Parse(fs, strings.Fields(args), &usage)
		if (err == nil) != (want == "") || err != nil && err.Error() != want || err == nil && *n != 3 {
			t.Errorf("%s: %v", args, err)
		}
		if (args == "-h") != strings.HasPrefix(usage.String(), "usage: prog [flags]\n") {
			t.Errorf("%s: %q", args, usage.String())
		}
	}
}

func TestSaveJSON(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x.json")
	if err := errors.Join(SaveJSON("", 1), SaveJSON(file, map[string]int{"a": 1})); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(file); err != nil || string(b) != "{\n\t\"a\": 1\n}\n" {
		t.Errorf("%q, %v", b, err)
	}
	if SaveJSON(file, math.NaN()) == nil || SaveJSON(filepath.Join(file, "x"), 1) == nil {
		t.Error("no error")
	}
	if p := Processors(); !strings.Contains(p, " x ") {
		t.Error(p)
	}
}
