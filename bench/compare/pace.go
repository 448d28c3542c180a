package main

import (
	"time"
)

// burst is the most packets that are sent, or read, with one system call.
const burst = 64

// sent is what a sender counted.
type sent struct {
	Sent    uint64
	Errors  uint64 // of system calls
	Seconds float64
}

const (
	paceStep = 250 * time.Microsecond // between bursts, while they are not above the most
	paceDebt = 2 * time.Millisecond   // what a sender that was held up makes good
)

// A pace says when to send how much, so that it is pps packets a second in small bursts.
type pace struct {
	pps   float64
	ahead float64 // packets that were sent, or forgiven
}

// due returns how many packets are to be sent after a time, or 0 and how long to wait
// until there are some.
func (p *pace) due(after time.Duration) (n int, wait time.Duration) {
	owed := p.pps*after.Seconds() - p.ahead
	if most := max(burst, p.pps*paceDebt.Seconds()); owed > most {
		p.ahead += owed - most
		owed = most
	}
	least := min(max(1, p.pps*paceStep.Seconds()), burst)
	if owed < least {
		return 0, time.Duration((least-owed)/p.pps*1e9) + 1
	}
	return min(int(owed), burst), 0
}

// went takes note of packets that were sent.
func (p *pace) went(n int) { p.ahead += float64(n) }
