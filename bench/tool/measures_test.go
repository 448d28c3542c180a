package tool

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestQuantile(t *testing.T) {
	for _, c := range []struct {
		share   float64
		samples []float64
		want    float64
	}{
		{Median, []float64{3, 1, 2}, 2},
		{Median, []float64{4, 1, 2, 3}, 2.5},
		{0.9, []float64{10, 9, 8, 7, 6, 5, 4, 3, 2, 1}, 9},
		{0.9, []float64{2, 1}, 2},
		{0.9, []float64{7}, 7},
	} {
		if got := Quantile(c.samples, c.share); got != c.want {
			t.Errorf("%v of %v: %v, want %v", c.share, c.samples, got, c.want)
		}
	}
}

func TestReport(t *testing.T) {
	r := &Report{Time: time.Date(2026, 1, 2, 3, 4, 0, 0, time.UTC), Machine: "a machine", Contenders: []string{"theirs", "ours", "more"}}
	for _, x := range [][]float64{{4, 6}, {8, 10}} { // medians 5 and 9, of all 7
		r.Add("first", "ms", "at most 0.50", Median, "theirs", x...)
		r.Add("first", "ms", "", Median, "ours", x[0]/2, x[1]/2)
	}
	r.Add("second", "MB", "", 0.9, "more", 120)
	r.Finish()
	want := `a machine
2026-01-02 03:04 UTC
value [smallest-largest of the rounds] ratio to theirs

             theirs             ours                    more   wanted
first, ms    7.00 [5.00-9.00]   3.50 [2.50-4.50] 0.50   -      at most 0.50
second, MB   -                  -                       120    
`
	if got := r.Print(); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	count, text, err := Elements(r.Plot())
	if err != nil || count["rect"] != 1+3 {
		t.Errorf("%v, %d rectangles", err, count["rect"])
	}
	for _, s := range []string{"first, ms", "3.50 [2.50-4.50] 0.50", "120", "a machine"} {
		if !strings.Contains(text, s) {
			t.Errorf("no %q in the picture", s)
		}
	}
}

// A measure that a contender has no figure of is an error, but those that may have none.
func TestEnd(t *testing.T) {
	r := NewReport([]string{"theirs", "ours"}, "a program")
	r.Add("all", "s", "", Median, "theirs", 1)
	r.Add("all", "s", "", Median, "ours", 2)
	r.Add("CPU of one", "s", "", Median, "ours", 0)
	folder := t.TempDir()
	table, err := r.End(folder, "x", "CPU")
	if err != nil || !strings.Contains(table, "2.00 2.00") || !strings.Contains(r.Machine, "a program") {
		t.Errorf("%s, %v", table, err)
	}
	for _, kind := range []string{"txt", "json", "svg"} {
		if _, err := os.Stat(filepath.Join(folder, "x."+kind)); err != nil {
			t.Error(err)
		}
	}
	_, err = r.End("", "")
	for _, who := range []string{"theirs", "ours"} {
		if err == nil || !strings.Contains(err.Error(), "CPU of one: "+who) {
			t.Errorf("%v", err)
		}
	}
}
