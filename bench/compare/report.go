package main

import (
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/vxswitch/vxswitch/bench/tool"
)

// A report is the results of a run: a block for each case, with a row for each
// contender and a cell for each metric.
type report struct {
	Time    time.Time `json:"time"`
	Machine string    `json:"machine"`
	Rounds  int       `json:"rounds"`
	Seconds int       `json:"seconds"` // a measurement
	Failed  int       `json:"failed"`  // measurements
	Notes   []string  `json:"notes"`
	Cases   []block   `json:"cases"`
	Limits  []limit   `json:"limits"` // those whose cases ran
}

type block struct {
	Name    string   `json:"case"`
	About   string   `json:"about"`
	Base    string   `json:"base"` // the contender of the ratios
	Metrics []string `json:"metrics"`
	Rows    []row    `json:"contenders"`
}

type row struct {
	Name  string `json:"contender"`
	Cells []cell `json:"cells"` // as Metrics
}

// A cell without samples has nothing else either.
type cell struct {
	Samples []float64 `json:"samples"` // in the order of the rounds
	Median  float64   `json:"median"`
	Min     float64   `json:"min"`
	Max     float64   `json:"max"`
	Ratio   float64   `json:"ratio,omitzero"` // of the median to that of the base; 0 without one
}

func newReport(o options, cs []contender) *report {
	r := &report{Time: time.Now().UTC().Truncate(time.Second), Machine: machine(), Rounds: o.rounds, Seconds: o.seconds}
	r.Notes = []string{
		"value [smallest-largest] ratio: median over the rounds, and its ratio to that of the first line's contender, mostly the kernel",
		"CPU s/GB, s/Mpkt: processor time of the whole machine for 10^9 bytes of payload, or 10^6 packets received, the guests' included; tunnel CPU: of the tunnel's processes alone",
		"udp: packets received a second at full speed, then at the highest rate found with less than 1% loss (to 6%)",
	}
	for _, c := range cs {
		r.Notes = append(r.Notes, c.name+": "+c.note)
	}
	for _, k := range o.cases {
		b := block{Name: k.name, About: k.about, Base: k.base(), Metrics: k.metrics}
		for _, c := range k.of(cs) {
			b.Rows = append(b.Rows, row{c.name, make([]cell, len(k.metrics))})
		}
		r.Cases = append(r.Cases, b)
	}
	return r
}

// add takes the values of one measurement.
func (r *report) add(name, contender string, values []float64) {
	for _, b := range r.Cases {
		for _, w := range b.Rows {
			if b.Name != name || w.Name != contender {
				continue
			}
			for i, v := range values {
				if !math.IsNaN(v) && !math.IsInf(v, 0) {
					w.Cells[i].Samples = append(w.Cells[i].Samples, v)
				}
			}
		}
	}
}

// finish computes all but the samples.
func (r *report) finish(failed int) {
	r.Failed = failed
	for _, b := range r.Cases {
		for _, w := range b.Rows {
			for i := range w.Cells {
				c := &w.Cells[i]
				c.Min, c.Median, c.Max = tool.Spread(c.Samples)
			}
		}
		base := slices.IndexFunc(b.Rows, func(w row) bool { return w.Name == b.Base })
		for _, w := range b.Rows {
			for i := range w.Cells {
				if base >= 0 && b.Rows[base].Cells[i].Median > 0 {
					w.Cells[i].Ratio = w.Cells[i].Median / b.Rows[base].Cells[i].Median
				}
			}
		}
	}
	r.Limits = r.judge()
}

// write prints the table and writes the files that are asked for.
func (r *report) write(out io.Writer, o options) error {
	if err := r.table(out); err != nil {
		return err
	}
	if err := o.Save(r, r.plot); err != nil || o.bars == "" {
		return err
	}
	picture, err := r.bars()
	if err != nil {
		return err
	}
	return os.WriteFile(o.bars, []byte(picture), 0o644)
}

func (r *report) table(out io.Writer) error {
	fmt.Fprintf(out, "%s\n%s; %d rounds of %d s", r.Machine, r.Time.Format("2006-01-02 15:04 MST"), r.Rounds, r.Seconds)
	if r.Failed > 0 {
		fmt.Fprintf(out, "; %d measurements failed and are left out", r.Failed)
	}
	fmt.Fprintln(out)
	for _, b := range r.Cases {
		fmt.Fprintf(out, "\n%s: %s\n", b.Name, b.About)
		w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
		fmt.Fprintf(w, "\t%s\n", strings.Join(b.Metrics, "\t"))
		for _, row := range b.Rows {
			fmt.Fprint(w, "  ", row.Name)
			for _, c := range row.Cells {
				fmt.Fprint(w, "\t", c)
			}
			fmt.Fprintln(w)
		}
		if err := w.Flush(); err != nil {
			return err
		}
	}
	r.verdicts(out)
	_, err := fmt.Fprintf(out, "\n%s\n", strings.Join(r.Notes, "\n"))
	return err
}

func (c cell) String() string {
	if len(c.Samples) == 0 {
		return "-"
	}
	s := fmt.Sprintf("%s [%s-%s]", tool.Number(c.Median), tool.Number(c.Min), tool.Number(c.Max))
	if c.Ratio > 0 {
		s += fmt.Sprintf(" %.2f", c.Ratio)
	}
	return s
}

// machine says what was measured on.
func machine() string {
	read := func(name string) string {
		b, _ := os.ReadFile("/proc/sys/" + name)
		return strings.TrimSpace(string(b))
	}
	return tool.Machine("Linux "+read("kernel/osrelease"), "TCP congestion control "+read("net/ipv4/tcp_congestion_control"))
}
