package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"time"

	"github.com/vxswitch/vxswitch/bench/tool"
	"github.com/vxswitch/vxswitch/frame"
)

// growth runs all passes and writes the results.
func growth(ctx context.Context, o options, out, progress io.Writer) error {
	r := newReport(o)
	for pass := range o.passes {
		for i, s := range o.sweeps {
			for k := range s.sizes {
				if pass%2 == 1 {
					k = len(s.sizes) - 1 - k
				}
				if ctx.Err() != nil {
					return errors.New("interrupted")
				}
				costs, err := one(s, s.sizes[k], o.time)
				if err != nil {
					return fmt.Errorf("%s: %d %s: %w", s.name, s.sizes[k], s.unit, err)
				}
				fmt.Fprintf(progress, "[pass %d/%d] %d %s:", pass+1, o.passes, s.sizes[k], s.unit)
				for j, c := range costs {
					r.Sweeps[i].Series[j].Points[k].add(c)
					fmt.Fprintf(progress, " %s %s ns;", s.paths[j].name, tool.Number(c.ns))
				}
				fmt.Fprintln(progress)
			}
		}
	}
	r.finish()
	if err := r.write(out, o); err != nil {
		return err
	}
	return r.failure()
}

// A cost is what one measurement brought, for one frame.
type cost struct {
	ns, allocs float64
	copies     int
}

// one measures one size of a sweep once, a cost for each path, on a switch of its own.
func one(s sweep, size int, d time.Duration) (costs []cost, err error) {
	b, err := newBed()
	if err != nil {
		return nil, err
	}
	defer b.close()
	drives, err := s.build(b, size)
	if err != nil {
		return nil, err
	}
	runtime.GC() // what the building left is not collected while something is measured
	for i, x := range drives {
		c, err := x.measure(d)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.paths[i].name, err)
		}
		costs = append(costs, c)
	}
	return costs, nil
}

// measure warms the path up while it looks for the number of batches that takes about
// d, and then takes the time of them.
func (x drive) measure(d time.Duration) (cost, error) {
	n := 1
	for t := x.time(n); ; t = x.time(n) {
		if t >= d/4 {
			n = max(1, int(float64(n)*float64(d)/float64(t)))
			break
		}
		n *= 2
	}
	before := x.moved()
	t := x.time(n)
	frames := n * frame.MaxBatch
	if got, want := x.moved()-before, frames*x.copies; got != want {
		return cost{}, fmt.Errorf("%d copies of %d came out", got, want)
	}
	return cost{float64(t.Nanoseconds()) / float64(frames), x.allocs(max(16, n/8)), x.copies}, nil
}

// allocs counts the allocations of the whole process while the path carries so many
// batches, for one frame. The runtime and the housekeeping have some of their own now
// and then, so the run with the fewest counts.
func (x drive) allocs(batches int) float64 {
	least := ^uint64(0)
	for try := 0; try < 20 && least > 0; try++ {
		var a, z runtime.MemStats
		runtime.ReadMemStats(&a)
		x.run(batches)
		runtime.ReadMemStats(&z)
		least = min(least, z.Mallocs-a.Mallocs)
	}
	return float64(least) / float64(batches*frame.MaxBatch)
}

func (x drive) time(batches int) time.Duration {
	start := time.Now()
	x.run(batches)
	return time.Since(start)
}
