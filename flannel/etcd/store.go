package etcd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"path"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/vxswitch/vxswitch/flannel"
)

// A Store is the [flannel.KV] in etcd.
type Store struct {
	cfg    Config
	client *clientv3.Client

	mu     sync.Mutex
	wrote  map[clientv3.LeaseID]bool // all etcd leases of this store, the revoked ones too: what they were for may still be told
	fixed  map[string]int64          // reservations that this store has written, and their revisions; while one is not known, maxRevision
	closed bool
	why    string // there was no connection the last time that there was none, "" after a call that had one
}

var _ flannel.KV = (*Store)(nil)

// again says when to connect again: where the default waits for two minutes in the end, nodes would follow leases late.
var again = backoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 2 * time.Second}

// window is how much may be under way, in bytes: 5,000 leases. With a window of its own choice gRPC measures the connection, with a
// ping for each event of a watch.
const window = 1 << 20

// New makes a store. It connects when it is used, but with a Username at once.
func New(cfg *Config) (*Store, error) {
	if cfg == nil {
		cfg = new(Config)
	}
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	c := cfg.full()
	t, err := c.tls()
	if err != nil {
		return nil, err
	}
	s := &Store{cfg: c, wrote: map[clientv3.LeaseID]bool{}, fixed: map[string]int64{}}
	s.client, err = clientv3.New(clientv3.Config{
		Endpoints:            c.Endpoints,
		Username:             c.Username,
		Password:             c.Password,
		TLS:                  t,
		DialTimeout:          c.Timeout, // with a Username New asks for a token
		DialKeepAliveTime:    c.KeepAlive,
		DialKeepAliveTimeout: c.KeepAlive,
		Logger:               zap.NewNop(),
		DialOptions: []grpc.DialOption{grpc.WithConnectParams(grpc.ConnectParams{Backoff: again, MinConnectTimeout: c.Timeout}),
			grpc.WithInitialWindowSize(window), grpc.WithInitialConnWindowSize(window), grpc.WithChainUnaryInterceptor(s.hear)},
	})
	if err != nil {
		return nil, s.wrap("connect", err)
	}
	return s, nil
}

// hear notes why there is no connection for a call: etcd's client says no more than that time is up.
func (s *Store) hear(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, call grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	err := call(ctx, method, req, reply, cc, opts...)
	_, why, _ := strings.Cut(status.Convert(err).Message(), "latest balancer error: ")
	why = strings.TrimPrefix(why, "connection error: desc = ")
	if plain, err := strconv.Unquote(why); err == nil {
		why = plain
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil || why != "" { // else it may be one that nobody has tried to connect for
		s.why = why
	}
	return err
}

// Close ends all calls. The leases stay.
func (s *Store) Close() error {
	s.mu.Lock()
	closed := s.closed
	s.closed = true
	s.mu.Unlock()
	if closed {
		return nil
	}
	if err := s.client.Close(); err != nil && !errors.Is(err, context.Canceled) {
		return fmt.Errorf("etcd: %w", err)
	}
	return nil
}

// TTL implements [flannel.KV].
func (s *Store) TTL() time.Duration { return s.cfg.TTL }

func (s *Store) subnets() string        { return s.cfg.Prefix + "/subnets/" }
func (s *Store) path(key string) string { return s.subnets() + key }

// wrap says which call has failed.
func (s *Store) wrap(what string, err error) error {
	s.mu.Lock()
	closed, why := s.closed, s.why
	s.mu.Unlock()
	if closed {
		err = net.ErrClosed
	} else if errors.Is(err, context.DeadlineExceeded) || status.Code(err) == codes.DeadlineExceeded {
		if why != "" {
			why = ": " + why
		}
		err = fmt.Errorf("no answer from %s: %w%s", strings.Join(s.cfg.Endpoints, ", "), context.DeadlineExceeded, why)
	}
	return fmt.Errorf("etcd: %s: %w", what, err)
}

// call returns a context for one call.
func (s *Store) call(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, s.cfg.Timeout)
}

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

// revoke ends an etcd lease, and the key that has it. It is no error if that fails: the lease ends by itself.
func (s *Store) revoke(ctx context.Context, id clientv3.LeaseID) {
	ctx, cancel := s.call(context.WithoutCancel(ctx))
	defer cancel()
	s.client.Revoke(ctx, id)
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
