package policy

import (
	"slices"
	"sync"
	"sync/atomic"
)

// What is counted beside rules.
type event uint8

const (
	evMalformed event = iota
	evReplies
	evRelated
	evFragments
	evFull
	evOpened
	evEvicted
	evRevoked
	numEvents
)

// chunk is how many counters are allocated together.
const chunk = 64

// maxCounters bounds the numbers of counters: those of the rules there are, and of those
// that replace them, and of what no rule matches.
const maxCounters = 2*MaxRules + 2*chunk

// A lane is what one worker has counted. Its counters never move, so that nothing is lost
// while rules change.
type lane struct {
	events [numEvents]counter
	rules  [maxCounters / chunk]atomic.Pointer[[chunk]tally]
}

type tally struct{ packets, bytes counter }

// A counter of a lane is written by one worker; that of lane 0 by anybody.
type counter struct{ atomic.Uint64 }

func (c *counter) add(n uint64, worker int) {
	if worker == 0 {
		c.Add(n)
		return
	}
	c.Store(c.Load() + n)
}

// lanes are those of all workers.
type lanes struct {
	mu   sync.Mutex
	list atomic.Pointer[[]*lane]
}

// of returns that of a worker, whose numbers begin with 1; other goroutines have 0.
func (l *lanes) of(worker int) *lane {
	if p := l.list.Load(); p != nil && worker < len(*p) {
		return (*p)[worker]
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	var list []*lane
	if p := l.list.Load(); p != nil {
		list = slices.Clone(*p)
	}
	for len(list) <= worker {
		list = append(list, new(lane))
	}
	l.list.Store(&list)
	return list[worker]
}

// rule counts a frame under a counter.
func (l *lane) rule(n uint16, bytes, worker int) {
	c := l.rules[n/chunk].Load()
	if c == nil {
		l.rules[n/chunk].CompareAndSwap(nil, new([chunk]tally))
		c = l.rules[n/chunk].Load()
	}
	c[n%chunk].packets.add(1, worker)
	c[n%chunk].bytes.add(uint64(bytes), worker)
}

func (l *lanes) all() []*lane {
	if p := l.list.Load(); p != nil {
		return *p
	}
	return nil
}

// sum returns what all workers have counted under a counter.
func (l *lanes) sum(n uint16) (packets, bytes uint64) {
	for _, x := range l.all() {
		if c := x.rules[n/chunk].Load(); c != nil {
			packets += c[n%chunk].packets.Load()
			bytes += c[n%chunk].bytes.Load()
		}
	}
	return packets, bytes
}

func (l *lanes) event(e event) (n uint64) {
	for _, x := range l.all() {
		n += x.events[e].Load()
	}
	return n
}
