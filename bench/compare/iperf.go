package main

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// iperf sends from the first guest to the second for a number of seconds.
func (l *lab) iperf(ctx context.Context, seconds int, args ...string) (t netns.Throughput, spent cpu, err error) {
	server, err := l.start(ctx, "Server listening", l.guests[1], "iperf3", "-s", "-1", "--forceflush")
	if err != nil {
		return t, spent, err
	}
	defer server.Kill()
	before, err := l.cpu()
	if err != nil {
		return t, spent, err
	}
	args = append([]string{"iperf3", "-J", "-c", l.guestAddr(1), "-t", strconv.Itoa(seconds)}, args...)
	out, err := netns.Output(ctx, time.Duration(seconds)*time.Second+netns.Timeout, l.guests[0], args...)
	if err != nil {
		return t, spent, err
	}
	after, err := l.cpu()
	if err != nil {
		return t, spent, err
	}
	if t, err = netns.ReadIPerf(out); err == nil && t.Bytes == 0 {
		err = errors.New("iperf3: nothing was received")
	}
	return t, cpu{after.all - before.all, after.own - before.own}, err
}
