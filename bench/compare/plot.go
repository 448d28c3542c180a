package main

import (
	"fmt"
	"html"
	"strings"
)

// Measures of the plot, in pixels.
const (
	chartWidth = 360
	labelWidth = 110
	barWidth   = 130 // of the longest
	barHeight  = 16
	headHeight = 44
	plotTop    = 34
)

// plot draws the table as SVG: cases below each other, their metrics side by side,
// in each a bar for every contender with a line from the smallest to the largest value.
func (r *report) plot() string {
	var b strings.Builder
	columns, y := 0, plotTop
	for _, k := range r.Cases {
		for i, m := range k.Metrics {
			k.chart(&b, i, fmt.Sprintf("%s: %s", k.Name, m), i*chartWidth, y)
		}
		columns = max(columns, len(k.Metrics))
		y += headHeight + len(k.Rows)*barHeight
	}
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="11">
<rect width="100%%" height="100%%" fill="#fff"/>
<text x="10" y="20">%s, %d rounds of %d s; medians, smallest to largest value, ratio to the kernel</text>
%s</svg>
`, columns*chartWidth, y+10, html.EscapeString(r.Machine), r.Rounds, r.Seconds, &b)
}

// chart draws one metric of a case.
func (k *block) chart(b *strings.Builder, metric int, title string, x, y int) {
	longest := 0.0
	for _, w := range k.Rows {
		longest = max(longest, w.Cells[metric].Max)
	}
	fmt.Fprintf(b, `<text x="%d" y="%d" font-weight="bold">%s</text>`+"\n", x+10, y+headHeight-8, html.EscapeString(title))
	for i, w := range k.Rows {
		c := w.Cells[metric]
		top, left := y+headHeight+i*barHeight, x+labelWidth
		fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="end">%s</text>`+"\n", left-4, top+11, html.EscapeString(w.Name))
		if len(c.Samples) == 0 || longest == 0 {
			fmt.Fprintf(b, `<text x="%d" y="%d">-</text>`+"\n", left+4, top+11)
			continue
		}
		scale := barWidth / longest
		fmt.Fprintf(b, `<rect x="%d" y="%d" width="%.1f" height="%d" fill="%s"/>`+"\n", left, top+2, c.Median*scale, barHeight-4, colour(w.Name))
		fmt.Fprintf(b, `<path d="M%.1f %dH%.1f" stroke="#000"/>`+"\n", float64(left)+c.Min*scale, top+barHeight/2, float64(left)+c.Max*scale)
		text := number(c.Median)
		if c.Ratio > 0 {
			text += fmt.Sprintf(" (%.2f)", c.Ratio)
		}
		fmt.Fprintf(b, `<text x="%.1f" y="%d">%s</text>`+"\n", float64(left)+c.Max*scale+4, top+11, text)
	}
}

// colour marks who has this library in the path.
func colour(contender string) string {
	switch {
	case contender == "kernel":
		return "#888"
	case strings.Contains(contender, "vxswitch"):
		return "#48c"
	}
	return "#ccc"
}
