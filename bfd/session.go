package bfd

import (
	"math/bits"
	"math/rand/v2"
	"sync"
	"time"
)

const (
	never = time.Duration(1<<63 - 1)

	// grace is what a session is given beyond its detection time if the Speaker itself was late to look, for packets that
	// have come and were not read.
	grace = 20 * time.Millisecond
)

// A session is the state of RFC 5880, section 6.8.1. Times are those since the Speaker began.
type session struct {
	speaker *Speaker
	peer    Peer
	my      uint32 // discriminator
	srcPort uint16

	index int           // in the Speaker's heap, -1 if not there
	at    time.Duration // when the heap wakes it; of the Speaker's goroutine
	over  bool          // the last packet is sent; likewise
	next  *session      // in the list of those to be looked at; with due, under Speaker.dueMu
	due   bool

	mu      sync.Mutex // held for moments: nothing below calls anybody
	cfg     SessionConfig
	gone    bool
	left    chan struct{} // made by leave; closed when the last packet is sent
	state   State
	diag    Diag
	changed time.Duration

	heard  bool // a packet came within the detection time, or nothing was missed yet
	last   Control
	rxAt   time.Duration
	graced bool

	minTx, minRx time.Duration // as told to the peer
	tx, rx       time.Duration // in use: what makes packets rarer, or detection faster, waits for the end of the poll sequence
	poll, again  bool          // a poll sequence runs; another has to follow
	final        bool          // a packet with Final is owed
	urgent       bool          // a packet is owed because the state changed

	interval     time.Duration // the one that txNext was computed with
	txAt, txNext time.Duration // of packets sent periodically
	wakes        time.Duration // when the Speaker's goroutine looks next, as it was told

	status Status
	ever   bool          // it was Alive since it was enabled
	holdAt time.Duration // when it will be Alive, or never

	sent, failed, received uint64
	sendErr                error // of the last packet
	discarded              Counts
}

// newSession returns a session that sends its first packet within a second.
func newSession(s *Speaker, p Peer, cfg SessionConfig, now time.Duration) *session {
	x := &session{speaker: s, peer: p, index: -1, cfg: cfg, state: Down, changed: now, holdAt: never, wakes: never}
	x.last.State, x.last.MinRx = Down, time.Microsecond
	if cfg.AdminDown {
		x.state, x.diag = AdminDown, DiagAdminDown
	}
	x.retime()
	x.poll = false
	x.interval = x.txInterval()
	x.txNext = now + rand.N(slow)
	return x
}

// receive takes a packet that is for this session (RFC 5880, section 6.8.6, from "Set bfd.RemoteDiscr" on). It returns
// whether the Speaker has to look at the session sooner than it would.
func (x *session) receive(c *Control, now time.Duration) (sooner bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.gone {
		return false
	}
	x.last = *c
	if c.Final && x.poll {
		x.endPoll()
	}
	x.heard, x.graced, x.rxAt = true, false, now
	if x.state == AdminDown {
		x.discard(HeldDown)
		return x.wake(now) < x.wakes
	}
	x.received++
	x.speaker.received.Add(1)
	switch {
	case c.State == AdminDown:
		if x.state != Down {
			x.to(Down, NeighborDown, now)
		}
		x.report(Unknown, now) // not a failure: RFC 5882, section 3.2
	case x.state == Down && c.State == Down:
		x.to(Init, x.diag, now)
	case x.state == Down && c.State == Init, x.state == Init && c.State >= Init:
		x.to(Up, NoDiag, now)
	case x.state == Up && c.State == Down:
		x.to(Down, NeighborDown, now)
	}
	x.final = x.final || c.Poll
	x.reschedule(now)
	return x.wake(now) < x.wakes
}

func (x *session) discard(why Reason) {
	x.discarded[why]++
	x.speaker.discarded[why].Add(1)
}

// to changes the state.
func (x *session) to(s State, d Diag, now time.Duration) {
	was := x.state
	x.state, x.diag, x.changed, x.urgent = s, d, now, true
	x.retime()
	x.again = false
	x.holdAt = never
	switch {
	case s == Up && x.ever && x.cfg.Hold > 0:
		x.holdAt = now + x.cfg.Hold
	case s == Up:
		x.report(Alive, now)
	case s == AdminDown:
		x.report(Unknown, now)
		x.ever = false
	case was == Up && x.last.State != AdminDown:
		x.report(Dead, now)
	}
}

// report notes a change of status.
func (x *session) report(s Status, now time.Duration) {
	if s == x.status || s == Dead && !x.ever {
		return
	}
	x.status = s
	x.ever = x.ever || s == Alive
	if x.cfg.Notify != nil {
		x.speaker.reports.put(x, Change{Peer: x.peer, Status: s, Diag: x.diag, RemoteDiag: x.last.Diag, When: x.speaker.start.Add(now)})
	}
}

// retime sets the intervals after a change of the state or the configuration, and begins a poll sequence if they changed
// (RFC 5880, section 6.8.3).
func (x *session) retime() {
	tx, rx := x.cfg.Interval, x.cfg.Interval
	if x.state != Up {
		tx = max(tx, slow)
	}
	if tx != x.minTx || rx != x.minRx {
		x.again, x.poll = x.poll, true
	}
	x.minTx, x.minRx = tx, rx
	if x.state != Up || tx < x.tx {
		x.tx = tx
	}
	if x.state != Up || rx > x.rx {
		x.rx = rx
	}
}

