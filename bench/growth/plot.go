package main

import (
	"fmt"
	"html"
	"math"
	"strings"

	"github.com/vxswitch/vxswitch/bench/tool"
)

// Measures of the plot, in pixels.
const (
	panelWidth  = 460
	panelHeight = 320
	leftMargin  = 62
	rightMargin = 18
	topMargin   = 78
	lowMargin   = 42
	head        = 34
)

// plot draws the tables as SVG: a panel for each sweep, both axes logarithmic, a line
// with a whisker at each size for each path, and a dashed one for its copies.
func (r *report) plot() string {
	var b strings.Builder
	for i, t := range r.Sweeps {
		t.panel(&b, i%2*panelWidth, head+i/2*panelHeight)
	}
	columns, rows := min(2, len(r.Sweeps)), (len(r.Sweeps)+1)/2
	note := fmt.Sprintf("%s; medians of %d passes, smallest to largest value", r.Machine, r.Passes)
	return tool.SVG(columns*panelWidth, head+rows*panelHeight, 11, []string{note}, b.String())
}

// panel draws one sweep.
func (t *table) panel(b *strings.Builder, left, top int) {
	x := tool.Axis{From: float64(left + leftMargin), To: float64(left + panelWidth - rightMargin)}
	y := tool.Axis{From: float64(top + panelHeight - lowMargin), To: float64(top + topMargin)}
	points := t.Series[0].Points
	x.Low, x.High = float64(points[0].Size), float64(points[len(points)-1].Size)
	y.Low, y.High = t.extent()
	fmt.Fprintf(b, `<text x="%d" y="%d" font-weight="bold">%s</text>`+"\n", left+12, top+16, html.EscapeString(t.Name))
	for v := y.Low; v <= y.High*1.01; v *= 10 {
		fmt.Fprintf(b, `<path d="M%.1f %.1fH%.1f" stroke="#ddd"/><text x="%.1f" y="%.1f" text-anchor="end">%s</text>`+"\n",
			x.From, y.At(v), x.To, x.From-5, y.At(v)+4, short(v))
	}
	for _, p := range points {
		fmt.Fprintf(b, `<path d="M%.1f %.1fV%.1f" stroke="#eee"/><text x="%.1f" y="%.1f" text-anchor="middle">%s</text>`+"\n",
			x.At(float64(p.Size)), y.From, y.To, x.At(float64(p.Size)), y.From+15, short(float64(p.Size)))
	}
	fmt.Fprintf(b, `<path d="M%.1f %.1fV%.1fH%.1f" fill="none" stroke="#000"/>`+"\n", x.From, y.To, y.From, x.To)
	fmt.Fprintf(b, `<text x="%.1f" y="%.1f" text-anchor="middle">%s</text>`+"\n", (x.From+x.To)/2, y.From+32, html.EscapeString(t.Unit))
	fmt.Fprintf(b, `<text transform="translate(%d %.1f) rotate(-90)" text-anchor="middle">ns</text>`+"\n", left+16, (y.From+y.To)/2)
	key := 0
	legend := func(colour, dash, text string) {
		kx, ky := left+leftMargin+key%2*200, top+34+key/2*16
		fmt.Fprintf(b, `<path d="M%d %dh20" stroke="%s" stroke-width="2"%s/><text x="%d" y="%d">%s</text>`+"\n", kx, ky-4, colour, dash, kx+25, ky, html.EscapeString(text))
		key++
	}
	for i, s := range t.Series {
		colour := []string{"#26a", "#c62"}[i%2]
		legend(colour, "", s.Name)
		s.line(b, x, y, colour, "", func(p point) float64 { return p.Median })
		for _, p := range s.Points {
			fmt.Fprintf(b, `<path d="M%.1f %.1fV%.1f" stroke="%s"/><circle cx="%.1f" cy="%.1f" r="3" fill="%[4]s"/>`+"\n",
				x.At(float64(p.Size)), y.At(p.Min), y.At(p.Max), colour, x.At(float64(p.Size)), y.At(p.Median))
		}
		if s.Kind == replication {
			const dash = ` stroke-dasharray="5 3"`
			legend(colour, dash, "a copy")
			s.line(b, x, y, colour, dash, func(p point) float64 { return p.PerCopy })
		}
	}
}

func (s *series) line(b *strings.Builder, x, y tool.Axis, colour, dash string, of func(point) float64) {
	var at [][2]float64
	for _, p := range s.Points {
		at = append(at, [2]float64{x.At(float64(p.Size)), y.At(of(p))})
	}
	b.WriteString(tool.Line(at, colour, dash))
}

// extent is the powers of ten around all that is drawn.
func (t *table) extent() (low, high float64) {
	low, high = math.Inf(1), 0
	for _, s := range t.Series {
		for _, p := range s.Points {
			low, high = min(low, p.Min), max(high, p.Max)
			if s.Kind == replication {
				low = min(low, p.PerCopy)
			}
		}
	}
	low, high = math.Floor(math.Log10(low)), math.Ceil(math.Log10(high))
	return math.Pow(10, low), math.Pow(10, max(high, low+1))
}

// short is a number with k and M, which stand for 1024 where they come out even.
func short(v float64) string {
	n := int(v)
	switch {
	case v < 1:
		return fmt.Sprintf("%g", math.Round(v*1e6)/1e6)
	case n >= 1<<20 && n%(1<<20) == 0:
		return fmt.Sprintf("%dM", n>>20)
	case n >= 1<<10 && n%(1<<10) == 0:
		return fmt.Sprintf("%dk", n>>10)
	case n >= 1e6 && n%1e6 == 0:
		return fmt.Sprintf("%dM", n/1e6)
	case n >= 1e3 && n%1e3 == 0:
		return fmt.Sprintf("%dk", n/1000)
	}
	return fmt.Sprint(n)
}
