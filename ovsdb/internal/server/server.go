// Package server serves a database of package store to clients of OVSDB (RFC 7047, and what ovsdb-server(7) adds): transact with waits,
// monitor, monitor_cond, monitor_cond_since, locks and echo.
//
//	session: reads a request --> mu: transaction, changes --> queues of the sessions that monitor --> replies, in order
//
// Sessions take turns, each with one request. What a client can have kept or done is bounded by the constants here and by store.Limits; a
// client that goes beyond is refused, or its session ends.
package server

import (
	"context"
	"encoding/json"
	"log/slog"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/vxswitch/vxswitch/ovsdb/internal/store"
)

const (
	// MaxMessage is the most bytes that a request may have.
	MaxMessage = 64 << 20

	// MaxSessions is how many clients there may be, and MaxAddr how many of one address.
	MaxSessions = 64
	MaxAddr     = 16

	maxMonitors = 16 // of a session
	maxLocks    = 16
	maxPending  = 4         // transactions that wait
	maxIDs      = 1 << 10   // bytes of the id of a request or monitor
	ownBytes    = 256 << 10 // that each session may have under way at any time
	shared      = 512 << 20 // bytes that all have beyond these
	queued      = 8 << 20   // bytes that a client may be behind before it gets more, beside the first message
	retryPause  = 50 * time.Millisecond
)

// Times that clients have. Tests shorten them.
var (
	probe       = 5 * time.Second  // silence before an echo; after three the session ends
	messageTime = 30 * time.Second // for a whole request
	writeTime   = 10 * time.Second // for 64 KB to go out
)

// A Server has a database and sessions.
type Server struct {
	log  *slog.Logger
	used atomic.Int64 // of shared

	mu       sync.Mutex
	db       *store.Database
	sessions map[*session]bool
	locks    map[string][]*session // the first has it
	changed  chan struct{}         // closed by the next change
	watch    *store.Monitor        // of managers
	notify   func()                // after a change of these
	closed   bool
	running  sync.WaitGroup

	listeners []net.Listener
	accepting sync.WaitGroup

	crowded, deaf, failing seldom
}

// seldom says when to log what strangers can have happen: once a minute at most.
type seldom struct{ last atomic.Int64 }

func (o *seldom) due() bool {
	now, last := time.Now().UnixNano(), o.last.Load()
	return (last == 0 || now-last >= int64(time.Minute)) && o.last.CompareAndSwap(last, now)
}

// New returns a server, which takes over the database and closes it. log may be nil.
func New(db *store.Database, log *slog.Logger) *Server {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Server{log: log, db: db, sessions: map[*session]bool{}, locks: map[string][]*session{}, changed: make(chan struct{})}
}

// Close closes the listeners, ends all sessions, and closes the file.
func (s *Server) Close() error {
	for _, l := range s.listeners {
		l.Close()
	}
	s.accepting.Wait()
	s.mu.Lock()
	s.closed = true
	for x := range s.sessions {
		kill(x.conn)
	}
	s.mu.Unlock()
	s.running.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.db.Close()
}

// Pipe returns a connection with the server inside the program. It is not counted.
func (s *Server) Pipe() net.Conn {
	here, there := net.Pipe()
	go s.Serve(there, "")
	return here
}

// Serve speaks with a client until the connection ends. from is the client's address, "" for one that is not counted.
func (s *Server) Serve(conn net.Conn, from string) {
	x := &session{s: s, conn: conn, from: from, room: make(chan struct{}, 1), monitors: map[string]*store.Monitor{}, pending: map[string]context.CancelFunc{}}
	if !s.enter(x) {
		conn.Close()
		if s.crowded.due() {
			s.log.Warn("too many clients of the database", "from", from)
		}
		return
	}
	defer s.running.Done()
	err := greet(conn)
	if err == nil {
		err = x.run()
	}
	kill(conn)
	s.leave(x)
	s.log.Debug("a client of the database has gone", "from", from, "error", err)
}

func (s *Server) enter(x *session) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	all, same := 0, 0
	for o := range s.sessions {
		if o.from != "" {
			all++
		}
		if o.from == x.from {
			same++
		}
	}
	if x.from != "" && (all >= MaxSessions || same >= MaxAddr) {
		return false
	}
	s.sessions[x] = true
	s.running.Add(1)
	return true
}

// leave takes a session out, and gives its locks to who waits.
func (s *Server) leave(x *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.sessions, x)
	for lock := range s.locks {
		s.unlock(x, lock)
	}
}

// reserve takes bytes of what all sessions share, if there are as many.
func (s *Server) reserve(n int) bool {
	if s.used.Add(int64(n)) > shared {
		s.release(n)
		return false
	}
	return true
}

func (s *Server) release(n int) { s.used.Add(-int64(n)) }

// transact carries out operations, and tells who monitors. It is called with mu.
func (s *Server) transact(ops []json.RawMessage, x *session, began time.Time) store.Outcome {
	holds := func(lock string) bool { return len(s.locks[lock]) > 0 && s.locks[lock][0] == x }
	out := s.db.Transact(ops, holds, began)
	if len(out.Changes) == 0 {
		return out
	}
	for o := range s.sessions {
		o.tell(out.Changes)
	}
	close(s.changed)
	s.changed = make(chan struct{})
	if s.watch != nil && s.watch.Updates(out.Changes) != nil {
		s.notify()
	}
	return out
}

// own reports whether a session has a lock, or waits for it.
func (s *Server) own(x *session, lock string) bool { return slices.Contains(s.locks[lock], x) }

// unlock takes a lock, or the wait for it, from a session.
func (s *Server) unlock(x *session, lock string) {
	had := len(s.locks[lock]) > 0 && s.locks[lock][0] == x
	left := slices.DeleteFunc(s.locks[lock], func(o *session) bool { return o == x })
	if len(left) == 0 {
		delete(s.locks, lock)
		return
	}
	s.locks[lock] = left
	if had {
		left[0].notify("locked", lock)
	}
}