// endPoll ends a poll sequence. If the intervals changed after it began, the packet with Final may be older.
func (x *session) endPoll() {
	if x.again {
		x.again = false
		return
	}
	x.poll, x.tx, x.rx = false, x.minTx, x.minRx
}

// txInterval returns the time between packets, before jitter (RFC 5880, section 6.8.2).
func (x *session) txInterval() time.Duration { return max(x.tx, x.last.MinRx) }

// detection returns the detection time (RFC 5880, section 6.8.4), never if nothing is heard from the peer.
func (x *session) detection() time.Duration {
	if !x.heard {
		return never
	}
	return time.Duration(x.last.Multiplier) * max(x.rx, x.last.MinTx)
}

// detectAt returns when the detection time is over.
func (x *session) detectAt() time.Duration {
	d := x.detection()
	if d == never {
		return never
	}
	if x.graced {
		d += grace
	}
	return x.rxAt + d
}

// mute reports whether the session must not send at all (RFC 5880, section 6.8.7).
func (x *session) mute() bool { return x.cfg.Passive && x.last.My == 0 }

// silent reports whether it must not send periodically: the peer wants nothing, or no more than answers.
func (x *session) silent() bool {
	l := &x.last
	return x.mute() || l.MinRx == 0 || l.Demand && x.state == Up && l.State == Up && !x.poll
}

// jittered returns a time that is 75 to 100 percent of an interval after t, 75 to 90 percent with a multiplier of 1
// (RFC 5880, section 6.8.7). It is a multiple of the interval's grain, so that sessions wake the Speaker together.
func (x *session) jittered(t, interval time.Duration) time.Duration {
	most := interval
	if x.cfg.Multiplier == 1 {
		most = interval / 10 * 9
	}
	g := grain(interval)
	t += interval/4*3 + g
	return (t + rand.N(most-interval/4*3-g)) &^ (g - 1)
}

// grain returns the largest power of two that is no more than a 32nd of an interval: of two grains, one divides the other.
func grain(interval time.Duration) time.Duration {
	return 1 << (bits.Len64(uint64(max(1<<18, interval)/32)) - 1)
}

// reschedule moves the next packet forward if the interval has become shorter; a longer one begins after it.
func (x *session) reschedule(now time.Duration) {
	d := x.txInterval()
	if d < x.interval {
		x.txNext = min(x.txNext, max(now, x.jittered(x.txAt, d)))
	}
	x.interval = d
}

// wake returns when there is something to do.
func (x *session) wake(now time.Duration) time.Duration {
	at := min(x.detectAt(), x.holdAt)
	if !x.silent() {
		at = min(at, x.txNext)
	}
	if x.gone || (x.final || x.urgent) && !x.mute() {
		at = now
	}
	return at
}

// step does what is due. It appends the packet to send to b, if there is one, and returns when to call it again.
func (x *session) step(b []byte, now time.Duration) (packet []byte, again time.Duration, gone bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.gone {
		if !x.mute() {
			b = x.control().Append(b)
		}
		return b, never, true
	}
	if at := x.detectAt(); now >= at {
		if now-at > grace && !x.graced {
			x.graced, x.rxAt = true, now-x.detection()
		} else {
			x.expire(now)
		}
	}
	if now >= x.holdAt {
		x.holdAt = never
		x.report(Alive, now)
	}
	if x.mute() {
		x.urgent, x.final = false, false
	}
	periodic := !x.silent() && now >= x.txNext
	if periodic || x.urgent || x.final {
		b = x.control().Append(b)
		if periodic || x.urgent {
			x.interval = x.txInterval()
			x.txAt, x.txNext = now, x.jittered(now, x.interval)
		}
		x.urgent, x.final = false, false
		x.sent, x.sendErr = x.sent+1, nil
	}
	x.wakes = x.wake(now)
	return b, x.wakes, false
}

// expire is called at the end of the detection time (RFC 5880, sections 6.8.1 and 6.8.4).
func (x *session) expire(now time.Duration) {
	x.heard = false
	x.last.My, x.last.Demand = 0, false
	if x.state == Init || x.state == Up {
		x.last.State = Down
		x.to(Down, TimeExpired, now)
	}
	x.reschedule(now)
}

// control returns the packet to send now (RFC 5880, section 6.8.7).
func (x *session) control() *Control {
	return &Control{
		Diag: x.diag, State: x.state, Poll: x.poll && !x.final, Final: x.final, Multiplier: uint8(x.cfg.Multiplier),
		My: x.my, Your: x.last.My, MinTx: x.minTx, MinRx: x.minRx,
	}
}

// change gives the session another configuration.
func (x *session) change(cfg SessionConfig, now time.Duration) {
	x.mu.Lock()
	defer x.mu.Unlock()
	was := x.cfg.AdminDown
	x.cfg = cfg
	switch {
	case cfg.AdminDown && !was:
		x.to(AdminDown, DiagAdminDown, now)
	case !cfg.AdminDown && was:
		x.to(Down, NoDiag, now)
	default:
		x.retime()
	}
	if x.holdAt != never {
		x.holdAt = x.changed + max(cfg.Hold, 0)
	}
	x.reschedule(now)
}

// leave makes the Speaker say good-bye with the next step.
func (x *session) leave() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.gone, x.left, x.state, x.diag = true, make(chan struct{}), AdminDown, DiagAdminDown
	x.poll, x.final = false, false
}
