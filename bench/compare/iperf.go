package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// A transfer is what came through, by the count of iperf3's receiver.
type transfer struct {
	Seconds float64
	Bytes   float64 // of payload
	cpu     cpu     // spent meanwhile
}

func (t transfer) gigabits() float64 { return t.Bytes * 8 / 1e9 / t.Seconds }

// iperf sends from the first guest to the second for a number of seconds.
func (l *lab) iperf(ctx context.Context, seconds int, args ...string) (t transfer, err error) {
	server, err := l.start(ctx, "Server listening", l.guests[1], "iperf3", "-s", "-1", "--forceflush")
	if err != nil {
		return t, err
	}
	defer server.Kill()
	before, err := l.cpu()
	if err != nil {
		return t, err
	}
	args = append([]string{"iperf3", "-J", "-c", l.guestAddr(1), "-t", strconv.Itoa(seconds)}, args...)
	out, err := netns.Output(ctx, time.Duration(seconds)*time.Second+netns.Timeout, l.guests[0], args...)
	if err != nil {
		return t, err
	}
	after, err := l.cpu()
	if err != nil {
		return t, err
	}
	t, err = readIPerf(out)
	t.cpu = cpu{after.all - before.all, after.own - before.own}
	return t, err
}

// readIPerf reads the report of iperf3 -J.
func readIPerf(out []byte) (transfer, error) {
	var report struct {
		Error string
		End   struct {
			Received transfer `json:"sum_received"`
		}
	}
	if err := json.Unmarshal(out, &report); err != nil {
		return transfer{}, fmt.Errorf("iperf3: %w: %s", err, netns.Tail(out))
	}
	t := report.End.Received
	if report.Error != "" {
		return t, errors.New("iperf3: " + report.Error)
	}
	if t.Seconds <= 0 || t.Bytes <= 0 {
		return t, errors.New("iperf3: nothing was received")
	}
	return t, nil
}
