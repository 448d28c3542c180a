package main

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/bench/tool"
)

// sample is a report over two contenders, one of which has no value for one metric and
// has missed a round.
func sample() *report {
	k := []testCase{{name: "tcp1", about: "one flow", metrics: []string{"Gbit/s", "tunnel CPU s/GB, <1%"}}}
	r := newReport(options{rounds: 3, seconds: 1, cases: k}, []contender{{name: "kernel", note: "in the kernel"}, {name: "vxswitch", note: "p2p & TAP"}})
	for _, v := range []float64{10, 20, 12} {
		r.add("tcp1", "kernel", []float64{v, math.NaN()})
	}
	r.add("tcp1", "vxswitch", []float64{6, 0.5})
	r.add("tcp1", "vxswitch", []float64{3, 1.5})
	r.finish(1)
	r.Machine, r.Time, r.Notes = "a machine", time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC), r.Notes[3:]
	return r
}

const wantTable = `a machine
2026-05-04 03:02 UTC; 3 rounds of 1 s; 1 measurements failed and are left out

tcp1: one flow
            Gbit/s                 tunnel CPU s/GB, <1%
  kernel    12.0 [10.0-20.0] 1.00  -
  vxswitch  4.50 [3.00-6.00] 0.38  1.00 [0.50-1.50]

limits of vxswitch, ratios of medians of this run
  tcp1: 0.375 of kernel in Gbit/s, at least 0.6: missed

kernel: in the kernel
vxswitch: p2p & TAP
`

func TestTable(t *testing.T) {
	var b bytes.Buffer
	if err := sample().table(&b); err != nil || b.String() != wantTable {
		t.Errorf("%v\n%s\nwant\n%s", err, &b, wantTable)
	}
}

// The ratios of a case are to the first of its contenders, and others have no row in it.
func TestBase(t *testing.T) {
	k, err := tool.Pick(cases(), "ipip-tcp1")
	must(t, err)
	r := newReport(options{cases: k}, contenders())
	for who, v := range map[string]float64{"ipip-lone": 2, "ipip": 3, "kernel": 5} {
		r.add("ipip-tcp1", who, []float64{v, v, v})
	}
	r.finish(0)
	got := map[string]float64{}
	for _, w := range r.Cases[0].Rows {
		got[w.Name] = w.Cells[1].Ratio
	}
	if want := map[string]float64{"ipip-lone": 1, "ipip-plain": 0, "ipip": 1.5}; !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestFiles(t *testing.T) {
	dir := t.TempDir()
	o := options{Files: tool.Files{JSON: filepath.Join(dir, "a.json"), SVG: filepath.Join(dir, "a.svg")}}
	r := sample()
	must(t, r.write(io.Discard, o))
	text, err := os.ReadFile(o.JSON)
	must(t, err)
	var back report
	if err := json.Unmarshal(text, &back); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	cell := back.Cases[0].Rows[1].Cells[0]
	if back.Failed != 1 || len(back.Limits) != 1 || back.Limits[0] != r.Limits[0] || back.Cases[0].Rows[1].Name != "vxswitch" || !slices.Equal(cell.Samples, []float64{6, 3}) ||
		cell.Median != 4.5 || cell.Min != 3 || cell.Max != 6 || cell.Ratio != 0.375 || len(back.Cases[0].Rows[0].Cells[1].Samples) != 0 {
		t.Errorf("%s", text)
	}
	if err := r.write(io.Discard, options{Files: tool.Files{SVG: dir}}); err == nil {
		t.Error("wrote a plot over a folder")
	}
}
