package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

const (
	talkRun    = 16                      // packets in a row by which p2p notices a pair, with room
	talkRate   = 16000                   // packets a second meanwhile: an Offload tries 1024 pairs a second
	talkBack   = 5000                    // packets a second that answer, pair after pair, so that flows of that way stay too
	talkLaps   = 4                       // tries to have all pairs carried
	talkCalm   = 2500 * time.Millisecond // until the kernel carries a flow whose packets have last come merged, as p2p sends them
	talkByUser = 0.01                    // most packets that user space may carry, of 1
)

// talking is an end whose guests talk in so many pairs.
func talking(pairs int, e end) func(ctx context.Context, l *lab) error {
	return func(ctx context.Context, l *lab) error {
		l.pairs = pairs
		return both(e)(ctx, l)
	}
}

// talks measures packets of many pairs, from when the kernel carries them all. It is an error if user space has a part.
func talks(ctx context.Context, l *lab, seconds int) ([]float64, error) {
	talk := func(end, run int, d time.Duration, pps int) []string {
		return []string{l.self, "talk", "vx0", strconv.Itoa(end), strconv.Itoa(l.pairs), strconv.Itoa(run), d.String(), strconv.Itoa(pps)}
	}
	back, err := l.start(ctx, "", l.guests[1], talk(1, 1, time.Hour, talkBack)...)
	if err != nil {
		return nil, err
	}
	defer back.Kill()
	lap := time.Second + time.Duration(l.pairs)*talkRun*time.Second/talkRate
	var before, after [2]carried
	for n := 1; ; n++ {
		if _, err := netns.Output(ctx, lap+netns.Timeout, l.guests[0], talk(0, talkRun, lap, talkRate)...); err != nil {
			return nil, err
		}
		if before, err = l.carried(ctx); err != nil {
			return nil, err
		}
		if least(before) >= 2*l.pairs {
			break
		}
		if n == talkLaps {
			return nil, fmt.Errorf("%d flows are carried after %d tries, want %d", least(before), n, 2*l.pairs)
		}
	}
	time.Sleep(talkCalm)
	if before, err = l.carried(ctx); err != nil {
		return nil, err
	}
	d := time.Duration(seconds) * time.Second
	f, err := l.through(ctx, d, []string{l.self, "hear", "vx0"}, talk(0, 0, d, 0))
	if err != nil {
		return nil, err
	}
	if after, err = l.carried(ctx); err != nil {
		return nil, err
	}
	for i := range after {
		if err := after[i].since(before[i], f.received.Received); err != nil {
			return nil, fmt.Errorf("host %d: %w", i, err)
		}
	}
	flows := min(least(before), least(after))
	if flows < 2*l.pairs {
		return nil, fmt.Errorf("%d flows are left, want %d", flows, 2*l.pairs)
	}
	all, _ := l.per(f.cpu, f.megapacks())
	return []float64{f.kilopacks(), all, float64(flows), 100 * f.loss()}, nil
}

// carried is who has carried frames at an end so far: p2p's line of statistics.
type carried struct {
	Rx, Tx  struct{ Frames uint64 }
	Offload *struct {
		Flows   int
		Carried struct{ Frames uint64 }
	}
}

// since returns an error unless the kernel has carried so many frames, and user space few beside them.
func (c carried) since(before carried, frames uint64) error {
	kernel := c.Offload.Carried.Frames - before.Offload.Carried.Frames
	all := c.Rx.Frames + c.Tx.Frames - before.Rx.Frames - before.Tx.Frames
	if user := float64(all) - float64(kernel); user > talkByUser*float64(frames) || float64(kernel) < (1-talkByUser)*float64(frames) {
		return fmt.Errorf("user space has carried %.0f frames, the kernel %d of the %d that were received", user, kernel, frames)
	}
	return nil
}

// least is how many flows there are at the end that has fewer.
func least(c [2]carried) int { return min(c[0].Offload.Flows, c[1].Offload.Flows) }

// carried asks p2p at both ends.
func (l *lab) carried(ctx context.Context) (c [2]carried, err error) {
	for i := range c {
		p := l.tunnelAt(i)
		n := len(p.Output())
		if err := poke(p.PID()); err != nil {
			return c, err
		}
		line := ""
		for over := time.Now().Add(netns.Timeout); !strings.HasSuffix(line, "\n"); line = p.Output()[n:] {
			if time.Sleep(time.Millisecond); time.Now().After(over) || ctx.Err() != nil {
				return c, fmt.Errorf("p2p prints no statistics at host %d", i)
			}
		}
		if c[i], err = readCarried(line); err != nil {
			return c, err
		}
	}
	return c, nil
}

func readCarried(line string) (c carried, err error) {
	text, ok := strings.CutPrefix(line, "stats ")
	if json.Unmarshal([]byte(text), &c) != nil || !ok || c.Offload == nil {
		return c, fmt.Errorf("p2p carries no flows in the kernel: %s", netns.Tail([]byte(line)))
	}
	return c, nil
}
