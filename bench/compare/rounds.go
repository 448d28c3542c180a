package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/vxswitch/vxswitch/bench/tool"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// compare runs all rounds and writes the results. A measurement that fails is said and
// left out, and is an error at the end.
func compare(ctx context.Context, o options, out, progress io.Writer) (err error) {
	if o.from != "" {
		r, err := load(o.from)
		if err != nil {
			return err
		}
		return r.write(out, o)
	}
	if err := able(); err != nil {
		return err
	}
	if err := sweep(); err != nil {
		fmt.Fprintln(progress, "left by an earlier run:", err)
	}
	var s shared
	if s.dir, err = os.MkdirTemp("", prefix+strconv.Itoa(os.Getpid())+"-"); err != nil {
		return err
	}
	defer os.RemoveAll(s.dir)
	if err := s.build(ctx); err != nil {
		return err
	}
	present := o.present(progress)
	o.cases = slices.DeleteFunc(o.cases, func(k testCase) bool { return len(k.of(present)) == 0 })
	all := 0
	for _, k := range o.cases {
		all += o.rounds * len(k.of(present))
	}
	if all == 0 {
		return errors.New("no contender is left")
	}
	r := newReport(o, present)
	n, failed := 0, 0
	for round := range o.rounds {
		for _, k := range o.cases {
			for _, c := range tool.Rotate(k.of(present), round) {
				n++
				at := fmt.Sprintf("[%d/%d] round %d, %s, %s:", n, all, round+1, k.name, c.name)
				values, err := one(ctx, s, k, c, o.seconds)
				switch {
				case ctx.Err() != nil:
					return errors.New("interrupted")
				case err != nil:
					failed++
					fmt.Fprintln(progress, at, err)
				default:
					fmt.Fprintln(progress, at, tool.Number(values[0]), k.metrics[0])
					r.add(k.name, c.name, values)
				}
			}
		}
	}
	r.finish(failed)
	if err := r.write(out, o); err != nil {
		return err
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d measurements failed", failed, n)
	}
	return nil
}

// one is one measurement, in a lab of its own.
func one(ctx context.Context, s shared, k testCase, c contender, seconds int) (values []float64, err error) {
	l, err := newLab(ctx, s, k.underlay)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, l.close()) }()
	if err := c.join(ctx, l); err != nil {
		return nil, err
	}
	if err := l.warm(ctx); err != nil {
		return nil, err
	}
	return k.measure(ctx, l, seconds)
}

// present returns the contenders that take part, and says who does not.
func (o *options) present(progress io.Writer) (cs []contender) {
	for _, c := range o.contenders {
		if c.missing() {
			fmt.Fprintf(progress, "%s: skipped, %s is not installed (Debian package %s)\n", c.name, c.need, c.pkg)
			continue
		}
		cs = append(cs, c)
	}
	return cs
}

// build compiles examples/p2p.
func (s *shared) build(ctx context.Context) (err error) {
	if s.self, err = os.Executable(); err != nil {
		return err
	}
	s.p2p = filepath.Join(s.dir, "p2p")
	out, err := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-o", s.p2p, "github.com/vxswitch/vxswitch/examples/p2p").CombinedOutput()
	if err != nil {
		return fmt.Errorf("go build examples/p2p, to be run from within a clone, with its go.work: %w: %s", err, netns.Tail(out))
	}
	return nil
}
