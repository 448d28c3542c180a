package flannel

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"
)

// A Memory is a store in memory, for tests and for programs that distribute leases by other means. [Memory.KV] is the view
// of one node.
//
//	m := flannel.NewMemory(`{"Network": "10.230.0.0/16", "Backend": {"Type": "vxlan"}}`)
//	store := &flannel.Registry{KV: m.KV()}
type Memory struct {
	TTL time.Duration // of leases that are written from now on; 0 = DefaultTTL. Set it before the first use

	mu       sync.Mutex
	config   []byte
	err      error // of all calls; see Fail
	revision int64
	clients  int
	keys     map[string]*memoryKey
	log      []memoryEvent // the newest last, with revisions without a gap
	changed  chan struct{} // closed at the next change
}

type memoryKey struct {
	Record
	by     int // the client of the last change
	expiry *time.Timer
}

type memoryEvent struct {
	Record // without a value if it is deleted
	by     int
	gone   bool
}

// history is how many events a Memory keeps for those who are slow to watch.
const history = 1 << 16

// NewMemory makes a store with a network, "" for none yet.
func NewMemory(network string) *Memory {
	m := &Memory{keys: map[string]*memoryKey{}, changed: make(chan struct{})}
	m.SetNetwork(network)
	return m
}

// SetNetwork changes the network, for nodes that start later.
func (m *Memory) SetNetwork(network string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.config = nil; network != "" {
		m.config = []byte(network)
	}
}

// Put writes a key as a stranger does, for d, or for ever if d is 0.
func (m *Memory) Put(key string, value []byte, d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.put(key, value, d, 0)
}

// Remove removes a key as a stranger does.
func (m *Memory) Remove(key string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.remove(key, 0)
}

// Compact forgets what has happened: who watches and has not seen it yet must begin anew.
func (m *Memory) Compact() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.log = nil
	m.tell()
}

// Fail has all calls return err from now on, and ends those of Watch; nil ends that. Keys still expire.
func (m *Memory) Fail(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.err = err
	m.tell()
}

// Close stops the timers of the keys. All calls return [net.ErrClosed].
func (m *Memory) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, k := range m.keys {
		k.stop()
	}
	m.keys = nil
	m.err = net.ErrClosed
	m.tell()
	return nil
}

func (k *memoryKey) stop() {
	if k.expiry != nil {
		k.expiry.Stop()
	}
}

// tell wakes those who watch. m.mu is held.
func (m *Memory) tell() {
	close(m.changed)
	m.changed = make(chan struct{})
}

func (m *Memory) put(key string, value []byte, d time.Duration, by int) Record {
	if m.keys == nil { // closed
		return Record{}
	}
	m.revision++
	old := m.keys[key]
	k := &memoryKey{Record: Record{Key: key, Value: bytes.Clone(value), Created: m.revision, Revision: m.revision, Expires: d > 0}, by: by}
	if old != nil {
		old.stop()
		k.Created = old.Created
	}
	if d > 0 {
		k.expiry = time.AfterFunc(d, func() {
			m.mu.Lock()
			defer m.mu.Unlock()
			if m.keys[key] == k {
				m.remove(key, 0)
			}
		})
	}
	m.keys[key] = k
	m.note(memoryEvent{Record: k.Record, by: by})
	return k.Record
}

func (m *Memory) remove(key string, by int) {
	k := m.keys[key]
	if k == nil {
		return
	}
	k.stop()
	delete(m.keys, key)
	m.revision++
	m.note(memoryEvent{Record: Record{Key: key, Revision: m.revision}, by: by, gone: true})
}

func (m *Memory) note(e memoryEvent) {
	if m.log = append(m.log, e); len(m.log) > 2*history {
		m.log = slices.Clone(m.log[len(m.log)-history:])
	}
	m.tell()
}

// KV returns the view of one more node.
func (m *Memory) KV() KV {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.clients++
	return &memoryKV{m, m.clients}
}

type memoryKV struct {
	m  *Memory
	id int
}

// lock locks the store, unless it fails.
func (c *memoryKV) lock(ctx context.Context) (unlock func(), err error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("flannel: memory: %w", err)
	}
	c.m.mu.Lock()
	if err := c.m.err; err != nil {
		c.m.mu.Unlock()
		return nil, fmt.Errorf("flannel: memory: %w", err)
	}
	return c.m.mu.Unlock, nil
}

