package main

import (
	"encoding/binary"
	"time"
)

// The payload of a packet begins with its number, counted from 0. The sender ends with
// packets of the number last, in which the number of those before follows.
const (
	numberSize = 8
	last       = ^uint64(0)
	lastSize   = 2 * numberSize
)

// putLast makes the packet that says that sent ones came before it.
func putLast(b []byte, sent uint64) {
	binary.BigEndian.PutUint64(b, last)
	binary.BigEndian.PutUint64(b[numberSize:], sent)
}

// received is what a receiver counted.
type received struct {
	Received, Bytes uint64
	Lost            uint64  // of those up to the highest number, or of all if the sender said how many they were
	Reordered       uint64  // of the received: with a lower number than one before
	Seconds         float64 // from the first to the last
}

// A tally counts packets by their numbers. A packet that came twice hides a loss.
type tally struct {
	received
	begin, end time.Time
	next       uint64 // one above the highest number
	sent       uint64 // by the sender's word
	over       bool   // the sender has said so
}

// arrive takes the payload of a packet. What is too short for a number does not count.
func (t *tally) arrive(b []byte, now time.Time) {
	if len(b) < numberSize {
		return
	}
	n := binary.BigEndian.Uint64(b)
	if n == last {
		if len(b) >= lastSize {
			t.sent, t.over = binary.BigEndian.Uint64(b[numberSize:]), true
		}
		return
	}
	if t.Received == 0 {
		t.begin = now
	}
	t.end = now
	t.Received++
	t.Bytes += uint64(len(b))
	switch {
	case n >= t.next:
		t.next = n + 1
	case n < t.next-1:
		t.Reordered++
	}
}

// result is the count so far.
func (t *tally) result() received {
	r := t.received
	if all := max(t.next, t.sent); all > r.Received {
		r.Lost = all - r.Received
	}
	r.Seconds = t.end.Sub(t.begin).Seconds()
	return r
}
