package arp

import (
	"net/netip"
	"sync/atomic"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/mix"
)

// An Adjacency is a neighbour as routing needs it, in one word; 0 means there is none.
type Adjacency uint64

// newAdjacency returns the Adjacency of a MAC; remote means that it is behind a tunnel.
func newAdjacency(mac frame.MAC, remote bool) Adjacency {
	h := Adjacency(mac.Uint64()) | present
	if remote {
		h |= viaTunnel
	}
	return h
}

const (
	viaTunnel = 1 << 48
	present   = 1 << 49
)

// MAC returns the neighbour's MAC as [frame.MAC.Uint64] does.
func (h Adjacency) MAC() uint64 { return uint64(h) & (1<<48 - 1) }

// Remote reports whether the neighbour is behind a tunnel.
func (h Adjacency) Remote() bool { return h&viaTunnel != 0 }

// Resolve returns a neighbour's Adjacency, 0 if it is unknown or a frozen duplicate. It is
// wait-free: the gateway calls it for every packet it routes.
func (t *Table) Resolve(ip netip.Addr) Adjacency { return t.adjacent.find(t.adjacent.key(ip)) }

// show has Resolve return e. t.mu is held.
func (t *Table) show(e *Entry) {
	if e.State == Duplicate {
		t.hide(e.IP)
		return
	}
	is := newAdjacency(e.MAC, e.From.Peer() != 0)
	t.replaced(t.adjacent.set(t.adjacent.key(e.IP), is), is)
}

// hide has Resolve return 0 for an address. t.mu is held.
func (t *Table) hide(ip netip.Addr) { t.replaced(t.adjacent.delete(t.adjacent.key(ip)), 0) }

// replaced tells of another value of an Adjacency. t.mu is held.
func (t *Table) replaced(was, is Adjacency) {
	if was != 0 && was != is {
		t.followers.Tell(frame.MACFrom(was.MAC()))
	}
}

// Follow has f called after each change of what Resolve returns for an address that it knew, with the MAC that it returned. It is for
// those who keep answers: an answer holds until f is called for its MAC. f is called with the table locked: it must neither wait nor
// call the table. Stop ends the calls.
func (t *Table) Follow(f func(was frame.MAC)) (stop func()) { return t.followers.Add(f) }

// adjacencies holds what Resolve returns: an array with open addressing, two words a row, for
// lock-free readers and one writer at a time. The key of a row is a secret 64-bit hash of its
// address. Two addresses with the same hash, one chance in 10^12 for a table of a million,
// would share a MAC.
type adjacencies struct {
	seed mix.Key
	arr  atomic.Pointer[[]slot]
	used int // slots that are not empty, deleted ones included
	live int
}

type slot struct{ key, val atomic.Uint64 } // val: an Adjacency, 0 = deleted

const minSlots = 16

func (h *adjacencies) init() {
	h.seed = mix.New()
	h.arr.Store(new(make([]slot, minSlots)))
}

// key hashes an address. It never returns 0, which marks an empty slot.
func (h *adjacencies) key(ip netip.Addr) uint64 {
	b := ip.As16()
	return h.seed.HashAddr(&b) | 1<<63
}

func (h *adjacencies) find(key uint64) Adjacency {
	a := *h.arr.Load()
	for i := key; ; i++ {
		s := &a[i&uint64(len(a)-1)]
		switch s.key.Load() {
		case key:
			return Adjacency(s.val.Load())
		case 0:
			return 0
		}
	}
}

// slot returns the slot of key, or the empty one it would take. A slot keeps its key until
// rebuild replaces the array, so a reader never finds another key's value.
func (h *adjacencies) slot(a []slot, key uint64) *slot {
	for i := key; ; i++ {
		s := &a[i&uint64(len(a)-1)]
		if k := s.key.Load(); k == key || k == 0 {
			return s
		}
	}
}

// set returns the value that it replaces, as delete does.
func (h *adjacencies) set(key uint64, x Adjacency) Adjacency {
	a := *h.arr.Load()
	s := h.slot(a, key)
	if s.key.Load() == 0 {
		if (h.used+1)*4 > len(a)*3 {
			a = h.rebuild()
			s = h.slot(a, key)
		}
		h.used++
	}
	was := s.val.Swap(uint64(x))
	if was == 0 {
		h.live++
	}
	s.key.Store(key)
	return Adjacency(was)
}

func (h *adjacencies) delete(key uint64) Adjacency {
	was := h.slot(*h.arr.Load(), key).val.Swap(0)
	if was != 0 {
		h.live--
	}
	return Adjacency(was)
}

// rebuild makes an array with room and without deleted rows.
func (h *adjacencies) rebuild() []slot {
	size := minSlots
	for size < 2*(h.live+1) {
		size *= 2
	}
	a := make([]slot, size)
	h.used = 0
	old := *h.arr.Load()
	for i := range old {
		if v := old[i].val.Load(); v != 0 {
			s := h.slot(a, old[i].key.Load())
			s.key.Store(old[i].key.Load())
			s.val.Store(v)
			h.used++
		}
	}
	h.arr.Store(&a)
	return a
}
