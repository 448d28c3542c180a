package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// sinkPort is where the receiver of packets listens.
const sinkPort = ":7008"

// A flood is what was sent as packets and what came through.
type flood struct {
	sent     sent
	received received
	cpu      cpu // spent meanwhile
}

func (f flood) kilopacks() float64 { return float64(f.received.Received) / 1e3 / f.received.Seconds }

// offered is what was sent, in thousands a second.
func (f flood) offered() float64 { return float64(f.sent.Sent) / 1e3 / f.sent.Seconds }

// loss is what did not come through, of 1.
func (f flood) loss() float64 {
	return max(0, 1-float64(f.received.Received)/max(float64(f.sent.Sent), 1))
}

// megapacks is what came through, in millions.
func (f flood) megapacks() float64 { return float64(f.received.Received) / 1e6 }

// flood sends packets from the first guest to the second; kpps 0 is as fast as it goes.
func (l *lab) flood(ctx context.Context, size int, d time.Duration, kpps float64) (f flood, err error) {
	addr, length := l.guestAddr(1)+sinkPort, strconv.Itoa(size)
	return l.through(ctx, d, []string{l.self, "sink", addr, length}, []string{l.self, "blast", addr, length, d.String(), fmt.Sprintf("%.0f", kpps*1e3)})
}

// through runs a sender for a while inside the first guest, and a receiver inside the second.
func (l *lab) through(ctx context.Context, d time.Duration, receiver, sender []string) (f flood, err error) {
	in, err := l.start(ctx, "ready", l.guests[1], receiver...)
	if err != nil {
		return f, err
	}
	defer in.Kill()
	before, err := l.cpu()
	if err != nil {
		return f, err
	}
	out, err := netns.Output(ctx, d+netns.Timeout, l.guests[0], sender...)
	if err != nil {
		return f, err
	}
	if err := in.Ended(ctx); err != nil {
		return f, fmt.Errorf("sink: %w: %s", err, netns.Tail([]byte(in.Output())))
	}
	after, err := l.cpu()
	if err != nil {
		return f, err
	}
	f, err = readFlood(out, []byte(in.Output()))
	f.cpu = cpu{after.all - before.all, after.own - before.own}
	return f, err
}

// readFlood reads what the sender and the receiver printed.
func readFlood(out, in []byte) (f flood, err error) {
	_, in, _ = bytes.Cut(in, []byte("\n")) // "ready"
	if err := json.Unmarshal(out, &f.sent); err != nil {
		return f, fmt.Errorf("blast: %w: %s", err, netns.Tail(out))
	}
	if err := json.Unmarshal(in, &f.received); err != nil {
		return f, fmt.Errorf("sink: %w: %s", err, netns.Tail(in))
	}
	if f.sent.Seconds <= 0 || f.received.Seconds <= 0 {
		return f, errors.New("udp: nothing was received")
	}
	return f, nil
}
