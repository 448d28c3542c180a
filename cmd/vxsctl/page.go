package main

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

// page returns the rates since an older view in so many columns and lines; 0 = any number.
func (v view) page(old view, cols, lines int) []byte {
	ports, idle := v.portsSince(old)
	rows := [][]string{strings.Fields("PORT TYPE RX/s RX-BIT/s TX/s TX-BIT/s RX-DROPS/s TX-DROPS/s")}
	for _, p := range ports {
		rows = append(rows, row(p.name, p.kind, p.rx, units(p.rxBits), p.tx, units(p.txBits), p.rxDrops, p.txDrops))
	}
	reasons := [][]string{strings.Fields("DROPPED DIRECTION REASON FRAMES/s FRAMES")}
	for _, d := range v.dropsSince(old) {
		reasons = append(reasons, row(d.Where, d.Direction, d.Reason, d.rate, d.Frames))
	}
	head := v.at.Format("15:04:05")
	if idle > 0 {
		head += fmt.Sprintf("  %d idle", idle)
	}
	all := []string{head}
	if len(reasons) == 1 || lines > 0 && lines < 8 { // too few for both
		all = append(all, fit(rows, cols, lines-1)...)
	} else {
		most := lines / 3 // for drops, if ports need the rest
		if lines > 0 {
			most = max(most, lines-2-len(rows), 2)
		}
		bottom := fit(reasons, cols, most)
		all = append(all, fit(rows, cols, max(lines-2-len(bottom), min(lines, 2)))...)
		all = append(all, "")
		all = append(all, bottom...)
	}
	if lines > 0 {
		all = all[:min(len(all), lines)]
	}
	for i, line := range all {
		if r := []rune(line); cols > 0 && len(r) > cols {
			all[i] = string(r[:cols])
		}
	}
	return []byte(strings.Join(all, "\n") + "\n")
}

// narrow is the columns that a page leaves out first.
var narrow = []string{"TYPE", "DIRECTION", "TX-DROPS/s", "RX-DROPS/s", "FRAMES"}

// fit aligns rows under a header in so many columns and lines, of which the last says how many are left out.
func fit(rows [][]string, cols, lines int) []string {
	left := ""
	if n := len(rows) - lines; lines > 1 && n > 0 {
		rows, left = rows[:lines-1], fmt.Sprintf("and %d more", n+1)
	}
	text := aligned(rows)
	for _, name := range narrow {
		if cols == 0 || widest(text) <= cols {
			break
		}
		if i := slices.Index(rows[0], name); i >= 0 {
			rows = without(rows, i)
			text = aligned(rows)
		}
	}
	if left != "" {
		text = append(text, left)
	}
	return text
}

func without(rows [][]string, column int) [][]string {
	list := make([][]string, len(rows))
	for i, r := range rows {
		list[i] = slices.Delete(slices.Clone(r), column, column+1)
	}
	return list
}

func aligned(rows [][]string) []string {
	var b bytes.Buffer
	align(&b, rows)
	return strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
}

func widest(lines []string) (n int) {
	for _, l := range lines {
		n = max(n, len([]rune(l)))
	}
	return n
}
