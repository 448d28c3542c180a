package bgp

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

// openTime is how long a peer may take to connect, and then to get to Established.
const openTime = 20 * time.Second

var errCollision = errors.New("another connection to the peer was kept")

// session is one connection.
type session struct {
	*peer
	addr   netip.Addr // of the peer
	conn   net.Conn
	dialed bool
	anew   bool // the peer opened it while it had a session
	open   open // what the peer said
	agreed agreement
	hold   time.Duration // agreed on, 0 for none
	queue  queue         // what the peer has still to be told; under out.mu
	ask    atomic.Bool   // the peer is to be asked for all its routes
	live   bool          // Established; under peer.mu
	done   chan struct{}

	once   sync.Once   // around the end of the connection, and cause
	ending atomic.Bool // a NOTIFICATION is being written
	cause  error       // why we ended it, nil if the peer did; to be read after end
}

// session runs a connection to its end, and reports whether it was established.
func (p *peer) session(at location, c net.Conn, dialed bool) (established bool, err error) {
	ctx := at.ctx
	s := &session{peer: p, addr: at.addr, conn: c, dialed: dialed, done: make(chan struct{}), queue: newQueue()}
	defer close(s.done)
	p.mu.Lock()
	s.anew = !dialed && p.current != nil && p.current.live
	p.mu.Unlock()
	defer context.AfterFunc(ctx, func() {
		switch cause := context.Cause(ctx); {
		case errors.Is(cause, errRemoved):
			s.end(notify(errCease, ceaseRemoved))
		case isLost(cause):
			s.drop(cause)
		default:
			s.end(notify(errCease, ceaseShutdown, 0)) // without a text (RFC 9003)
		}
	})()
	buf := make([]byte, maxExtended)
	r := bufio.NewReaderSize(c, 64<<10)
	if err = s.begin(r, buf); err == nil {
		established, err = s.established(r, buf)
	}
	n := (*Notification)(nil)
	if errors.As(err, &n) && n.Received {
		n = nil
	}
	s.end(n) // or somebody else has
	if s.cause != nil && err != errCollision {
		err = s.cause
	}
	if established {
		if cause := context.Cause(ctx); cause != nil && !isLost(cause) {
			err = context.Canceled
		}
		p.down(&s.open, err)
	}
	s.release() // after down: the next session's up comes later
	return established, err
}

// end closes the connection; the peer is told why, if there is a reason.
func (s *session) end(n *Notification) {
	s.once.Do(func() {
		s.ending.Store(true)
		if n != nil {
			s.cause = n
			s.conn.SetWriteDeadline(time.Now().Add(time.Second))
			if _, err := s.conn.Write(n.marshal()); err == nil {
				s.sent.Add(1)
			}
		}
		s.conn.Close()
	})
}

// drop closes the connection without a word: nobody would hear it.
func (s *session) drop(why error) {
	s.once.Do(func() {
		s.cause = why
		s.conn.Close()
	})
}

// begin takes a connection to OpenConfirm and through it.
func (s *session) begin(r *bufio.Reader, buf []byte) error {
	s.conn.SetDeadline(time.Now().Add(openTime))
	me := open{as: s.b.conf.AS, hold: s.Hold, id: s.b.id}
	if err := s.send(me.marshal()); err != nil {
		return err
	}
	typ, body, err := s.read(r, buf, maxMessage)
	if err != nil {
		return err
	}
	if typ != typeOpen {
		return notify(errFSM, 1, typ) // RFC 6608
	}
	o, n := parseOpen(body)
	if n != nil {
		return n
	}
	if n := s.check(o); n != nil {
		return n
	}
	s.open, s.hold = *o, min(o.hold, s.Hold)
	s.agreed = agreement{as: s.b.conf.AS, peerAS: o.as, id: s.b.id, as4: o.as4, extended: o.extended, ownAS: int(s.OwnAS)}
	if err := s.claim(); err != nil {
		return err
	}
	if err := s.send(appendKeepalive(nil)); err != nil {
		return err
	}
	typ, _, err = s.read(r, buf, maxMessage)
	if err == nil && typ != typeKeepalive {
		err = notify(errFSM, 2, typ)
	}
	return err
}

func (s *session) check(o *open) *Notification {
	switch {
	case !s.allows(o.as, s.b.conf.AS):
		n := notify(errOpen, 2)
		n.Why = fmt.Sprintf("the peer says %d; must be %s", o.as, s.wants(s.b.conf.AS))
		return n
	case o.id == s.b.id && o.as == s.b.conf.AS:
		return notify(errOpen, 3)
	case !o.family:
		return notify(errOpen, 7, capFamily, 4, 0, afi, 0, safi) // RFC 5492, section 3
	}
	return nil
}

// claim makes s the session of its peer, or says why another is (RFC 4271, section 6.8; RFC 6286 for equal identifiers). A new
// connection of a peer with graceful restart means that it has lost the old one (RFC 4724, section 4.2).
func (s *session) claim() error {
	s.mu.Lock()
	other := s.current
	if other != nil {
		ours := s.dominate()
		if other.live && (s.dialed || other.open.restart == 0) || !other.live && (other.dialed == s.dialed || s.dialed != ours) {
			s.mu.Unlock()
			s.end(notify(errCease, ceaseCollision))
			return errCollision
		}
	}
	if !s.dialed && s.dialing && !s.anew && s.dominate() {
		// The peer, which has not had our KEEPALIVE here, will agree: ours is going to be the session.
		s.mu.Unlock()
		s.end(notify(errCease, ceaseCollision))
		return errCollision
	}
	s.current = s
	if s.incoming == s.conn {
		s.incoming = nil
	}
	s.set("openconfirm")
	s.mu.Unlock()
	if other != nil {
		if other.live {
			other.end(nil)
		} else {
			other.end(notify(errCease, ceaseCollision))
		}
		<-other.done
	}
	return nil
}

