package soak

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/bench/tool"
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
		y := tool.Axis{High: high, From: y0, To: y0 - height, Linear: true}
		for v := 0.0; v <= high*1.001; v += step {
			fmt.Fprintf(&b, `<path d="M%d %.1fH%d" stroke="#ddd"/><text x="%d" y="%.1f" text-anchor="end">%g</text>`+"\n", left, y.At(v), width-20, left-6, y.At(v)+4, v)
		}
		fmt.Fprintf(&b, `<text x="%d" y="%.1f" font-weight="bold">%s</text>`+"\n", left, y0-height-8, title)
		x := tool.Axis{High: max(all[len(all)-1].at.Seconds(), 1), From: left, To: width - 20, Linear: true}
		var at [][2]float64
		for _, s := range all {
			at = append(at, [2]float64{x.At(s.at.Seconds()), y.At(of(s))})
		}
		b.WriteString(tool.Line(at, "#26a", ""))
		fmt.Fprintf(&b, `<text x="%d" y="%.1f">0</text><text x="%d" y="%.1f" text-anchor="end">%.0f s</text>`+"\n", left, y0+16, width-20, y0+16, x.High)
	}
	panel(0, "resident memory, MiB", func(x sample) float64 { return float64(x.rss) / (1 << 20) })
	panel(1, "frames moved, millions", func(x sample) float64 { return float64(x.frames) / 1e6 })
	return tool.SVG(width, top+2*(height+gap), 11, []string{"two end points in one process under full load"}, b.String())
}

func TestPlot(t *testing.T) {
	text := plot([]sample{{rss: 30 << 20}, {at: time.Second, rss: 40 << 20, frames: 1e6}, {at: 2 * time.Second, rss: 40 << 20, frames: 2e6}})
	count, _, err := tool.Elements(text)
	// 40 MiB is the top of the first panel, and its middle and end.
	if err != nil || count["polyline"] != 2 || !strings.Contains(text, `points="70.0,95.0 385.0,50.0 700.0,50.0"`) {
		t.Errorf("%v, %v\n%s", count, err, text)
	}
}
