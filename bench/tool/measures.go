package tool

import (
	"errors"
	"fmt"
	"html"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// A Report is the results of a run of several contenders.
type Report struct {
	Time       time.Time  `json:"time"`
	Machine    string     `json:"machine"`
	Contenders []string   `json:"contenders"` // ratios are to the first
	Measures   []*Measure `json:"measures"`
}

// A Measure is one thing that was measured for some of the contenders.
type Measure struct {
	Name  string           `json:"measure"`
	Unit  string           `json:"unit"`
	Want  string           `json:"wanted"` // in words
	At    float64          `json:"quantile"`
	Cells map[string]*Cell `json:"contenders"`
}

// A Cell is the samples of a contender, those of a round together. Value is the quantile of all samples, and Low and High are
// the least and the greatest of the rounds.
type Cell struct {
	Rounds [][]float64 `json:"rounds"`
	Value  float64     `json:"value"`
	Low    float64     `json:"low"`
	High   float64     `json:"high"`
	Ratio  float64     `json:"ratio"` // to the first contender; 0 = none
}

// Median is the quantile of a Measure that most want.
const Median = 0.5

// NewReport begins a report of contenders on this machine, where beside them these programs are measured.
func NewReport(contenders []string, programs ...string) *Report {
	return &Report{Time: time.Now().UTC().Truncate(time.Second), Machine: Machine(append([]string{runtime.GOOS}, programs...)...), Contenders: contenders}
}

// Rotate returns all beginning with its n-th, counted on from the first again: in each round another contender is first.
func Rotate[T any](all []T, n int) []T {
	n %= len(all)
	return slices.Concat(all[n:], all[:n])
}

// Add takes the samples of a round.
func (r *Report) Add(name, unit, want string, at float64, who string, samples ...float64) {
	i := slices.IndexFunc(r.Measures, func(m *Measure) bool { return m.Name == name })
	if i < 0 {
		i = len(r.Measures)
		r.Measures = append(r.Measures, &Measure{Name: name, Unit: unit, Want: want, At: at, Cells: map[string]*Cell{}})
	}
	m := r.Measures[i]
	if m.Cells[who] == nil {
		m.Cells[who] = &Cell{}
	}
	m.Cells[who].Rounds = append(m.Cells[who].Rounds, samples)
}

// Finish computes all but the samples.
func (r *Report) Finish() {
	for _, m := range r.Measures {
		for _, c := range m.Cells {
			c.Value = Quantile(slices.Concat(c.Rounds...), m.At)
			c.Low, c.High = math.Inf(1), math.Inf(-1)
			for _, round := range c.Rounds {
				v := Quantile(round, m.At)
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

// End computes the figures and returns the table. Unless folder is "" it saves the files NAME.txt, NAME.json and NAME.svg. A measure that
// a contender has no figure above 0 of is an error, but those whose names have one of some words.
func (r *Report) End(folder, name string, but ...string) (table string, err error) {
	r.Finish()
	for _, m := range r.Measures {
		may := slices.ContainsFunc(but, func(word string) bool { return strings.Contains(m.Name, word) })
		for _, who := range r.Contenders {
			if c := m.Cells[who]; !may && (c == nil || c.Value <= 0) {
				err = errors.Join(err, fmt.Errorf("%s: %s has %v", m.Name, who, c))
			}
		}
	}
	if folder == "" {
		r.Plot()
	} else {
		err = errors.Join(err, r.Save(folder, name))
	}
	return r.Print(), err
}

// Quantile returns the sample that a share of them does not exceed; the median of an even number is between two.
func Quantile(samples []float64, share float64) float64 {
	if share == Median {
		_, m, _ := Spread(samples)
		return m
	}
	s := slices.Sorted(slices.Values(samples))
	return s[max(0, int(math.Ceil(share*float64(len(s))))-1)]
}

// Print returns the table.
func (r *Report) Print() string {
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

// Save writes the results to files in a folder: NAME.txt, NAME.json and NAME.svg.
func (r *Report) Save(folder, name string) error {
	base := filepath.Join(folder, name)
	if err := (Files{JSON: base + ".json", SVG: base + ".svg"}).Save(r, r.Plot); err != nil {
		return err
	}
	return os.WriteFile(base+".txt", []byte(r.Print()), 0o644)
}

// String is a Cell of the table.
func (c *Cell) String() string {
	if c == nil {
		return "-"
	}
	s := Number(c.Value)
	if len(c.Rounds) > 1 {
		s += fmt.Sprintf(" [%s-%s]", Number(c.Low), Number(c.High))
	}
	if c.Ratio > 0 {
		s += " " + Number(c.Ratio)
	}
	return s
}

// Plot draws the values as SVG: bars from zero, the longest of each Measure equally long.
func (r *Report) Plot() string {
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
	return SVG(label+width+220, y, 12, []string{r.Machine}, b.String())
}
