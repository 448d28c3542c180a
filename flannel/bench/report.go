package bench

import (
	"fmt"
	"html"
	"math"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/vxswitch/vxswitch/bench/tool"
)

// A report is the results of a run.
type report struct {
	Time       time.Time  `json:"time"`
	Machine    string     `json:"machine"`
	Contenders []string   `json:"contenders"` // ratios are to the first
	Measures   []*measure `json:"measures"`
}

// A measure is one thing that was measured for some of the contenders.
type measure struct {
	Name  string           `json:"measure"`
	Unit  string           `json:"unit"`
	Want  string           `json:"wanted"` // in words
	At    float64          `json:"quantile"`
	Cells map[string]*cell `json:"contenders"`
}

// A cell is the samples of a contender, those of a round together. Value is the quantile of all samples, and Low and High are
// the least and the greatest of the rounds.
type cell struct {
	Rounds [][]float64 `json:"rounds"`
	Value  float64     `json:"value"`
	Low    float64     `json:"low"`
	High   float64     `json:"high"`
	Ratio  float64     `json:"ratio"` // to the first contender; 0 = none
}

const median = 0.5

// add takes the samples of a round.
func (r *report) add(name, unit, want string, at float64, who string, samples ...float64) {
	i := slices.IndexFunc(r.Measures, func(m *measure) bool { return m.Name == name })
	if i < 0 {
		i = len(r.Measures)
		r.Measures = append(r.Measures, &measure{Name: name, Unit: unit, Want: want, At: at, Cells: map[string]*cell{}})
	}
	m := r.Measures[i]
	if m.Cells[who] == nil {
		m.Cells[who] = &cell{}
	}
	m.Cells[who].Rounds = append(m.Cells[who].Rounds, samples)
}

// finish computes all but the samples.
func (r *report) finish() {
	for _, m := range r.Measures {
		for _, c := range m.Cells {
			c.Value = quantile(slices.Concat(c.Rounds...), m.At)
			c.Low, c.High = math.Inf(1), math.Inf(-1)
			for _, round := range c.Rounds {
				v := quantile(round, m.At)
				c.Low, c.High = min(c.Low, v), max(c.High, v)
			}
		}
		base := m.Cells[r.Contenders[0]]
		for who, c := range m.Cells {
			if base != nil && who != r.Contenders[0] && base.Value != 0 {
				c.Ratio = c.Value / base.Value
			}
		}
	}
}

// quantile returns the sample that a share of them does not exceed; the median of an even number is between two.
func quantile(samples []float64, share float64) float64 {
	if share == median {
		_, m, _ := tool.Spread(samples)
		return m
	}
	s := slices.Sorted(slices.Values(samples))
	return s[max(0, int(math.Ceil(share*float64(len(s))))-1)]
}

// print returns the table.
func (r *report) print() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n%s\nvalue [smallest-largest of the rounds] ratio to %s\n\n", r.Machine, r.Time.Format("2006-01-02 15:04 MST"), r.Contenders[0])
	w := tabwriter.NewWriter(&b, 0, 0, 3, ' ', 0)
	fmt.Fprintf(w, "\t%s\twanted\n", strings.Join(r.Contenders, "\t"))
	for _, m := range r.Measures {
		fmt.Fprintf(w, "%s, %s", m.Name, m.Unit)
		for _, who := range r.Contenders {
			fmt.Fprintf(w, "\t%s", m.Cells[who])
		}
		fmt.Fprintf(w, "\t%s\n", m.Want)
	}
	w.Flush()
	return b.String()
}

// String is a cell of the table.
func (c *cell) String() string {
	if c == nil {
		return "-"
	}
	s := tool.Number(c.Value)
	if len(c.Rounds) > 1 {
		s += fmt.Sprintf(" [%s-%s]", tool.Number(c.Low), tool.Number(c.High))
	}
	if c.Ratio > 0 {
		s += " " + tool.Number(c.Ratio)
	}
	return s
}

// plot draws the values as SVG: bars from zero, the longest of each measure equally long.
func (r *report) plot() string {
	const label, width, height, gap, top = 90, 380, 20, 14, 34
	var b strings.Builder
	y := top
	for _, m := range r.Measures {
		longest := 0.0
		for _, c := range m.Cells {
			longest = max(longest, c.Value)
		}
		fmt.Fprintf(&b, `<text x="%d" y="%d" font-weight="bold">%s</text>`+"\n", label, y+14, html.EscapeString(m.Name+", "+m.Unit))
		y += 22
		for i, who := range r.Contenders {
			c := m.Cells[who]
			if c == nil {
				continue
			}
			long := 0.0
			if longest > 0 {
				long = max(0, c.Value) / longest * width
			}
			colour := "#48c"
			if i == 0 {
				colour = "#888"
			}
			fmt.Fprintf(&b, `<text x="%d" y="%d" text-anchor="end">%s</text>`+"\n", label-8, y+14, html.EscapeString(who))
			fmt.Fprintf(&b, `<rect x="%d" y="%d" width="%.1f" height="%d" fill="%s"/>`+"\n", label, y+2, long, height-6, colour)
			fmt.Fprintf(&b, `<text x="%.1f" y="%d">%s</text>`+"\n", label+long+6, y+14, html.EscapeString(c.String()))
			y += height
		}
		y += gap
	}
	return tool.SVG(label+width+220, y, 12, []string{r.Machine}, b.String())
}
