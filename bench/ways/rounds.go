package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

// A group is ways to do the same; the first is the one this library uses now.
type group struct {
	letter, title string
	metrics       []metric // the first is the one that is judged
	ways          []way
}

// A metric says what one of the values of a sample is.
type metric struct {
	name string
	less bool // less is better
}

// A way is one way to do what its group does. Its function measures it for a time.
type way struct {
	name string
	run  func(ctx context.Context, l *lab, d time.Duration) (sample, error)
}

// A sample is what one measurement gave: a value for each metric of the group.
type sample struct {
	values []float64
	note   string // what else there is to say
}

// A refusal is the error of a way that this kernel does not have or does not allow.
type refusal struct{ text string }

func (r refusal) Error() string { return "refused: " + r.text }

// measure runs all rounds: in each, every way of every group once, and from round to
// round they take turns in who is first. A measurement that fails is said and left out,
// and is an error at the end.
func measure(ctx context.Context, o options, progress io.Writer) (_ *report, err error) {
	l, err := newLab(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, l.close()) }()
	r := newReport(o)
	n, all, failed := 0, 0, 0
	for _, g := range o.groups {
		all += o.rounds * len(g.ways)
	}
	for round := range o.rounds {
		for i, g := range o.groups {
			for k := range g.ways {
				k = (k + round) % len(g.ways)
				n++
				at := fmt.Sprintf("[%d/%d] round %d, %s, %s:", n, all, round+1, g.letter, g.ways[k].name)
				s, err := g.ways[k].run(ctx, l, o.each)
				no, isNo := errors.AsType[refusal](err)
				switch {
				case ctx.Err() != nil:
					return nil, errors.New("interrupted")
				case isNo:
					fmt.Fprintln(progress, at, no)
					r.refuse(i, k, no.text)
				case err != nil:
					failed++
					fmt.Fprintln(progress, at, err)
				default:
					fmt.Fprintln(progress, at, number(s.values[0]), g.metrics[0].name)
					r.add(i, k, s)
				}
			}
		}
	}
	r.finish()
	if failed > 0 {
		return r, fmt.Errorf("%d of %d measurements failed", failed, n)
	}
	return r, nil
}