// ours returns a record of the store, which a client has written last, as c sees it.
func (c *memoryKV) ours(r Record, by int) Record {
	r.Value, r.Ours = bytes.Clone(r.Value), by == c.id
	return r
}

// Config implements [KV].
func (c *memoryKV) Config(ctx context.Context) ([]byte, error) {
	unlock, err := c.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if c.m.config == nil {
		return nil, fmt.Errorf("flannel: memory: %w", ErrNoNetwork)
	}
	return bytes.Clone(c.m.config), nil
}

// List implements [KV].
func (c *memoryKV) List(ctx context.Context) ([]Record, error) {
	list, _, err := c.list(ctx)
	return list, err
}

func (c *memoryKV) list(ctx context.Context) (list []Record, revision int64, err error) {
	unlock, err := c.lock(ctx)
	if err != nil {
		return nil, 0, err
	}
	defer unlock()
	for _, k := range c.m.keys {
		list = append(list, c.ours(k.Record, k.by))
	}
	slices.SortFunc(list, func(a, b Record) int { return cmp.Compare(a.Key, b.Key) })
	return list, c.m.revision, nil
}

// Create implements [KV].
func (c *memoryKV) Create(ctx context.Context, key string, value []byte) (Record, error) {
	unlock, err := c.lock(ctx)
	if err != nil {
		return Record{}, err
	}
	defer unlock()
	if c.m.keys[key] != nil {
		return Record{}, fmt.Errorf("flannel: memory: create %s: %w", key, ErrTaken)
	}
	return c.ours(c.m.put(key, value, c.TTL(), c.id), c.id), nil
}

// Update implements [KV].
func (c *memoryKV) Update(ctx context.Context, r Record, value []byte) (Record, error) {
	unlock, err := c.lock(ctx)
	if err != nil {
		return Record{}, err
	}
	defer unlock()
	k := c.m.keys[r.Key]
	if k == nil || k.Revision != r.Revision {
		return Record{}, fmt.Errorf("flannel: memory: update %s: %w", r.Key, ErrLost)
	}
	d := time.Duration(0)
	if k.Expires {
		d = c.TTL()
	}
	return c.ours(c.m.put(r.Key, value, d, c.id), c.id), nil
}

// Delete implements [KV].
func (c *memoryKV) Delete(ctx context.Context, r Record) error {
	unlock, err := c.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if k := c.m.keys[r.Key]; k == nil || k.Revision != r.Revision {
		return fmt.Errorf("flannel: memory: delete %s: %w", r.Key, ErrLost)
	}
	c.m.remove(r.Key, c.id)
	return nil
}

// TTL implements [KV].
func (c *memoryKV) TTL() time.Duration { return cmp.Or(c.m.TTL, DefaultTTL) }

var errCompacted = errors.New("the events that come next are forgotten")

// Watch implements [KV].
func (c *memoryKV) Watch(ctx context.Context, f func(Change)) error {
	list, seen, err := c.list(ctx)
	if err != nil {
		return err
	}
	f(Change{Snapshot: true, Set: list})
	for {
		change, now, changed, err := c.since(ctx, seen)
		if err != nil {
			return err
		}
		if seen = now; len(change.Set)+len(change.Deleted) > 0 {
			f(change)
			continue
		}
		select {
		case <-ctx.Done():
		case <-changed:
		}
	}
}

// since returns what has happened since a revision. Of several changes of a key, the last is there.
func (c *memoryKV) since(ctx context.Context, seen int64) (x Change, now int64, changed chan struct{}, err error) {
	unlock, err := c.lock(ctx)
	if err != nil {
		return x, 0, nil, err
	}
	defer unlock()
	m := c.m
	if m.revision-seen > int64(len(m.log)) {
		return x, 0, nil, fmt.Errorf("flannel: memory: watch: %w", errCompacted)
	}
	last := map[string]bool{}
	for _, e := range slices.Backward(m.log[len(m.log)-int(m.revision-seen):]) {
		if last[e.Key] {
			continue
		}
		if last[e.Key] = true; e.gone {
			x.Deleted = append(x.Deleted, e.Key)
		} else {
			x.Set = append(x.Set, c.ours(e.Record, e.by))
		}
	}
	return x, m.revision, m.changed, nil
}
