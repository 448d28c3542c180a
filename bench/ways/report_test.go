package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Medians, spreads, gains in either direction, refusals and failures, printed and as JSON.
func TestReport(t *testing.T) {
	ways := []way{{name: "now"}, {name: "better"}, {name: "not here"}, {name: "broken"}}
	o := options{rounds: 4, each: time.Second, groups: []group{
		{letter: "X", title: "cost", metrics: []metric{{name: "ns", less: true}, {name: "n/s"}}, ways: ways},
		{letter: "Y", title: "speed", metrics: []metric{{name: "n/s"}}, ways: ways[:2]},
	}}
	r := newReport(o)
	for i, v := range []float64{400, 100, 300, 200} {
		r.add(0, 0, sample{values: []float64{v, 7}})
		r.add(0, 1, sample{values: []float64{v / 2, 7}, note: "seen"})
		r.add(1, 0, sample{values: []float64{v}})
		if i < 3 {
			r.add(1, 1, sample{values: []float64{3 * v}})
		}
	}
	r.refuse(0, 2, "EPERM (bpf)")
	r.finish()
	if c := r.Groups[0].Rows[0].Cells[0]; c.Median != 250 || c.Min != 100 || c.Max != 400 {
		t.Errorf("%+v", c)
	}
	if c := r.Groups[1].Rows[1].Cells[0]; c.Median != 900 {
		t.Errorf("%+v", c)
	}
	for i, want := range [][]float64{{1, 2, 0, 0}, {1, 3.6}} {
		for k, gain := range want {
			if got := r.Groups[i].Rows[k].Gain; got != gain {
				t.Errorf("gain of %s, %s: %v, want %v", o.groups[i].letter, ways[k].name, got, gain)
			}
		}
	}
	var out strings.Builder
	file := filepath.Join(t.TempDir(), "r.json")
	if err := r.write(&out, file); err != nil {
		t.Fatal(err)
	}
	text := strings.Join(strings.Fields(out.String()), " ")
	for _, want := range []string{
		"X. cost way ns (less is better) n/s (more is better) gain",
		"now 250 (100-400) 7.00 (7.00-7.00) 1.00",
		"better 125 (50.0-200) 7.00 (7.00-7.00) 2.00 seen",
		"not here refused: EPERM (bpf)",
		"broken failed",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, &out)
		}
	}
	var back report
	if b, err := os.ReadFile(file); err != nil || json.Unmarshal(b, &back) != nil || back.Groups[0].Rows[2].Refused != "EPERM (bpf)" {
		t.Errorf("%v, %+v", err, back)
	}
}
