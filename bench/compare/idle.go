package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/vxswitch/vxswitch/internal/lab/netns"
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
	resting, cancel := context.WithTimeout(ctx, rest)
	defer cancel()
	switch err := p.Ended(resting); {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case !errors.Is(err, context.DeadlineExceeded):
		return nil, fmt.Errorf("%s: ended", p.Line)
	}
	mib, err := residentOf(p)
	return []float64{mib}, err
}

// residentOf returns what a process has in memory, in MiB.
func residentOf(p *netns.Process) (float64, error) {
	rollup, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", p.PID()))
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
	return 0, fmt.Errorf("/proc/PID/smaps_rollup: %s", netns.Tail([]byte(rollup)))
}
