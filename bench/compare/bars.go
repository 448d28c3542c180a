package main

import (
	"encoding/json"
	"fmt"
	"html"
	"os"
	"strings"

	"github.com/vxswitch/vxswitch/bench/tool"
)

// picture is what bars draws: the first metric of each case.
var picture = []struct{ name, title string }{
	{"tcp1", "TCP, one flow, Gbit/s"},
	{"udp64", "UDP, 64 bytes, thousands of packets a second"},
}

// pictured are the contenders, and their names for who does not know those of this program.
var pictured = [...][2]string{{"kernel", "kernel vxlan"}, {judged, "vxswitch"}, {"ovs", "Open vSwitch, user space"}}

// bars draws a few medians of a run as SVG, for the README: a group of bars for each case
// of the picture, from zero, the longest of all lengths the same.
func (r *report) bars() (string, error) {
	const label, width, height, gap = 180, 380, 22, 12
	var b strings.Builder
	y := 8
	for _, p := range picture {
		var medians [len(pictured)]float64
		longest := 0.0
		for i, c := range pictured {
			m, ok := r.median(p.name, c[0])
			if !ok {
				return "", fmt.Errorf("%s of %s was not measured", p.name, c[0])
			}
			medians[i], longest = m, max(longest, m)
		}
		fmt.Fprintf(&b, `<text x="%d" y="%d" font-weight="bold">%s</text>`+"\n", label, y+16, html.EscapeString(p.title))
		y += 26
		for i, c := range pictured {
			long := medians[i] / longest * width
			fmt.Fprintf(&b, `<text x="%d" y="%d" text-anchor="end">%s</text>`+"\n", label-8, y+15, html.EscapeString(c[1]))
			fmt.Fprintf(&b, `<rect x="%d" y="%d" width="%.1f" height="%d" fill="%s"/>`+"\n", label, y+2, long, height-6, colour(c[0]))
			fmt.Fprintf(&b, `<text x="%.1f" y="%d">%s</text>`+"\n", label+long+6, y+15, tool.Number(medians[i]))
			y += height
		}
		y += gap
	}
	fmt.Fprintf(&b, `<text x="%d" y="%d" font-size="11" fill="#666">More is better. Medians of %d rounds of %d s; %s</text>`+"\n", 10, y+4, r.Rounds, r.Seconds, html.EscapeString(r.Machine))
	return tool.SVG(640, y+14, 13, nil, b.String()), nil
}

func (r *report) median(name, contender string) (float64, bool) {
	for _, k := range r.Cases {
		for _, w := range k.Rows {
			if k.Name == name && w.Name == contender && len(w.Cells[0].Samples) > 0 {
				return w.Cells[0].Median, true
			}
		}
	}
	return 0, false
}

// load reads the report of an earlier run.
func load(file string) (*report, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	r := new(report)
	if err := json.Unmarshal(text, r); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return r, nil
}
