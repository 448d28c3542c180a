package soak

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"
	"time"
)

// plot draws resident memory over time as SVG, and the frames moved so far below it.
func plot(all []sample) string {
	const width, height, left, top, gap = 720, 180, 70, 50, 60
	var b strings.Builder
	panel := func(k int, title string, of func(sample) float64) {
		y0, high := float64(top+k*(height+gap)+height), 0.0
		for _, x := range all {
			high = max(high, of(x))
		}
		step := math.Pow(10, math.Floor(math.Log10(max(high, 1e-9))))
		if high/step < 3 {
			step /= 2
		}
		high = math.Ceil(max(high, step)/step) * step
		for v := 0.0; v <= high*1.001; v += step {
			y := y0 - v/high*height
			fmt.Fprintf(&b, `<path d="M%d %.1fH%d" stroke="#ddd"/><text x="%d" y="%.1f" text-anchor="end">%g</text>`+"\n", left, y, width-20, left-6, y+4, v)
		}
		fmt.Fprintf(&b, `<text x="%d" y="%.1f" font-weight="bold">%s</text>`+"\n", left, y0-height-8, title)
		end := max(all[len(all)-1].at.Seconds(), 1)
		var at []string
		for _, x := range all {
			at = append(at, fmt.Sprintf("%.1f,%.1f", left+x.at.Seconds()/end*(width-20-left), y0-of(x)/high*height))
		}
		fmt.Fprintf(&b, `<polyline points="%s" fill="none" stroke="#26a" stroke-width="2"/>`+"\n", strings.Join(at, " "))
		fmt.Fprintf(&b, `<text x="%d" y="%.1f">0</text><text x="%d" y="%.1f" text-anchor="end">%.0f s</text>`+"\n", left, y0+16, width-20, y0+16, end)
	}
	panel(0, "resident memory, MiB", func(x sample) float64 { return float64(x.rss) / (1 << 20) })
	panel(1, "frames moved, millions", func(x sample) float64 { return float64(x.frames) / 1e6 })
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="11">
<rect width="100%%" height="100%%" fill="#fff"/>
<text x="10" y="20">two end points in one process under full load</text>
%s</svg>
`, width, top+2*(height+gap), &b)
}

func TestPlot(t *testing.T) {
	text := plot([]sample{{rss: 30 << 20}, {at: time.Second, rss: 40 << 20, frames: 1e6}, {at: 2 * time.Second, rss: 40 << 20, frames: 2e6}})
	lines := 0
	for d := xml.NewDecoder(bytes.NewReader([]byte(text))); ; {
		tok, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		if e, ok := tok.(xml.StartElement); ok && e.Name.Local == "polyline" {
			lines++
		}
	}
	// 40 MiB is the top of the first panel, and its middle and end.
	if lines != 2 || !strings.Contains(text, `points="70.0,95.0 385.0,50.0 700.0,50.0"`) {
		t.Errorf("%d lines\n%s", lines, text)
	}
}
