package etcd

import (
	"context"
	"errors"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/vxswitch/vxswitch/flannel"
)

var errWatchEnded = errors.New("it has ended")

// silences is how many requests for progress may stay without an answer.
const silences = 2

// Watch implements [flannel.KV]. It ends with every error, that of a compaction or a lost leader among them: a list and a
// watch from there on is what always helps. The client itself would wait for etcd to come back, without a word. So
// Watch asks for progress every Config.KeepAlive, and ends when nothing has come for three times that.
func (s *Store) Watch(ctx context.Context, f func(flannel.Change)) error {
	list, revision, err := s.list(ctx)
	if err != nil {
		return err
	}
	f(flannel.Change{Snapshot: true, Set: list})
	ctx, cancel := context.WithCancelCause(clientv3.WithRequireLeader(ctx))
	defer cancel(nil)
	late := time.AfterFunc(s.cfg.Timeout, func() { cancel(context.DeadlineExceeded) }) // Watch waits until etcd has answered
	events := s.client.Watch(ctx, s.subnets(), clientv3.WithPrefix(), clientv3.WithRev(revision+1))
	late.Stop()
	tick := time.NewTicker(s.cfg.KeepAlive)
	defer tick.Stop()
	for silent := 0; ; {
		select {
		case r, ok := <-events:
			if err := r.Err(); err != nil {
				return s.wrap("watch", err)
			}
			if !ok {
				if err := context.Cause(ctx); err != nil {
					return s.wrap("watch", err)
				}
				return s.wrap("watch", errWatchEnded)
			}
			silent = 0
			if x := s.change(r.Events); len(x.Set)+len(x.Deleted) > 0 {
				f(x)
			}
		case <-tick.C:
			if silent++; silent > silences {
				return s.wrap("watch", context.DeadlineExceeded)
			}
			s.ask(ctx)
		}
	}
}

// ask has etcd answer in the watches of a context.
func (s *Store) ask(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.KeepAlive)
	defer cancel()
	s.client.RequestProgress(ctx)
}

// change returns what events come to: of several of one key, the last.
func (s *Store) change(events []*clientv3.Event) (x flannel.Change) {
	last := map[string]int{}
	for i, e := range events {
		last[string(e.Kv.Key)] = i
	}
	for i, e := range events {
		switch {
		case last[string(e.Kv.Key)] != i:
		case e.Type == clientv3.EventTypeDelete:
			x.Deleted = append(x.Deleted, strings.TrimPrefix(string(e.Kv.Key), s.subnets()))
		default:
			x.Set = append(x.Set, s.record(e.Kv))
		}
	}
	return x
}
