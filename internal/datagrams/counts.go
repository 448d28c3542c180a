package datagrams

import (
	"sync/atomic"

	"github.com/vxswitch/vxswitch/frame"
)

// Counts has the fields of underlay.Stats, where they are documented.
type Counts struct {
	RxDatagrams uint64
	RxRuns      uint64
	RxSegments  uint64
	RxTruncated uint64
	RxOverflow  uint64
	RxErrors    uint64

	TxDatagrams uint64
	TxLost      [frame.NumReasons]uint64
	TxRuns      uint64
	TxSegments  uint64
	TxCalls     uint64
	TxRetries   uint64

	Errors struct{ Refused, Unreachable, TooBig, Prohibited, Other uint64 }

	RecvBuffer, SendBuffer int
}

// Buffers notes the sizes of a socket's buffers, 0 for none. Counts keeps the smallest.
func (c *Counts) Buffers(recv, send int) {
	c.RecvBuffer, c.SendBuffer = smaller(c.RecvBuffer, recv), smaller(c.SendBuffer, send)
}

func smaller(a, b int) int {
	if a == 0 || b == 0 {
		return a + b
	}
	return min(a, b)
}

// Lost counts lost datagrams by reason.
type Lost [frame.NumReasons]atomic.Uint64

// AddTo adds to the counts.
func (l *Lost) AddTo(c *Counts) {
	for i := range l {
		c.TxLost[i] += l[i].Load()
	}
}

// Errors counts ICMP errors about datagrams sent earlier.
type Errors struct{ Refused, Unreachable, TooBig, Prohibited, Other atomic.Uint64 }

// AddTo adds to the counts.
func (e *Errors) AddTo(c *Counts) {
	c.Errors.Refused += e.Refused.Load()
	c.Errors.Unreachable += e.Unreachable.Load()
	c.Errors.TooBig += e.TooBig.Load()
	c.Errors.Prohibited += e.Prohibited.Load()
	c.Errors.Other += e.Other.Load()
}

// Rx counts what a reader receives.
type Rx struct{ Datagrams, Runs, Segments, Truncated, Errors atomic.Uint64 }

// AddTo adds to the counts.
func (r *Rx) AddTo(c *Counts) {
	c.RxDatagrams += r.Datagrams.Load()
	c.RxRuns += r.Runs.Load()
	c.RxSegments += r.Segments.Load()
	c.RxTruncated += r.Truncated.Load()
	c.RxErrors += r.Errors.Load()
}

// Sum counts what one Send does.
type Sum struct{ Datagrams, Runs, Segments, Calls, Retries uint64 }

// Sent counts a message of n datagrams.
func (s *Sum) Sent(n int) {
	s.Datagrams += uint64(n)
	if n > 1 {
		s.Runs++
		s.Segments += uint64(n)
	}
}

// Tx counts what a sender does. Each Send adds to it once.
type Tx struct {
	datagrams, runs, segments, calls, retries atomic.Uint64
	Lost                                      Lost
}

// Add adds the counts of a Send and clears them.
func (t *Tx) Add(s *Sum) {
	t.datagrams.Add(s.Datagrams)
	t.calls.Add(s.Calls)
	if s.Runs > 0 {
		t.runs.Add(s.Runs)
		t.segments.Add(s.Segments)
	}
	if s.Retries > 0 {
		t.retries.Add(s.Retries)
	}
	*s = Sum{}
}

// AddTo adds to the counts.
func (t *Tx) AddTo(c *Counts) {
	c.TxDatagrams += t.datagrams.Load()
	c.TxRuns += t.runs.Load()
	c.TxSegments += t.segments.Load()
	c.TxCalls += t.calls.Load()
	c.TxRetries += t.retries.Load()
	t.Lost.AddTo(c)
}
