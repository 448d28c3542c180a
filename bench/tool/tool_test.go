package tool

import (
	"errors"
	"flag"
	"math"
	"os"
	"path/filepath"
	"slices"
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

func TestSave(t *testing.T) {
	f := Files{filepath.Join(t.TempDir(), "x.json"), filepath.Join(t.TempDir(), "x.svg")}
	plot := func() string { return "<svg/>" }
	if err := errors.Join(Files{}.Save(1, nil), f.Save(map[string]int{"a": 1}, plot)); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{f.JSON: "{\n\t\"a\": 1\n}\n", f.SVG: "<svg/>"} {
		if b, err := os.ReadFile(file); err != nil || string(b) != want {
			t.Errorf("%q, %v", b, err)
		}
	}
	if f.Save(math.NaN(), plot) == nil || (Files{JSON: filepath.Join(f.JSON, "x")}).Save(1, plot) == nil || (Files{SVG: filepath.Join(f.JSON, "x")}).Save(1, plot) == nil {
		t.Error("no error")
	}
	if m := Machine("here"); !strings.Contains(m, " x ") || !strings.Contains(m, ", here, go") {
		t.Error(m)
	}
}

func TestSpread(t *testing.T) {
	for _, c := range []struct{ samples, want []float64 }{
		{nil, []float64{0, 0, 0}},
		{[]float64{7}, []float64{7, 7, 7}},
		{[]float64{3, 1}, []float64{1, 2, 3}},
		{[]float64{9, 1, 2}, []float64{1, 2, 9}},
		{[]float64{4, 3, 2, 10}, []float64{2, 3.5, 10}},
	} {
		before := slices.Clone(c.samples)
		low, mid, high := Spread(c.samples)
		if got := []float64{low, mid, high}; !slices.Equal(got, c.want) || !slices.Equal(c.samples, before) {
			t.Errorf("%v: %v, want %v", before, got, c.want)
		}
	}
}

func TestNumber(t *testing.T) {
	for v, want := range map[float64]string{0: "0.00", 0.125: "0.12", 9.99: "9.99", 10.04: "10.0", 99.96: "100.0", 123.4: "123", 20235.2: "20235"} {
		if got := Number(v); got != want {
			t.Errorf("%v: %s, want %s", v, got, want)
		}
	}
	if got := Number(math.NaN()); got != "-" {
		t.Error(got)
	}
}

func TestDrawing(t *testing.T) {
	log, lin := Axis{Low: 1, High: 100, From: 10, To: 30}, Axis{Low: 0, High: 100, From: 30, To: 10, Linear: true}
	if a, b := log.At(10), lin.At(50); math.Abs(a-20) > 1e-9 || b != 20 {
		t.Errorf("%v, %v", a, b)
	}
	count, said, err := Elements(SVG(100, 50, 11, []string{"a & b", "c"}, Line([][2]float64{{1, 2}, {3, 4}}, "#000", "")))
	if err != nil || count["text"] != 2 || count["polyline"] != 1 || !strings.Contains(said, "a & b") {
		t.Errorf("%v %q %v", count, said, err)
	}
	for _, bad := range []string{"<svg>NaN</svg>", "<svg>"} {
		if _, _, err := Elements(bad); err == nil {
			t.Errorf("%s: no error", bad)
		}
	}
}
