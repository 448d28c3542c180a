package main

import (
	"fmt"
	"io"
	"runtime"
	"slices"
	"strconv"
	"text/tabwriter"

	"github.com/vxswitch/vxswitch/bench/tool"
)

// A report is all results, as the JSON file has them.
type report struct {
	Go      string   `json:"go"`
	Arch    string   `json:"arch"`
	Kernel  string   `json:"kernel"`
	CPUs    int      `json:"cpus"`
	Rounds  int      `json:"rounds"`
	Seconds float64  `json:"seconds"` // of one measurement
	Groups  []result `json:"groups"`
}

// A result is that of one group.
type result struct {
	Letter string `json:"letter"`
	Title  string `json:"title"`
	Rows   []row  `json:"rows"`
	less   []bool // of each metric
}

// A row is that of one way.
type row struct {
	Way     string  `json:"way"`
	Refused string  `json:"refused,omitempty"`
	Note    string  `json:"note,omitempty"` // of the last round
	Gain    float64 `json:"gain,omitempty"` // above 1: better than the first way, by the first metric
	Cells   []cell  `json:"cells"`
}

// A cell is one metric of one way.
type cell struct {
	Metric  string    `json:"metric"`
	Median  float64   `json:"median"`
	Min     float64   `json:"min"`
	Max     float64   `json:"max"`
	Samples []float64 `json:"samples"`
}

func newReport(o options) *report {
	r := &report{Go: runtime.Version(), Arch: runtime.GOARCH, Kernel: kernel(), CPUs: runtime.NumCPU(),
		Rounds: o.rounds, Seconds: o.each.Seconds()}
	for _, g := range o.groups {
		res := result{Letter: g.letter, Title: g.title}
		for _, m := range g.metrics {
			res.less = append(res.less, m.less)
		}
		for _, w := range g.ways {
			line := row{Way: w.name}
			for _, m := range g.metrics {
				line.Cells = append(line.Cells, cell{Metric: m.name})
			}
			res.Rows = append(res.Rows, line)
		}
		r.Groups = append(r.Groups, res)
	}
	return r
}

func (r *report) refuse(group, way int, text string) { r.Groups[group].Rows[way].Refused = text }

func (r *report) add(group, way int, s sample) {
	w := &r.Groups[group].Rows[way]
	w.Note = s.note
	for i, v := range s.values {
		w.Cells[i].Samples = append(w.Cells[i].Samples, v)
	}
}

// finish computes medians, spreads and gains.
func (r *report) finish() {
	for _, g := range r.Groups {
		for i := range g.Rows {
			for k := range g.Rows[i].Cells {
				g.Rows[i].Cells[k].finish()
			}
			now, this := g.Rows[0].Cells[0].Median, g.Rows[i].Cells[0].Median
			switch {
			case now == 0 || this == 0:
			case g.less[0]:
				g.Rows[i].Gain = now / this
			default:
				g.Rows[i].Gain = this / now
			}
		}
	}
}

func (c *cell) finish() {
	if len(c.Samples) == 0 {
		return
	}
	s := slices.Sorted(slices.Values(c.Samples))
	n := len(s)
	c.Min, c.Max, c.Median = s[0], s[n-1], (s[(n-1)/2]+s[n/2])/2
}

// write prints the tables, and writes the JSON file unless its name is "".
func (r *report) write(out io.Writer, file string) error {
	fmt.Fprintf(out, "%s %s, Linux %s, %d CPUs; %d rounds of %v s\n", r.Go, r.Arch, r.Kernel, r.CPUs, r.Rounds, r.Seconds)
	for _, g := range r.Groups {
		fmt.Fprintf(out, "\n%s. %s\n", g.Letter, g.Title)
		t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
		fmt.Fprint(t, "way")
		for i, c := range g.Rows[0].Cells {
			better := "more is better"
			if g.less[i] {
				better = "less is better"
			}
			fmt.Fprintf(t, "\t%s (%s)", c.Metric, better)
		}
		fmt.Fprintln(t, "\tgain\t")
		for _, w := range g.Rows {
			w.print(t)
		}
		if err := t.Flush(); err != nil {
			return err
		}
	}
	return tool.SaveJSON(file, r)
}

func (w *row) print(t io.Writer) {
	fmt.Fprint(t, w.Way)
	switch {
	case len(w.Cells[0].Samples) > 0:
		for _, c := range w.Cells {
			fmt.Fprintf(t, "\t%s (%s-%s)", number(c.Median), number(c.Min), number(c.Max))
		}
		if w.Gain > 0 {
			fmt.Fprintf(t, "\t%.2f", w.Gain)
		} else {
			fmt.Fprint(t, "\t-")
		}
		fmt.Fprintf(t, "\t%s\n", w.Note)
	case w.Refused != "":
		fmt.Fprintln(t, "\trefused:", w.Refused)
	default:
		fmt.Fprintln(t, "\tfailed")
	}
}

// number prints three significant digits, without an exponent.
func number(v float64) string {
	switch {
	case v >= 100:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case v >= 10:
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return strconv.FormatFloat(v, 'f', 2, 64)
}
