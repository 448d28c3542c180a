package etcd

import (
	"context"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// A Client reads any keys of etcd, for other control planes whose datastore it is. It writes those of Keep alone.
type Client struct{ conn }

// Dial makes a client whose calls end with ctx. It connects when it is used, but with a Username at once. Prefix and TTL of cfg have no use.
func Dial(ctx context.Context, cfg *Config) (*Client, error) {
	c := new(Client)
	if err := c.open(ctx, cfg); err != nil {
		return nil, err
	}
	return c, nil
}

// A Reader is told of keys and values. What it is passed is its own.
type Reader interface {
	Reset()                         // nothing is known; all there is follows
	Put(key string, value []byte)   // it is there, or has another value
	Delete(key string)              // it is gone
	Done(ctx context.Context) error // for now: what is known is as etcd had it at one moment; an error ends Follow
}

// page is how many keys are read at once.
const page = 200

// Follow tells r of all keys that begin with one of the prefixes, and then of each change, until ctx is done or something fails: when
// etcd or the way to it is lost, when a member has no leader, and when etcd has forgotten the changes since. To begin anew is
// what always helps.
func (c *Client) Follow(ctx context.Context, prefixes []string, r Reader) error {
	r.Reset()
	revision := int64(0)
	for _, p := range prefixes {
		var err error
		if revision, err = c.read(ctx, p, revision, r); err != nil {
			return err
		}
	}
	if err := r.Done(ctx); err != nil {
		return err
	}
	return c.follow(ctx, prefixes, revision, func(events []*clientv3.Event) error {
		if len(events) == 0 {
			return nil
		}
		for _, e := range events {
			if e.Type == clientv3.EventTypeDelete {
				r.Delete(string(e.Kv.Key))
			} else {
				r.Put(string(e.Kv.Key), e.Kv.Value)
			}
		}
		return r.Done(ctx)
	})
}

// read tells of the keys with a prefix as of a revision, 0 for now, which it returns.
func (c *Client) read(ctx context.Context, prefix string, revision int64, r Reader) (int64, error) {
	end := clientv3.GetPrefixRangeEnd(prefix)
	for from := prefix; ; {
		short, cancel := c.call(ctx)
		got, err := c.client.Get(short, from, clientv3.WithRange(end), clientv3.WithLimit(page), clientv3.WithRev(revision))
		cancel()
		if err != nil {
			return 0, c.wrap("list "+prefix, err)
		}
		if revision == 0 {
			revision = got.Header.Revision
		}
		for _, kv := range got.Kvs {
			r.Put(string(kv.Key), kv.Value)
			from = string(kv.Key) + "\x00"
		}
		if !got.More {
			return revision, nil
		}
	}
}

// Keep has a key in etcd for as long as it runs. When ctx is done it removes the key and returns nil. An error says that etcd or the way
// to it is lost, or somebody has ended the key's lease: the key goes by itself after a time to live, in full seconds, unless Keep is called
// again before.
func (c *Client) Keep(ctx context.Context, key string, value []byte, ttl time.Duration) error {
	id, err := c.lease(ctx, key, value, ttl)
	if err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return c.wrap("keep "+key, err)
	}
	tick := time.NewTicker(ttl / 3)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			c.revoke(ctx, id)
			return nil
		case <-tick.C:
		}
		short, cancel := c.call(ctx)
		_, err := c.client.KeepAliveOnce(short, id)
		cancel()
		if err != nil && ctx.Err() == nil {
			return c.wrap("keep "+key, err)
		}
	}
}

// lease writes a key that ends with an etcd lease.
func (c *Client) lease(ctx context.Context, key string, value []byte, ttl time.Duration) (clientv3.LeaseID, error) {
	short, cancel := c.call(ctx)
	defer cancel()
	l, err := c.client.Grant(short, int64(ttl/time.Second))
	if err != nil {
		return 0, err
	}
	if _, err = c.client.Put(short, key, string(value), clientv3.WithLease(l.ID)); err != nil {
		c.revoke(ctx, l.ID) // and the key, if it was written
	}
	return l.ID, err
}