// dominate reports whether of two connections the one we dialed is kept.
func (s *session) dominate() bool {
	c := bytes.Compare(s.b.id[:], s.open.id[:])
	return c > 0 || c == 0 && s.b.conf.AS > s.open.as
}

// release makes room for another session.
func (s *session) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.live && deliberate(s.cause) {
		s.reopen = time.Now().Add(reopenPause)
	}
	if s.current == s {
		s.current = nil
		s.set("idle")
		close(s.change)
		s.change = make(chan struct{})
	}
}

// established runs a connection from Established on, and reports whether it got there: meanwhile another may have been kept.
func (s *session) established(r *bufio.Reader, buf []byte) (bool, error) {
	s.mu.Lock()
	if s.current != s {
		s.mu.Unlock()
		return false, errCollision
	}
	s.live = true
	s.set("established")
	if collided(s.last) {
		s.last = nil // this is the one that was kept
	}
	s.mu.Unlock()
	s.peer.up(s.addr, &s.open)
	s.b.out.join(&s.queue)
	defer s.b.out.leave(&s.queue)
	s.conn.SetDeadline(time.Time{})
	stop, failed := make(chan struct{}), make(chan error, 1)
	go func() {
		err := s.write(stop)
		if err != nil {
			s.conn.Close() // which ends the reader
		}
		failed <- err
	}()
	err := s.hear(r, buf)
	close(stop)
	s.conn.SetWriteDeadline(time.Now().Add(time.Second))
	if werr := <-failed; werr != nil && (errors.Is(err, net.ErrClosed) || errors.Is(err, io.ErrClosedPipe)) {
		err = werr
	}
	return true, err
}

// hear reads until the session ends. Time in which the handler does not take what was read is not the peer's.
func (s *session) hear(r *bufio.Reader, buf []byte) error {
	d := decoder{agreement: s.agreed}
	sink := intake{peer: s.peer}
	for {
		if s.hold > 0 {
			s.conn.SetReadDeadline(time.Now().Add(s.hold))
		}
		typ, body, err := s.read(r, buf, s.agreed.limit())
		if e := net.Error(nil); errors.As(err, &e) && e.Timeout() {
			return notify(errHold, 0)
		}
		if err != nil {
			return err
		}
		switch typ {
		case typeUpdate:
			s.b.mu.Lock()
			n := d.update(body, &sink)
			s.b.relieve()
			s.b.mu.Unlock()
			if n != nil {
				return n
			}
			if sink.limited && s.LimitResets {
				return notify(errCease, ceaseRoutes)
			}
		case typeRefresh:
			if len(body) == 4 && isEVPN(body) && body[2] == 0 {
				s.b.out.again(&s.queue)
			}
		case typeOpen:
			return notify(errFSM, 3, typ)
		}
	}
}

// read reads a message. A NOTIFICATION is an error.
func (s *session) read(r *bufio.Reader, buf []byte, limit int) (uint8, []byte, error) {
	typ, body, err := readMessage(r, buf, limit)
	if err != nil {
		return 0, nil, err
	}
	s.in.Add(1)
	if typ == typeNotification {
		return 0, nil, parseNotification(body)
	}
	return typ, body, nil
}

func (s *session) send(b []byte) error {
	_, err := s.conn.Write(b)
	if err == nil {
		s.count(b)
	}
	return err
}

func (s *session) count(b []byte) {
	for ; len(b) >= headerLen; b = b[int(b[16])<<8|int(b[17]):] {
		s.sent.Add(1)
	}
}

// push sends messages. As long as the peer reads, it may be slow; one that reads nothing within the hold time ends the session (RFC 9687).
func (s *session) push(b []byte, stop <-chan struct{}) error {
	for rest := b; len(rest) > 0; {
		if s.hold > 0 {
			s.conn.SetWriteDeadline(time.Now().Add(s.hold))
		}
		if s.ending.Load() { // and the deadline may have been that of the last message
			s.conn.SetWriteDeadline(time.Now().Add(time.Second))
			return net.ErrClosed
		}
		select {
		case <-stop: // likewise
			s.conn.SetWriteDeadline(time.Now().Add(time.Second))
		default:
		}
		n, err := s.conn.Write(rest)
		rest = rest[n:]
		e := net.Error(nil)
		late := errors.As(err, &e) && e.Timeout()
		select {
		case <-stop:
			return err
		default:
		}
		switch {
		case late && n == 0:
			return fmt.Errorf("the peer has read nothing for %v", s.hold)
		case err != nil && !late:
			return err
		}
	}
	s.count(b)
	return nil
}

// write says what is queued, and that we are there, until stop is closed.
func (s *session) write(stop <-chan struct{}) error {
	var tick <-chan time.Time
	if s.hold > 0 {
		t := time.NewTicker(s.hold / 3)
		defer t.Stop()
		tick = t.C
	}
	b := appendKeepalive(nil)
	ended := false
	for {
		more := false
		if s.ask.Swap(false) {
			b = append(b, refreshMessage()...)
		}
		b, more = s.b.out.take(&s.queue, &s.agreed, b)
		if !more && !ended {
			b, ended = append(b, unreach(nil)...), true
		}
		if len(b) > 0 {
			if err := s.push(b, stop); err != nil {
				return err
			}
			b = b[:0]
		}
		if more {
			select {
			case <-stop:
				return nil
			default:
			}
			continue
		}
		select {
		case <-stop:
			return nil
		case <-s.queue.wake:
		case <-tick:
			b = appendKeepalive(b)
		}
	}
}
