package main

import (
	"fmt"
	"math"

	"github.com/vxswitch/vxswitch/bench/tool"
)

const (
	flatLimit   = 30.0 // a look-up may cost so many times what it costs at a smaller size
	linearLimit = 8.0  // a frame with n times the copies may cost so many times n
)

// judge says in words what the points do, and fails what grows faster than it may.
func (x *series) judge(unit string) {
	first, last := x.Points[0], x.Points[len(x.Points)-1]
	compared := fmt.Sprintf("%d %s cost %sx of %d", last.Size, unit, tool.Number(last.Ratio), first.Size)
	var word, detail string
	if x.Kind == lookup {
		word = flatness(last.Ratio, float64(last.Size)/float64(first.Size))
		detail = fmt.Sprintf("they are %.0fx as many", float64(last.Size)/float64(first.Size))
		if word != "flat" {
			detail = x.why
		}
		if x.tooSteep(func(a, b point) float64 { return flatLimit }) {
			word, x.Failed = "NOT FLAT", true
		}
	} else {
		word = growthOf(last.Ratio, float64(last.Copies)/float64(first.Copies))
		detail = fmt.Sprintf("%s ns a copy at first and %s at last", tool.Number(first.PerCopy), tool.Number(last.PerCopy))
		if x.bends() || x.tooSteep(func(a, b point) float64 { return linearLimit * float64(b.Copies) / float64(a.Copies) }) {
			word, x.Failed = "NOT LINEAR", true
		}
	}
	x.Verdict = fmt.Sprintf("%s: %s; %s", word, compared, detail)
	for _, p := range x.Points {
		if p.Allocs > 0 {
			x.Verdict += fmt.Sprintf("; ALLOCATES %.3g times a frame at %d %s", p.Allocs, p.Size, unit)
			x.Failed = true
		}
	}
}

// flatness is the word for a cost that is ratio times as large at n times the size.
func flatness(ratio, n float64) string {
	switch {
	case ratio < 1.5:
		return "flat"
	case ratio < 4 && exponent(ratio, n) < 1.0/3:
		return "nearly flat"
	case exponent(ratio, n) < 0.5:
		return "not flat, far less than linear"
	}
	return "not flat"
}

// growthOf is the word for a cost that is ratio times as large for n times the copies.
func growthOf(ratio, n float64) string {
	switch e := exponent(ratio, n); {
	case e < 0.2:
		return "nearly free"
	case e < 0.75:
		return "less than linear"
	case e < 1.15:
		return "linear"
	}
	return "more than linear"
}

// exponent is e where n^e is ratio: 0 is flat, 1 linear, 2 quadratic.
func exponent(ratio, n float64) float64 { return math.Log(ratio) / math.Log(n) }

// tooSteep reports whether between any two sizes the cost grows by more than limit. It compares the smallest values: what else the
// machine does only adds to them.
func (x *series) tooSteep(limit func(a, b point) float64) bool {
	for i, a := range x.Points {
		for _, b := range x.Points[i+1:] {
			if b.Min/a.Min >= limit(a, b) {
				return true
			}
		}
	}
	return false
}

// bends reports whether what one copy more costs grows from step to step as a square
// does, even where what a frame costs without copies still hides it. It, too, goes by the smallest values.
func (x *series) bends() bool {
	step := func(i int) (raise, each float64) {
		a, b := x.Points[i], x.Points[i+1]
		return b.Min / a.Min, (b.Min - a.Min) / float64(b.Copies-a.Copies)
	}
	for i := range len(x.Points) - 2 {
		r1, c1 := step(i)
		r2, c2 := step(i + 1)
		if r1 > 1.5 && r2 > 1.5 && c2 >= linearLimit*c1 {
			return true
		}
	}
	return false
}
