package etcd

import (
	"context"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/vxswitch/vxswitch/flannel"
)

// Watch implements [flannel.KV]. It ends with every error, that of a compaction or a lost leader among them: a list and a
// watch from there on is what always helps.
func (s *Store) Watch(ctx context.Context, f func(flannel.Change)) error {
	list, revision, err := s.list(ctx)
	if err != nil {
		return err
	}
	f(flannel.Change{Snapshot: true, Set: list})
	return s.follow(ctx, []string{s.subnets()}, revision, func(events []*clientv3.Event) error {
		if x := s.change(events); len(x.Set)+len(x.Deleted) > 0 {
			f(x)
		}
		return nil
	})
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
