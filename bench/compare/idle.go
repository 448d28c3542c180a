package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"time"
)

// rest is how long a tunnel is left alone before its memory is looked at.
const rest = 3 * time.Second

// idle measures the memory of the tunnel's process at the first end, NaN if the tunnel
// is no process there.
func idle(ctx context.Context, l *lab, _ int) ([]float64, error) {
	p := l.tunnelAt(0)
	if p == nil {
		return []float64{math.NaN()}, nil
	}
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-p.done:
		return nil, fmt.Errorf("%s: ended", p.line)
	case <-time.After(rest):
	}
	mib, err := p.resident()
	return []float64{mib}, err
}

// resident returns what the process has in memory, in MiB.
func (p *process) resident() (float64, error) {
	rollup, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", p.pid()))
	if err != nil {
		return 0, err
	}
	return resident(string(rollup))
}

// resident reads /proc/PID/smaps_rollup (Linux 4.14), in MiB. /proc/PID/status has the
// same figure, but may be behind by some pages for each processor.
func resident(rollup string) (float64, error) {
	for line := range strings.Lines(rollup) {
		f := strings.Fields(line)
		if len(f) == 3 && f[0] == "Rss:" && f[2] == "kB" {
			kib, err := strconv.ParseUint(f[1], 10, 64)
			return float64(kib) / 1024, err
		}
	}
	return 0, fmt.Errorf("/proc/PID/smaps_rollup: %s", tail([]byte(rollup)))
}
