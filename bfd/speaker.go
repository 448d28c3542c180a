package bfd

import (
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// A Speaker has the sessions of a node. Make one with [New].
type Speaker struct {
	start   time.Time
	reports reports
	done    chan struct{}
	ended   sync.WaitGroup

	mu     sync.RWMutex
	closed bool
	byPeer map[Peer]*session
	byMy   map[uint32]*session
	ports  map[uint16]int // sessions with a source port

	shortest atomic.Int64 // interval of a session since there was none, the default one at most

	dueMu       sync.Mutex
	first, last *session // to be looked at
	kick        chan struct{}

	buf [controlLen]byte // of the goroutine of the timers
	out Packet

	sent, failed, received atomic.Uint64
	discarded              [NumReasons]atomic.Uint64
}

// New returns a Speaker without sessions. Close ends its two goroutines: one for the timers of all sessions, which also
// sends their packets, and one for Notify.
func New() *Speaker {
	s := &Speaker{
		start: time.Now(), done: make(chan struct{}), kick: make(chan struct{}, 1),
		byPeer: map[Peer]*session{}, byMy: map[uint32]*session{}, ports: map[uint16]int{},
	}
	s.reports.of, s.reports.kick = map[*session]waiting{}, make(chan struct{}, 1)
	s.ended.Go(s.run)
	s.ended.Go(func() { s.reports.deliver(s.done) })
	return s
}

// pause returns how long packets may wait to be read: until sessions of the shortest interval, or the default one, may be due,
// 8 ms at most. So both goroutines run at once, and less often.
func (s *Speaker) pause() time.Duration {
	g := grain(time.Duration(s.shortest.Load()))
	return g - s.now()&(g-1)
}

func (s *Speaker) now() time.Duration { return time.Since(s.start) }

// Close ends the Speaker and waits until its goroutines have ended. The peers are told nothing: they find the paths dead,
// which they are for what passes through this process. Methods called later return net.ErrClosed.
func (s *Speaker) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		s.ended.Wait()
		return nil
	}
	s.closed = true
	clear(s.byPeer)
	clear(s.byMy)
	s.mu.Unlock()
	close(s.done)
	s.ended.Wait()
	return nil
}

// Add begins a session. The errors about settings are [setting.Errors].
func (s *Speaker) Add(p Peer, c *SessionConfig) error {
	cfg, err := filled(c)
	if err != nil {
		return err
	}
	if err := p.Check(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return net.ErrClosed
	case s.byPeer[p] != nil:
		return fmt.Errorf("bfd: there is a session %v already", p)
	}
	x := newSession(s, p, cfg, s.now())
	for x.my == 0 || s.byMy[x.my] != nil {
		x.my = rand.Uint32() // RFC 5880, section 6.3 and 10: hard to guess
	}
	x.srcPort = s.freePort()
	s.ports[x.srcPort]++
	if len(s.byPeer) == 0 {
		s.shortest.Store(int64(DefaultInterval)) // and no more
	}
	s.noteInterval(cfg.Interval)
	s.byPeer[p], s.byMy[x.my] = x, x
	s.look(x)
	return nil
}

func (s *Speaker) noteInterval(d time.Duration) {
	for {
		was := s.shortest.Load()
		if was <= int64(d) || s.shortest.CompareAndSwap(was, int64(d)) {
			return
		}
	}
}

// freePort returns a random source port with the fewest sessions (RFC 5881, section 4). s.mu is held.
func (s *Speaker) freePort() uint16 {
	const n = MaxSrcPort - MinSrcPort + 1
	i, least := rand.IntN(n), len(s.byPeer)/n
	for s.ports[uint16(MinSrcPort+i)] > least {
		i = (i + 1) % n
	}
	return uint16(MinSrcPort + i)
}

// find returns a session, with an error if there is none.
func (s *Speaker) find(p Peer) (*session, error) {
	switch x := s.byPeer[p]; {
	case s.closed:
		return nil, net.ErrClosed
	case x == nil:
		return nil, fmt.Errorf("bfd: no session %v", p)
	default:
		return x, nil
	}
}

