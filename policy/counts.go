package policy

import (
	"sync/atomic"

	"github.com/vxswitch/vxswitch/internal/perworker"
)

// An event is counted in addition to rules.
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

// chunk is the number of counters allocated at once.
const chunk = 64

// maxCounters bounds the counters: of the rules, of the rules that replace them, and of frames
// that no rule matches.
const maxCounters = 2*MaxRules + 2*chunk

// counts are one worker's counters. They never move, so a change of rules loses no count.
type counts struct {
	events [numEvents]perworker.Counter
	rules  [maxCounters / chunk]atomic.Pointer[[chunk]tally]
}

type tally struct{ packets, bytes perworker.Counter }

// add counts packets on counter n.
func (c *counts) add(n uint16, packets, bytes uint64, worker int) {
	p := c.rules[n/chunk].Load()
	if p == nil {
		c.rules[n/chunk].CompareAndSwap(nil, new([chunk]tally))
		p = c.rules[n/chunk].Load()
	}
	p[n%chunk].packets.Count(packets, worker)
	p[n%chunk].bytes.Count(bytes, worker)
}

// sum returns the sum of counter n over all workers.
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
