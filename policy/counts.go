package policy

import (
	"sync/atomic"

	"github.com/vxswitch/vxswitch/internal/perworker"
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

// counts is what one worker has counted. Counters never move, so that nothing is lost while rules
// change.
type counts struct {
	events [numEvents]perworker.Counter
	rules  [maxCounters / chunk]atomic.Pointer[[chunk]tally]
}

type tally struct{ packets, bytes perworker.Counter }

// rule counts a frame under a counter.
func (c *counts) rule(n uint16, bytes, worker int) {
	p := c.rules[n/chunk].Load()
	if p == nil {
		c.rules[n/chunk].CompareAndSwap(nil, new([chunk]tally))
		p = c.rules[n/chunk].Load()
	}
	p[n%chunk].packets.Count(1, worker)
	p[n%chunk].bytes.Count(uint64(bytes), worker)
}

// sum returns what all workers have counted under a counter.
func (p *Policy) sum(n uint16) (packets, bytes uint64) {
	for _, c := range p.counts.All() {
		if t := c.rules[n/chunk].Load(); t != nil {
			packets += t[n%chunk].packets.Load()
			bytes += t[n%chunk].bytes.Load()
		}
	}
	return packets, bytes
}

func (p *Policy) event(e event) (n uint64) {
	for _, c := range p.counts.All() {
		n += c.events[e].Load()
	}
	return n
}
