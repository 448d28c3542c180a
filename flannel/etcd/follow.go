package etcd

import (
	"context"
	"errors"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

var errWatchEnded = errors.New("it has ended")

// silences is how many requests for progress may stay without an answer.
const silences = 2

// follow passes on what happens to keys with prefixes after a revision, until f returns an error or there is another one. The client
// itself would wait for etcd to come back, without a word. So follow asks for progress every Config.KeepAlive, and ends when nothing
// has come for three times that.
func (c *conn) follow(ctx context.Context, prefixes []string, revision int64, f func([]*clientv3.Event) error) error {
	ctx, cancel := context.WithCancelCause(clientv3.WithRequireLeader(ctx))
	var readers sync.WaitGroup
	answers, done := make(chan answer), make(chan struct{})
	defer readers.Wait()
	defer close(done)
	defer cancel(nil)
	late := time.AfterFunc(c.cfg.Timeout, func() { cancel(context.DeadlineExceeded) }) // Watch waits until etcd has answered
	for _, p := range prefixes {
		events := c.client.Watch(ctx, p, clientv3.WithPrefix(), clientv3.WithRev(revision+1))
		readers.Go(func() { forward(done, events, answers) })
	}
	late.Stop()
	tick := time.NewTicker(c.cfg.KeepAlive)
	defer tick.Stop()
	for silent := 0; ; {
		select {
		case r := <-answers:
			if err := r.Err(); err != nil {
				return c.wrap("watch", err)
			}
			if r.ended {
				if err := context.Cause(ctx); err != nil {
					return c.wrap("watch", err)
				}
				return c.wrap("watch", errWatchEnded)
			}
			silent = 0
			if err := f(r.Events); err != nil {
				return err
			}
		case <-tick.C:
			if silent++; silent > silences {
				return c.wrap("watch", context.DeadlineExceeded)
			}
			c.ask(ctx)
		}
	}
}

// An answer is one of a watch, or its end.
type answer struct {
	clientv3.WatchResponse
	ended bool
}

// forward passes on the answers of a watch, and then its end, until done is closed.
func forward(done <-chan struct{}, from clientv3.WatchChan, to chan<- answer) {
	for {
		r, ok := <-from
		select {
		case to <- answer{r, !ok}:
		case <-done:
			return
		}
		if !ok {
			return
		}
	}
}

// ask has etcd answer in the watches of a context.
func (c *conn) ask(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.KeepAlive)
	defer cancel()
	c.client.RequestProgress(ctx)
}
