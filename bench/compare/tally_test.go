package main

import (
	"encoding/binary"
	"testing"
	"time"
)

// numbered is the payload of a packet.
func numbered(n uint64, size int) []byte {
	return binary.BigEndian.AppendUint64(make([]byte, 0, size), n)[:size]
}

func TestTally(t *testing.T) {
	for _, c := range []struct {
		name    string
		numbers []uint64
		sent    uint64 // 0: the sender did not say
		want    received
	}{
		{"none", nil, 0, received{}},
		{"all of them lost", nil, 7, received{Lost: 7}},
		{"in order", []uint64{0, 1, 2}, 3, received{Received: 3}},
		{"a hole", []uint64{0, 3, 4}, 5, received{Received: 3, Lost: 2}},
		{"the end is lost", []uint64{0, 1}, 10, received{Received: 2, Lost: 8}},
		{"the end is lost, unnoticed", []uint64{1, 2}, 0, received{Received: 2, Lost: 1}},
		{"one late", []uint64{0, 2, 3, 1, 4}, 5, received{Received: 5, Reordered: 1}},
		{"two late", []uint64{3, 0, 1, 4}, 5, received{Received: 4, Reordered: 2, Lost: 1}},
		{"one twice", []uint64{0, 1, 1, 2}, 3, received{Received: 4}},
	} {
		var y tally
		now := time.Unix(100, 0)
		for _, n := range c.numbers {
			y.arrive(numbered(n, 20), now)
			now = now.Add(time.Second)
		}
		if c.sent > 0 {
			b := make([]byte, lastSize)
			putLast(b, c.sent)
			y.arrive(b, now.Add(time.Hour))
		}
		c.want.Bytes = 20 * c.want.Received
		c.want.Seconds = float64(max(1, len(c.numbers)) - 1)
		if got := y.result(); got != c.want || y.over != (c.sent > 0) {
			t.Errorf("%s: %+v (over %v), want %+v", c.name, got, y.over, c.want)
		}
	}
}

// What is none of the sender's packets changes nothing.
func TestTallyForeign(t *testing.T) {
	var y tally
	for _, b := range [][]byte{nil, make([]byte, numberSize-1), numbered(last, numberSize)} {
		y.arrive(b, time.Now())
	}
	if y.over || y.result() != (received{}) {
		t.Errorf("%+v", y)
	}
}
