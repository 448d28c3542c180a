// Package batch has what changes written by one goroutine, many changes at once and not too many at a time.
package batch

import (
	"context"
	"time"
)

// A Loop is the goroutine, which others wake when they have changed something.
type Loop struct {
	pause, tick time.Duration
	kick        chan struct{}
}

// New returns a Loop with a pause between batches. It runs each tick too, unless that is 0.
func New(pause, tick time.Duration) *Loop {
	return &Loop{pause: pause, tick: tick, kick: make(chan struct{}, 1)}
}

// Wake has Run write what has changed. It does not wait.
func (l *Loop) Wake() {
	select {
	case l.kick <- struct{}{}:
	default:
	}
}

// Run calls write until ctx is done: at once after a Wake, and after others when the pause is over. While write reports that there is more,
// it is called again without a pause; due is true each tick.
func (l *Loop) Run(ctx context.Context, write func(due bool) (more bool)) {
	var ticks <-chan time.Time
	if l.tick > 0 {
		t := time.NewTicker(l.tick)
		defer t.Stop()
		ticks = t.C
	}
	for {
		due := false
		select {
		case <-ctx.Done():
			return
		case <-l.kick:
		case <-ticks:
			due = true
		}
		next := time.NewTimer(l.pause)
		for write(due) && ctx.Err() == nil {
			due = false // what waits for a lock comes between
		}
		select {
		case <-ctx.Done():
			next.Stop()
			return
		case <-next.C:
		}
	}
}
