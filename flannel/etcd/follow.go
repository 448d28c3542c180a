package etcd

import (
	"cmp"
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
	defer readers.Wait()
	defer cancel(nil)
	late := time.AfterFunc(c.cfg.Timeout, func() { cancel(context.DeadlineExceeded) }) // Watch waits until etcd has answered
	var answers clientv3.WatchChan
	for i, p := range prefixes {
		events := c.client.Watch(ctx, p, clientv3.WithPrefix(), clientv3.WithRev(revision+1))
		if i > 0 {
			events = merge(ctx, &readers, answers, events)
		}
		answers = events
	}
	late.Stop()
	tick := time.NewTicker(c.cfg.KeepAlive)
	defer tick.Stop()
	for silent := 0; ; {
		select {
		case r, ok := <-answers:
			if err := r.Err(); err != nil {
				return c.wrap("watch", err)
			}
			if !ok {
				return c.wrap("watch", cmp.Or(context.Cause(ctx), errWatchEnded))
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

// merge returns the answers of two watches until one ends, or ctx.
func merge(ctx context.Context, readers *sync.WaitGroup, a, b clientv3.WatchChan) clientv3.WatchChan {
	both := make(chan clientv3.WatchResponse)
	readers.Go(func() {
		defer close(both)
		for {
			var r clientv3.WatchResponse
			ok := false
			select {
			case r, ok = <-a:
			case r, ok = <-b:
			case <-ctx.Done():
			}
			if !ok {
				return
			}
			select {
			case both <- r:
			case <-ctx.Done():
				return
			}
		}
	})
	return both
}

// ask has etcd answer in the watches of a context.
func (c *conn) ask(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.KeepAlive)
	defer cancel()
	c.client.RequestProgress(ctx)
}
