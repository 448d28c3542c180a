package etcd

import (
	"bytes"
	"context"
	"math"
	"path"
	"strings"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/vxswitch/vxswitch/flannel"
)

// A Store is the [flannel.KV] in etcd.
type Store struct {
	conn

	mu    sync.Mutex
	wrote map[clientv3.LeaseID]bool // all etcd leases of this store, the revoked ones too: what they were for may still be told
	fixed map[string]int64          // reservations that this store has written, and their revisions; while one is not known, maxRevision
}

var _ flannel.KV = (*Store)(nil)

// New makes a store. It connects when it is used, but with a Username at once.
func New(cfg *Config) (*Store, error) { return Open(context.Background(), cfg) }

// Open is New for a store whose calls end with ctx.
func Open(ctx context.Context, cfg *Config) (*Store, error) {
	s := &Store{wrote: map[clientv3.LeaseID]bool{}, fixed: map[string]int64{}}
	if err := s.open(ctx, cfg); err != nil {
		return nil, err
	}
	return s, nil
}

// TTL implements [flannel.KV].
func (s *Store) TTL() time.Duration { return s.cfg.TTL }

func (s *Store) subnets() string        { return s.cfg.Prefix + "/subnets/" }
func (s *Store) path(key string) string { return s.subnets() + key }

// Config implements [flannel.KV].
func (s *Store) Config(ctx context.Context) ([]byte, error) {
	ctx, cancel := s.call(ctx)
	defer cancel()
	key := path.Join(s.cfg.Prefix, "config")
	r, err := s.client.Get(ctx, key)
	if err != nil {
		return nil, s.wrap(key, err)
	}
	if len(r.Kvs) == 0 {
		return nil, s.wrap(key, flannel.ErrNoNetwork)
	}
	return r.Kvs[0].Value, nil
}

// List implements [flannel.KV].
func (s *Store) List(ctx context.Context) ([]flannel.Record, error) {
	list, _, err := s.list(ctx)
	return list, err
}

// list returns the records as of a revision.
func (s *Store) list(ctx context.Context) (list []flannel.Record, revision int64, err error) {
	ctx, cancel := s.call(ctx)
	defer cancel()
	r, err := s.client.Get(ctx, s.subnets(), clientv3.WithPrefix())
	if err != nil {
		return nil, 0, s.wrap("list", err)
	}
	list = make([]flannel.Record, len(r.Kvs))
	for i, kv := range r.Kvs {
		list[i] = s.record(kv)
	}
	return list, r.Header.Revision, nil
}

func (s *Store) record(kv *mvccpb.KeyValue) flannel.Record {
	key := strings.TrimPrefix(string(kv.Key), s.subnets())
	return flannel.Record{
		Key: key, Value: kv.Value, Created: kv.CreateRevision, Revision: kv.ModRevision, Expires: kv.Lease != 0, Ours: s.ours(key, kv),
	}
}

// ours reports whether the last change of a key was made by this store.
func (s *Store) ours(key string, kv *mvccpb.KeyValue) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if kv.Lease == 0 { // no revision up to the one written here is another's: the transaction would have failed
		return kv.ModRevision <= s.fixed[key]
	}
	return s.wrote[clientv3.LeaseID(kv.Lease)]
}

// grant makes an etcd lease.
func (s *Store) grant(ctx context.Context) (clientv3.LeaseID, error) {
	l, err := s.client.Grant(ctx, int64(s.cfg.TTL/time.Second))
	if err != nil {
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wrote[l.ID] = true
	return l.ID, nil
}

// Create implements [flannel.KV].
func (s *Store) Create(ctx context.Context, key string, value []byte) (flannel.Record, error) {
	short, cancel := s.call(ctx)
	defer cancel()
	id, err := s.grant(short)
	if err != nil {
		return flannel.Record{}, s.wrap("create "+key, err)
	}
	p := s.path(key)
	r, err := s.client.Txn(short).If(clientv3.Compare(clientv3.Version(p), "=", 0)).Then(clientv3.OpPut(p, string(value), clientv3.WithLease(id))).Commit()
	if err == nil && !r.Succeeded {
		err = flannel.ErrTaken
	}
	if err != nil {
		s.revoke(ctx, id) // and the key, if it was written
		return flannel.Record{}, s.wrap("create "+key, err)
	}
	n := r.Header.Revision
	return flannel.Record{Key: key, Value: value, Created: n, Revision: n, Expires: true, Ours: true}, nil
}

// Update implements [flannel.KV].
func (s *Store) Update(ctx context.Context, r flannel.Record, value []byte) (flannel.Record, error) {
	ctx, cancel := s.call(ctx)
	defer cancel()
	now, is, err := s.put(ctx, r, value)
	if err == nil && is != nil { // perhaps written by a call that got no answer
		if x := s.record(is); x.Ours && bytes.Equal(x.Value, value) {
			now, is, err = s.put(ctx, x, value)
		}
	}
	if err == nil && is != nil {
		err = flannel.ErrLost
	}
	if err != nil {
		return flannel.Record{}, s.wrap("update "+r.Key, err)
	}
	return now, nil
}

const maxRevision = math.MaxInt64

// none is what put returns of a key that is not there.
var none = new(mvccpb.KeyValue)

// put writes a key if it has the revision of r, or else returns what is there. An error leaves the new etcd lease to expire:
// the key may have it.
func (s *Store) put(ctx context.Context, r flannel.Record, value []byte) (now flannel.Record, is *mvccpb.KeyValue, err error) {
	var id clientv3.LeaseID
	var opts []clientv3.OpOption
	if r.Expires {
		if id, err = s.grant(ctx); err != nil {
			return now, nil, err
		}
		opts = append(opts, clientv3.WithLease(id))
	}
	setFixed := func(n int64) {
		if !r.Expires {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.fixed[r.Key] = n
		}
	}
	setFixed(maxRevision)
	p := s.path(r.Key)
	x, err := s.client.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(p), "=", r.Revision)).
		Then(clientv3.OpPut(p, string(value), append(opts, clientv3.WithPrevKV())...)).Else(clientv3.OpGet(p)).Commit()
	if err != nil {
		return now, nil, err
	}
	if !x.Succeeded {
		if id != 0 {
			s.revoke(ctx, id)
		}
		if kvs := x.Responses[0].GetResponseRange().Kvs; len(kvs) > 0 {
			return now, kvs[0], nil
		}
		return now, none, nil
	}
	old := clientv3.LeaseID(x.Responses[0].GetResponsePut().PrevKv.GetLease())
	setFixed(x.Header.Revision)
	s.mu.Lock()
	mine := s.wrote[old]
	s.mu.Unlock()
	if mine { // no key has it any longer: one key has one lease
		s.revoke(ctx, old)
	}
	r.Value, r.Revision, r.Ours = value, x.Header.Revision, true
	return r, nil, nil
}

// Delete implements [flannel.KV].
func (s *Store) Delete(ctx context.Context, r flannel.Record) error {
	ctx, cancel := s.call(ctx)
	defer cancel()
	p := s.path(r.Key)
	x, err := s.client.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(p), "=", r.Revision)).
		Then(clientv3.OpDelete(p, clientv3.WithPrevKV())).Commit()
	if err == nil && !x.Succeeded {
		err = flannel.ErrLost
	}
	if err != nil {
		return s.wrap("delete "+r.Key, err)
	}
	for _, kv := range x.Responses[0].GetResponseDeleteRange().PrevKvs {
		if id := clientv3.LeaseID(kv.Lease); id != 0 && s.ours(r.Key, kv) {
			s.revoke(ctx, id)
		}
	}
	return nil
}
