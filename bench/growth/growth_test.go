package main

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/vxswitch/vxswitch/bench/tool"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Small fabrics show already what would be quadratic, and that no frame costs an
// allocation.
func TestGrowth(t *testing.T) {
	dir := t.TempDir()
	o, err := parse([]string{"-passes", "5", "-time", "2ms", "-json", filepath.Join(dir, "g.json"), "-svg", filepath.Join(dir, "g.svg")}, nil)
	if err != nil {
		t.Fatal(err)
	}
	small := map[string][]int{"macs": {64, 512, 4096}, "vnis": {1, 10, 100}, "peers": {1, 10, 100}, "ports": {2, 8, 32}}
	for i := range o.sweeps {
		if o.sweeps[i].sizes = small[o.sweeps[i].name]; o.sweeps[i].sizes == nil {
			t.Fatalf("no sizes for %s", o.sweeps[i].name)
		}
	}
	var out bytes.Buffer
	if err := growth(t.Context(), o, &out, io.Discard); err != nil {
		t.Errorf("%v\n%s", err, &out)
	}
	text, err := os.ReadFile(o.JSON)
	if err != nil {
		t.Fatal(err)
	}
	var r report
	if err := json.Unmarshal(text, &r); err != nil {
		t.Fatal(err)
	}
	series := 0
	for _, s := range r.Sweeps {
		for _, x := range s.Series {
			series++
			check(t, s.Name+", "+x.Name, x, len(small[s.Name]))
			if !strings.Contains(out.String(), "  "+x.Name+": "+x.Verdict+"\n") {
				t.Errorf("%s, %s: no verdict %q in\n%s", s.Name, x.Name, x.Verdict, &out)
			}
		}
	}
	if series != 7 {
		t.Errorf("%d series, want 7", series)
	}
	wellFormed(t, o.SVG)
}

// check holds a series to the bounds, from its figures alone.
func check(t *testing.T, name string, x series, sizes int) {
	t.Helper()
	if len(x.Points) != sizes {
		t.Errorf("%s: %d points, want %d", name, len(x.Points), sizes)
	}
	for i, b := range x.Points {
		if b.Allocs != 0 {
			t.Errorf("%s: %g allocations a frame at %d", name, b.Allocs, b.Size)
		}
		if len(b.Samples) != 5 || b.Min <= 0 || b.Min > b.Median || b.Median > b.Max {
			t.Errorf("%s: %+v", name, b)
		}
		for _, a := range x.Points[:i] {
			limit := 30.0
			if x.Kind == replication {
				limit = 8 * float64(b.Copies) / float64(a.Copies)
			}
			if r := b.Min / a.Min; r >= limit {
				t.Errorf("%s: %d cost %.1f times as much as %d", name, b.Size, r, a.Size)
			}
		}
	}
}

func wellFormed(t *testing.T, file string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	count, _, err := tool.Elements(string(text))
	if err != nil || count["polyline"] != 7+3 {
		t.Errorf("%v, %v, want one line for each path and one for the copies of each replication\n%s", count, err, text)
	}
}

func TestJudge(t *testing.T) {
	for _, c := range []struct {
		kind   kind
		ns     func(n float64) float64
		word   string
		failed bool
	}{
		{lookup, func(n float64) float64 { return 100 }, "flat", false},
		{lookup, func(n float64) float64 { return 100 + n/10 }, "nearly flat", false},
		{lookup, func(n float64) float64 { return 100 + n }, "not flat, far less than linear", false},
		{lookup, func(n float64) float64 { return 10 + n }, "NOT FLAT", true},
		{replication, func(n float64) float64 { return 100 + n/100 }, "nearly free", false},
		{replication, func(n float64) float64 { return 100 + n }, "less than linear", false},
		{replication, func(n float64) float64 { return 1 + 10*n }, "linear", false},
		{replication, func(n float64) float64 { return n * n }, "NOT LINEAR", true},
		{replication, func(n float64) float64 { return 1000 + n*n }, "NOT LINEAR", true},
	} {
		o := options{passes: 1, time: time.Second, sweeps: []sweep{{unit: "things", sizes: []int{1, 10, 100, 1000}, paths: []path{{"a path", c.kind, "because"}}}}}
		r := newReport(o)
		x := &r.Sweeps[0].Series[0]
		for i := range x.Points {
			n := x.Points[i].Size
			x.Points[i].add(cost{ns: c.ns(float64(n)), copies: n})
		}
		r.finish()
		if !strings.HasPrefix(x.Verdict, c.word+": 1000 things cost ") || x.Failed != c.failed || (r.failure() != nil) != c.failed {
			t.Errorf("%s, failed %t; want %s", x.Verdict, x.Failed, c.word)
		}
		x.Points[1].Allocs = 0.5
		if x.judge("things"); !x.Failed || !strings.Contains(x.Verdict, "ALLOCATES 0.5 times a frame at 10 things") {
			t.Errorf("with allocations: %s, failed %t", x.Verdict, x.Failed)
		}
	}
}

// Most measurements of one size met a busy machine.
func TestJudgeBusy(t *testing.T) {
	for _, k := range []kind{lookup, replication} {
		x := &series{Kind: k}
		for _, n := range []int{1, 10, 100} {
			p := point{Size: n}
			for i := range 5 {
				c := cost{ns: 100 + float64(n), copies: n}
				if n == 100 && i > 0 {
					c.ns *= 40
				}
				p.add(c)
			}
			x.Points = append(x.Points, p)
		}
		r := &report{Sweeps: []table{{Unit: "things", Series: []series{*x}}}}
		r.finish()
		if err := r.failure(); err != nil {
			t.Error(err)
		}
	}
}

func TestExitStatus(t *testing.T) {
	for args, want := range map[string]string{
		"-sweep x":  `growth: invalid value "x" for flag -sweep: "x" is none of macs, vnis, peers, ports`,
		"-passes 0": "growth: flag -passes: allowed are 1 to 1000",
		"-time 1s1": `growth: invalid value "1s1" for flag -time: parse error`,
		"-time 1us": "growth: flag -time: allowed are 1ms to 1m",
		"macs":      `growth: argument "macs": allowed are flags only`,
	} {
		var said bytes.Buffer
		if code := run(t.Context(), strings.Fields(args), io.Discard, &said); code != 2 || said.String() != want+"\n" {
			t.Errorf("%s: status %d, %q", args, code, &said)
		}
	}
	var said bytes.Buffer
	if code := run(t.Context(), []string{"-h"}, io.Discard, &said); code != 0 || !strings.HasPrefix(said.String(), "usage: growth") {
		t.Errorf("status %d, %q", code, &said)
	}
	o, err := parse([]string{"-sweep", "ports,macs"}, nil)
	if err != nil || strings.Join(tool.Names(o.sweeps), ",") != "macs,ports" {
		t.Errorf("%s, %v", tool.Names(o.sweeps), err)
	}
}
