package afpacket

import (
	"container/list"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/datagrams"
	"github.com/vxswitch/vxswitch/internal/index"
	"github.com/vxswitch/vxswitch/internal/mix"
	"github.com/vxswitch/vxswitch/internal/neighbour"
)

// Next hops are resolved by ARP and neighbour discovery, with fewer states than RFC 1122, section 2.3.2, and
// RFC 4861, section 7.3, have:
//
//	           asked three times            in use for 30 to 60 s
//	+-----------> failed     +--------- known ---------> asked again, itself
//	|               | in use |            ^                |        | no answer
//	| no answer     v        | answer     |     answer     |        |
//	+----------- asking -----+            +----------------+        |
//	                ^-----------------------------------------------+
//
// A hop that is asked again is still used. Packets to others are dropped as Unresolved, except for the first
// few, which wait for the answer.
//
// Traffic to unused addresses fills the table. A new hop then replaces the oldest one without a MAC or, if there are
// few of these, one that was not used for a while, but never one that is known and in use. If too many bytes
// wait, the oldest are dropped: an answer takes a millisecond.
const (
	hopAsk      = time.Second      // between two questions
	hopRest     = 2 * time.Second  // failed for that long before it is asked again
	hopFresh    = 30 * time.Second // and as much again, at random
	hopIdle     = 20               // times of that without use, and it is forgotten
	maxHops     = 1 << 16
	longAway    = 1000 * time.Hour
	hopResolved = 1 << 48 // in hop.mac: there is one, which frame.MACFrom does not look at
)

type hopState uint8

const (
	hopAsking hopState = iota
	hopKnown
	hopAgain
	hopFailed
)

// A hop is one next hop.
type hop struct {
	ip   hopKey
	mac  atomic.Uint64          // hopResolved and the MAC, or 0
	used atomic.Bool            // sent to since the last look
	shut atomic.Bool            // no packet may wait: it has failed, or is removed
	gone atomic.Bool            // removed: look it up again
	held neighbour.Wait[[]byte] // frames, without the destination MAC

	// Under hops.mu.
	state hopState
	tries int
	idle  int
	at    time.Time     // of the next event
	ready time.Time     // hopFailed: when it may be asked again
	asked *list.Element // of hops.unknown
}

// full reports whether no more packets may wait.
func (h *hop) full() bool { return h.shut.Load() || h.held.Len() >= neighbour.Held }

type hopKey [16]byte

// Hash implements [index.Key]. Strangers on the link can choose keys.
func (k hopKey) Hash(secret *mix.Key) uint64 {
	return secret.HashAddr((*[16]byte)(&k))
}

// hops is the table of next hops. Senders read it without a lock.
type hops struct {
	byIP index.Map[hopKey, *hop]
	kick chan struct{} // of capacity 1: wakes tend

	// ask sends a request to the hop's MAC, or with 0 to all; emit sends a frame that has waited. Both are
	// called with mu held.
	ask  func(ip hopKey, mac frame.MAC)
	emit func(b []byte)

	lost *datagrams.Lost // packets that were dropped while they waited

	mu   sync.Mutex
	all  map[*hop]struct{}
	most int // of all; maxHops
	held neighbour.Queue[[]byte]
	shut bool // by close

	unknown list.List // *hop: those without a MAC, oldest first
}

func newHops(ask func(hopKey, frame.MAC), emit func([]byte), lost *datagrams.Lost) *hops {
	return &hops{kick: make(chan struct{}, 1), ask: ask, emit: emit, lost: lost, all: make(map[*hop]struct{}), most: maxHops}
}

// use marks h as used, and wakes tend if it has no MAC.
func (t *hops) use(h *hop) {
	if !h.used.Load() && !h.used.Swap(true) && h.mac.Load() == 0 {
		t.wake()
	}
}

func (t *hops) wake() {
	select {
	case t.kick <- struct{}{}:
	default:
	}
}