// Change gives a session other settings. Other intervals are agreed with the peer by a poll sequence; the session stays up.
func (s *Speaker) Change(p Peer, c *SessionConfig) error {
	cfg, err := filled(c)
	if err != nil {
		return err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	x, err := s.find(p)
	if err != nil {
		return err
	}
	s.noteInterval(cfg.Interval)
	x.change(cfg, s.now())
	s.look(x)
	return nil
}

// Remove ends a session. It sends a last packet that tells the peer that this is no failure, and returns when that is sent; to
// be sure that the peer has heard it, set AdminDown for a detection time first (RFC 5880, section 6.8.16). Of Notify at most
// one call is under way then; none follows. See [Path] for what must not
// happen meanwhile.
func (s *Speaker) Remove(p Peer) error {
	s.mu.Lock()
	x, err := s.find(p)
	if err != nil {
		s.mu.Unlock()
		return err
	}
	delete(s.byPeer, p)
	delete(s.byMy, x.my)
	if s.ports[x.srcPort]--; s.ports[x.srcPort] == 0 {
		delete(s.ports, x.srcPort)
	}
	x.leave()
	s.look(x)
	s.mu.Unlock()
	select {
	case <-x.left:
	case <-s.done:
	}
	return nil
}

// Receive takes the payload of a UDP datagram, with the TTL or hop limit it arrived with. from.Local is its destination,
// from.Remote its source, from.Multihop tells that it came to port 4784; no UDP port is looked at beyond that. Receive keeps
// nothing, allocates nothing and calls nobody: any goroutine may call it, workers of a switch too.
//
// A packet without a session makes none. One that names a session has to come from the session's peer.
func (s *Speaker) Receive(from Peer, ttl uint8, payload []byte) {
	c, why := Parse(payload)
	if !from.Multihop && ttl != 255 {
		why = BadTTL
	}
	if why != NotDiscarded {
		s.discarded[why].Add(1)
		return
	}
	var x *session
	s.mu.RLock()
	if c.Your != 0 {
		x, why = s.byMy[c.Your], UnknownSession
	} else {
		x, why = s.byPeer[from], UnknownPeer
	}
	s.mu.RUnlock()
	switch {
	case x == nil:
		s.discarded[why].Add(1)
	case x.peer != from:
		x.refuse(Stranger)
	case c.Auth:
		x.refuse(Authenticated)
	default:
		if x.receive(&c, s.now()) {
			s.look(x)
		}
	}
}

func (x *session) refuse(why Reason) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.discard(why)
}

// look makes the Speaker's goroutine look at a session soon.
func (s *Speaker) look(x *session) {
	s.dueMu.Lock()
	defer s.dueMu.Unlock()
	if x.due {
		return
	}
	x.due = true
	if s.first == nil {
		s.first = x
	} else {
		s.last.next = x
	}
	s.last = x
	select {
	case s.kick <- struct{}{}:
	default:
	}
}

// noticed returns the next session to be looked at, nil if there is none.
func (s *Speaker) noticed() *session {
	s.dueMu.Lock()
	defer s.dueMu.Unlock()
	x := s.first
	if x != nil {
		s.first, x.next, x.due = x.next, nil, false
	}
	return x
}

// run is the goroutine of all timers.
func (s *Speaker) run() {
	var h timers
	t := time.NewTimer(0)
	defer t.Stop()
	for {
		select {
		case <-s.done:
			return
		case <-s.kick:
		case <-t.C:
		}
		for x := s.noticed(); x != nil; x = s.noticed() {
			s.step(x, &h)
		}
		for now := s.now(); len(h) > 0 && h[0].at <= now; {
			s.step(h[0], &h)
		}
		if len(h) > 0 {
			t.Reset(h[0].at - s.now())
		}
	}
}

// step does what is due for a session, and sets its timer.
func (s *Speaker) step(x *session, h *timers) {
	if x.over { // it was due and noticed at once
		return
	}
	b, at, gone := x.step(s.buf[:0], s.now())
	if len(b) > 0 {
		s.send(x, b)
	}
	if !gone {
		h.set(x, at)
		return
	}
	h.remove(x)
	if l, ok := x.peer.Path.(Leaver); ok {
		l.Leave(x.peer)
	}
	x.over = true
	close(x.left)
}

func (s *Speaker) send(x *session, b []byte) {
	s.out = Packet{Peer: x.peer, SrcPort: x.srcPort, DstPort: x.peer.dstPort(), Payload: b}
	err := x.peer.Path.Send(&s.out)
	if err == nil {
		s.sent.Add(1)
		return
	}
	s.failed.Add(1)
	x.mu.Lock()
	defer x.mu.Unlock()
	x.failed++
	x.sent--
	x.sendErr = err
}
