package main

import (
	"math"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/bench/tool"
)

// drawing returns how many elements of each kind a plot has, and its text.
func drawing(t *testing.T, plot string) (count map[string]int, said string) {
	t.Helper()
	count, said, err := tool.Elements(plot)
	if err != nil {
		t.Fatalf("%v\n%s", err, plot)
	}
	return count, said
}

// The plot is XML; a metric that the kernel has too has a chart, with a label, a bar and
// a whisker for each contender, on a grid from a quarter to the double.
func TestPlot(t *testing.T) {
	text := sample().plot()
	count, said := drawing(t, text)
	if count["rect"] != 1+2 || count["path"] != 2+4 {
		t.Errorf("%v\n%s", count, text)
	}
	for want, n := range map[string]int{"tcp1: Gbit/s": 1, "tunnel CPU": 0, "4.50 (0.38)": 1, "12.0 (1.00)": 1, "vxswitch\n": 1, "\n1/4\n": 1, "\n2\n": 1} {
		if strings.Count(said, want) != n {
			t.Errorf("%q is not %d times in\n%s", want, n, said)
		}
	}
	// Three octaves are 120 wide, the kernel is at the second: a ratio of 0.375 is 1.415
	// octaves from it, the smallest of 0.25 is two.
	for _, want := range []string{
		`<rect x="127.4" y="130" width="56.6"`,
		`<rect x="184.0" y="114" width="0.0"`,
		`<path d="M104.0 136H144.0"`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
}

// Where the kernel has nothing the values are drawn, from 0 on.
func TestPlotValues(t *testing.T) {
	k := []testCase{{name: "idle", about: "memory & rest", metrics: []string{"MiB <resident>"}}}
	r := newReport(options{cases: k}, []contender{{name: "kernel"}, {name: "vxswitch"}, {name: "ovs"}})
	r.add("idle", "kernel", []float64{math.NaN()})
	r.add("idle", "vxswitch", []float64{10})
	r.add("idle", "ovs", []float64{40})
	r.finish(0)
	text := r.plot()
	count, said := drawing(t, text)
	if count["rect"] != 1+2 || count["path"] != 2 || strings.Count(said, "\n-\n") != 1 || !strings.Contains(said, "idle: MiB <resident>") {
		t.Errorf("%v\n%s", count, text)
	}
	for _, want := range []string{`width="30.0"`, `width="120.0"`} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
}

// A value of 0, or nothing at all, is drawn inside the chart.
func TestPlotNothing(t *testing.T) {
	k := []testCase{{name: "a", metrics: []string{"x"}}, {name: "b", metrics: []string{"x"}}}
	r := newReport(options{cases: k}, []contender{{name: "kernel"}, {name: "vxswitch"}})
	r.add("a", "kernel", []float64{1e9})
	r.add("a", "kernel", []float64{0})
	r.add("a", "kernel", []float64{1e9})
	r.add("a", "vxswitch", []float64{1})
	r.finish(0)
	text := r.plot()
	drawing(t, text)
	if !strings.Contains(text, `<rect x="104.0" y="130" width="90.0"`) { // three octaves of four
		t.Errorf("a ratio of 1e-9 is not at the edge:\n%s", text)
	}
	for _, bad := range []string{"NaN", "Inf", `"-`, "M-"} {
		if strings.Contains(text, bad) {
			t.Errorf("%s in\n%s", bad, text)
		}
	}
}

func TestPower(t *testing.T) {
	for n, want := range map[int]string{-5: "1/32", -1: "1/2", 0: "1", 3: "8"} {
		if got := power(n); got != want {
			t.Errorf("%d: %s", n, got)
		}
	}
}