// find returns the hop at an address, and requests the MAC of a new one. It returns nil if the table is full.
func (t *hops) find(ip hopKey, now time.Time) *hop {
	if h, ok := t.byIP.Load(ip); ok {
		return h
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if h, ok := t.byIP.Load(ip); ok {
		return h
	}
	if len(t.all) >= t.most && !t.giveWay() {
		return nil
	}
	h := &hop{ip: ip}
	t.begin(h, now)
	t.all[h] = struct{}{}
	t.byIP.Store(ip, h)
	t.wake()
	return h
}

// giveWay removes a hop: the oldest one without a MAC. If there are few of these, which had little time to
// answer, it prefers one that was not used for a while.
func (t *hops) giveWay() bool {
	if t.unknown.Len() < t.most/4 {
		if h := t.idle(); h != nil {
			t.forget(h)
			return true
		}
	}
	if e := t.unknown.Front(); e != nil {
		t.forget(e.Value.(*hop))
		return true
	}
	return false
}

// idle returns a hop that is known and idle, or nil if it finds none among a few.
func (t *hops) idle() *hop {
	const few = 64
	n := 0
	for h := range t.all {
		if h.idle > 0 && !h.used.Load() {
			return h
		}
		if n++; n == few {
			break
		}
	}
	return nil
}

// begin starts to resolve a hop.
func (t *hops) begin(h *hop, now time.Time) {
	h.state, h.tries, h.idle = hopAsking, 1, 0
	h.used.Store(false)
	h.shut.Store(false)
	t.known(h)
	h.asked = t.unknown.PushBack(h)
	t.question(h, now)
}

// question sends a request: to all, or if the hop has a MAC, to that.
func (t *hops) question(h *hop, now time.Time) {
	h.at = now.Add(hopAsk)
	t.ask(h.ip, frame.MACFrom(h.mac.Load()))
}

// known removes a hop from those without a MAC.
func (t *hops) known(h *hop) {
	if h.asked != nil {
		t.unknown.Remove(h.asked)
		h.asked = nil
	}
}

// hold lets a frame without destination MAC wait for a hop. It returns false if there is no room, or if the hop
// has a MAC by now.
func (t *hops) hold(h *hop, b []byte) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.shut || h.mac.Load() != 0 || h.gone.Load() || h.state != hopAsking {
		return false
	}
	gone, ok := t.held.Room(&h.held, 0, len(b), neighbour.Held, neighbour.Queued)
	t.lost[frame.Unresolved].Add(uint64(gone))
	if ok {
		t.held.Add(&h.held, 0, b, len(b))
	}
	return ok
}

// learn updates a hop from a message. It adds none.
func (t *hops) learn(n *notice, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	h, ok := t.byIP.Load(n.ip)
	if !ok {
		return
	}
	old, v := h.mac.Load(), n.mac.Uint64()|hopResolved
	switch {
	case !n.told || v == old:
		if n.sure && old != 0 {
			t.fresh(h, now)
		}
		return
	case old != 0 && !n.change: // RFC 4861, section 7.2.5: probe it when it is used
		h.at = now
		t.wake()
		return
	case n.sure:
		t.fresh(h, now)
	default: // not requested: accept it, and probe it when it is used
		h.state, h.at, h.idle = hopKnown, now, 0
	}
	for _, b := range t.held.Take(&h.held) { // before senders see the MAC
		copy(b, n.mac[:])
		t.emit(b)
	}
	t.known(h)
	h.mac.Store(v)
	t.wake()
}

// fresh records that a hop has answered.
func (t *hops) fresh(h *hop, now time.Time) {
	h.state, h.at, h.idle = hopKnown, now.Add(hopFresh+rand.N(hopFresh)), 0
}

// lose drops the packets that wait for h, and lets no more wait.
func (t *hops) lose(h *hop) {
	t.lost[frame.Unresolved].Add(uint64(len(t.held.Take(&h.held))))
	h.shut.Store(true)
}

// close drops all packets that wait, and lets no more wait.
func (t *hops) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.shut = true
	for h := range t.all {
		t.lose(h)
	}
}

// tend does what is due, and returns when to call it again.
func (t *hops) tend(now time.Time) time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	next := now.Add(longAway)
	for h := range t.all {
		at := h.at
		if h.state == hopFailed && h.used.Load() && h.ready.Before(at) {
			at = h.ready
		}
		if !at.After(now) {
			t.due(h, now)
			at = h.at
		}
		if !h.gone.Load() && at.Before(next) {
			next = at
		}
	}
	return next
}

// due handles the next event of h.
func (t *hops) due(h *hop, now time.Time) {
	switch h.state {
	case hopAsking, hopAgain:
		switch {
		case h.tries < neighbour.Tries:
			h.tries++
			t.question(h, now)
		case h.state == hopAgain:
			h.mac.Store(0)
			t.begin(h, now)
		default:
			t.lose(h)
			h.state, h.ready, h.at = hopFailed, now.Add(hopRest), now.Add(hopFresh)
			h.used.Store(false)
		}
	case hopFailed:
		if h.used.Load() {
			t.begin(h, now)
			return
		}
		t.rest(h, now)
	case hopKnown:
		if h.used.Swap(false) {
			h.state, h.tries, h.idle = hopAgain, 1, 0
			t.question(h, now)
			return
		}
		t.rest(h, now)
	}
}

// rest waits for a hop that is not used, and finally removes it.
func (t *hops) rest(h *hop, now time.Time) {
	h.at = now.Add(hopFresh)
	if h.idle++; h.idle < hopIdle {
		return
	}
	t.forget(h)
}

func (t *hops) forget(h *hop) {
	h.gone.Store(true)
	h.mac.Store(0)
	t.lose(h)
	t.known(h)
	t.byIP.Delete(h.ip)
	delete(t.all, h)
}
