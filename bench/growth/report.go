package main

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/vxswitch/vxswitch/bench/tool"
)

// A report is the results of a run.
type report struct {
	Time    time.Time     `json:"time"`
	Machine string        `json:"machine"`
	Passes  int           `json:"passes"`
	Each    time.Duration `json:"measurement_ns"`
	Sweeps  []table       `json:"sweeps"`
}

// A table is the results of a sweep: a series for each path.
type table struct {
	Name   string   `json:"sweep"`
	About  string   `json:"about"`
	Unit   string   `json:"unit"`
	Series []series `json:"series"`
}

type series struct {
	Name    string  `json:"path"`
	Kind    kind    `json:"kind"`
	Points  []point `json:"points"`
	Verdict string  `json:"verdict"`
	Failed  bool    `json:"failed"`

	why string
}

// A point is the cost of one frame at one size.
type point struct {
	Size    int       `json:"size"`
	Copies  int       `json:"copies"` // of a frame
	Samples []float64 `json:"samples"`
	Median  float64   `json:"median_ns"`
	Min     float64   `json:"min_ns"`
	Max     float64   `json:"max_ns"`
	Ratio   float64   `json:"ratio"` // of the median to that of the smallest size
	PerCopy float64   `json:"ns_per_copy"`
	Allocs  float64   `json:"allocs"`
}

func newReport(o options) *report {
	r := &report{Time: time.Now().UTC().Truncate(time.Second), Machine: tool.Machine(runtime.GOOS), Passes: o.passes, Each: o.time}
	for _, s := range o.sweeps {
		t := table{Name: s.name, About: s.about, Unit: s.unit}
		for _, p := range s.paths {
			x := series{Name: p.name, Kind: p.kind, why: p.why}
			for _, n := range s.sizes {
				x.Points = append(x.Points, point{Size: n})
			}
			t.Series = append(t.Series, x)
		}
		r.Sweeps = append(r.Sweeps, t)
	}
	return r
}

// add takes one measurement.
func (p *point) add(c cost) {
	p.Copies = c.copies
	if len(p.Samples) == 0 || c.allocs < p.Allocs {
		p.Allocs = c.allocs
	}
	p.Samples = append(p.Samples, c.ns)
}

// finish computes all but the samples.
func (r *report) finish() {
	for _, t := range r.Sweeps {
		for i := range t.Series {
			x := &t.Series[i]
			for k := range x.Points {
				p := &x.Points[k]
				p.Min, p.Median, p.Max = tool.Spread(p.Samples)
				p.Ratio = p.Median / x.Points[0].Median
				p.PerCopy = p.Median / float64(p.Copies)
			}
			x.judge(t.Unit)
		}
	}
}

// failure is an error that names what grows faster than it may.
func (r *report) failure() error {
	var bad []string
	for _, t := range r.Sweeps {
		for _, x := range t.Series {
			if x.Failed {
				bad = append(bad, fmt.Sprintf("%s, %s: %s", t.Name, x.Name, x.Verdict))
			}
		}
	}
	if bad == nil {
		return nil
	}
	return errors.New(strings.Join(bad, "; "))
}

// write prints the tables and writes the files that are asked for.
func (r *report) write(out io.Writer, o options) error {
	if err := r.print(out); err != nil {
		return err
	}
	return o.Save(r, r.plot)
}

func (r *report) print(out io.Writer) error {
	fmt.Fprintf(out, "%s\n%s; %d passes of %v; frames of %d bytes\n", r.Machine, r.Time.Format("2006-01-02 15:04 MST"), r.Passes, r.Each, frameSize)
	fmt.Fprintln(out, "ns/frame [smallest-largest]: median over the passes; ratio: to the smallest size")
	for _, t := range r.Sweeps {
		fmt.Fprintf(out, "\n%s: %s\n", t.Name, t.About)
		for _, x := range t.Series {
			fmt.Fprintf(out, "\n  %s\n", x.Name)
			w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
			fmt.Fprintf(w, "  %s\tns/frame\tratio\tallocs", t.Unit)
			if x.Kind == replication {
				fmt.Fprint(w, "\tcopies\tns/copy")
			}
			fmt.Fprintln(w)
			for _, p := range x.Points {
				fmt.Fprintf(w, "  %d\t%s [%s-%s]\t%s\t%.3g", p.Size, tool.Number(p.Median), tool.Number(p.Min), tool.Number(p.Max), tool.Number(p.Ratio), p.Allocs)
				if x.Kind == replication {
					fmt.Fprintf(w, "\t%d\t%s", p.Copies, tool.Number(p.PerCopy))
				}
				fmt.Fprintln(w)
			}
			if err := w.Flush(); err != nil {
				return err
			}
		}
		fmt.Fprintln(out)
		for _, x := range t.Series {
			if _, err := fmt.Fprintf(out, "  %s: %s\n", x.Name, x.Verdict); err != nil {
				return err
			}
		}
	}
	return nil
}
