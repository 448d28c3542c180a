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
	chartWidth = 310
	chartsWide = 3 // at most, for a case
	labelWidth = 104
	barWidth   = 120 // of the longest
	barHeight  = 16
	headHeight = 44
	plotTop    = 68

	farthest = 3 // octaves from the base: what is beyond is drawn at the edge
)

// plot draws what the table says beside the bases as SVG: cases below each other, their
// metrics side by side, in each a bar for every contender from the base's median to
// its own, on a scale of ratios that is the same in the whole plot, and a line from the
// smallest to the largest value.
func (r *report) plot() string {
	var b strings.Builder
	low, high := r.octaves()
	columns, y := 0, plotTop
	for _, k := range r.Cases {
		drawn := k.drawn()
		for column, i := range drawn {
			k.chart(&b, i, column*chartWidth, y, low, high)
		}
		columns = max(columns, len(drawn))
		y += headHeight + len(k.Rows)*barHeight
	}
	notes := []string{
		r.Machine,
		fmt.Sprintf("%d rounds of %d s. Bars: ratio to the median of the first one, each grid line twice the one before; lines: smallest to largest value; text: median (ratio)", r.Rounds, r.Seconds),
		fmt.Sprintf("What is beyond %s and %s of it is drawn at the edge.", power(-farthest), power(farthest)),
	}
	return tool.SVG(max(columns, chartsWide)*chartWidth, y+10, 11, notes, b.String())
}

// drawn returns the metrics of a case that are drawn: the first of those that the base
// has too. Where it has none, the first one is drawn by its values.
func (k *block) drawn() (metrics []int) {
	for i := range k.Metrics {
		if k.ratios(i) && len(metrics) < chartsWide {
			metrics = append(metrics, i)
		}
	}
	if metrics == nil {
		return []int{0}
	}
	return metrics
}

// ratios reports whether there is a base to compare with.
func (k *block) ratios(metric int) bool {
	for _, w := range k.Rows {
		if w.Cells[metric].Ratio > 0 {
			return true
		}
	}
	return false
}

// octaves returns the powers of two, 0 or less and 1 or more, between which all ratios
// of the plot are, but for the farthest.
func (r *report) octaves() (low, high int) {
	high = 1
	for _, k := range r.Cases {
		for _, i := range k.drawn() {
			for _, w := range k.Rows {
				if c := w.Cells[i]; c.Ratio > 0 {
					low = min(low, int(math.Floor(math.Log2(c.ratio(c.Min)))))
					high = max(high, int(math.Ceil(math.Log2(c.ratio(c.Max)))))
				}
			}
		}
	}
	return max(low, -farthest), min(high, farthest)
}

// ratio returns a value in relation to the base's median.
func (c cell) ratio(v float64) float64 { return v * c.Ratio / c.Median }

// power writes a power of two.
func power(n int) string {
	if n < 0 {
		return fmt.Sprintf("1/%d", 1<<-n)
	}
	return fmt.Sprint(1 << n)
}

// chart draws one metric of a case.
func (k *block) chart(b *strings.Builder, metric int, x, y, low, high int) {
	left, bottom := x+labelWidth, y+headHeight+len(k.Rows)*barHeight
	fmt.Fprintf(b, `<text x="%d" y="%d" font-weight="bold">%s</text>`+"\n", x+10, y+headHeight-16, html.EscapeString(k.Name+": "+k.Metrics[metric]))

	ratios := k.ratios(metric)
	longest := 0.0
	for _, w := range k.Rows {
		longest = max(longest, w.Cells[metric].Max)
	}
	axis := tool.Axis{High: longest, From: float64(left), To: float64(left + barWidth), Linear: true}
	at := func(_ cell, v float64) float64 { return axis.At(v) }
	origin := float64(left)
	if ratios {
		axis = tool.Axis{Low: math.Exp2(float64(low)), High: math.Exp2(float64(high)), From: axis.From, To: axis.To}
		at = func(c cell, v float64) float64 { return axis.At(min(max(c.ratio(v), axis.Low), axis.High)) }
		origin = axis.At(1)
		for n := low; n <= high; n++ {
			shade := "#ddd"
			if n == 0 {
				shade = "#888"
			}
			cx := axis.At(math.Exp2(float64(n)))
			fmt.Fprintf(b, `<path d="M%.1f %dV%d" stroke="%s"/>`+"\n", cx, y+headHeight, bottom, shade)
			if n == low || n == 0 || n == high {
				fmt.Fprintf(b, `<text x="%.1f" y="%d" font-size="9" fill="#666" text-anchor="middle">%s</text>`+"\n", cx, y+headHeight-3, power(n))
			}
		}
	}
	for i, w := range k.Rows {
		c := w.Cells[metric]
		top := y + headHeight + i*barHeight
		fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="end">%s</text>`+"\n", left-6, top+12, html.EscapeString(w.Name))
		if len(c.Samples) == 0 || longest == 0 || ratios && c.Ratio == 0 {
			fmt.Fprintf(b, `<text x="%d" y="%d">-</text>`+"\n", left+4, top+12)
			continue
		}
		end := at(c, c.Median)
		fmt.Fprintf(b, `<rect x="%.1f" y="%d" width="%.1f" height="%d" fill="%s"/>`+"\n",
			min(origin, end), top+2, math.Abs(end-origin), barHeight-4, colour(w.Name))
		fmt.Fprintf(b, `<path d="M%.1f %dH%.1f" stroke="#000"/>`+"\n", at(c, c.Min), top+barHeight/2, at(c, c.Max))
		text := tool.Number(c.Median)
		if c.Ratio > 0 {
			text += fmt.Sprintf(" (%.2f)", c.Ratio)
		}
		fmt.Fprintf(b, `<text x="%d" y="%d">%s</text>`+"\n", left+barWidth+8, top+12, text)
	}
}

// colour marks who has this library in the path.
func colour(contender string) string {
	switch contender {
	case "kernel", "kernel-gpe":
		return "#888"
	case "veth", "ovs":
		return "#bbb"
	}
	return "#48c"
}
