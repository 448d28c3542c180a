package ovsdb

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/ovsdb/internal/server"
	"github.com/vxswitch/vxswitch/ovsdb/internal/store"
)

// A wire is the way of one client to a server. What is sent while it hangs arrives later, if both ends still wait for it.
type wire struct {
	to    *board
	hangs atomic.Bool
	slow  atomic.Int64 // delay of a message, in nanoseconds
	abort atomic.Int32 // transactions to have refused

	mu   sync.Mutex
	open map[net.Conn]bool
}

func newWire(to *board) *wire { return &wire{to: to, open: map[net.Conn]bool{}} }

var errUnreachable = errors.New("nobody is there")

// dial opens a connection, from an address of a pipe.
func (w *wire) dial(context.Context) (net.Conn, error) {
	if w.hangs.Load() {
		time.Sleep(3 * time.Second)
		return nil, errUnreachable
	}
	there := w.to.pipe()
	if there == nil {
		return nil, errUnreachable
	}
	e := &end{up: make(chan []byte, 1024), closed: make(chan struct{})}
	var here net.Conn
	e.Conn, here = net.Pipe()
	w.mu.Lock()
	w.open[e] = true
	w.mu.Unlock()
	pass := func(to io.Writer, b []byte) bool {
		time.Sleep(time.Duration(w.slow.Load()))
		for w.hangs.Load() {
			select {
			case <-e.closed:
				return false
			case <-time.After(100 * time.Millisecond):
			}
		}
		_, err := to.Write(b)
		return err == nil
	}
	go func() {
		defer e.Close()
		for b := make([]byte, 64<<10); ; {
			if n, err := there.Read(b); err != nil || !pass(here, b[:n]) {
				return
			}
		}
	}()
	go func() {
		defer there.Close()
		for {
			select {
			case b := <-e.up:
				if !pass(there, w.spoil(b)) {
					return
				}
			case <-e.closed:
				return
			}
		}
	}()
	return e, nil
}

// An end is that of a client. The system has room for what it sends.
type end struct {
	net.Conn
	up     chan []byte
	once   sync.Once
	closed chan struct{}
}

func (e *end) Write(b []byte) (int, error) {
	select {
	case <-e.closed:
		return 0, net.ErrClosed
	case e.up <- bytes.Clone(b):
		return len(b), nil
	default:
		return 0, os.ErrDeadlineExceeded
	}
}

func (e *end) Close() error {
	e.once.Do(func() { close(e.closed) })
	return e.Conn.Close()
}

// spoil has the server refuse a transaction, if one is to be.
func (w *wire) spoil(b []byte) []byte {
	at := []byte(`"params":["` + database + `",{"op":"assert"`)
	if w.abort.Load() > 0 && bytes.Contains(b, at) {
		w.abort.Add(-1)
		return bytes.Replace(b, at, []byte(`"params":["`+database+`",{"op":"abort"},{"op":"assert"`), 1)
	}
	return b
}

// reset ends all connections.
func (w *wire) reset() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for c := range w.open {
		c.Close()
	}
	clear(w.open)
}

// heal makes all well. Connections that did hang may have been given up at one end.
func (w *wire) heal() {
	w.hangs.Store(false)
	w.slow.Store(0)
	w.abort.Store(0)
}

// A board is a server with the database of a switch, which keeps it in a file or forgets it.
type board struct {
	t    *testing.T
	path string // "" = no file

	mu     sync.Mutex
	server *server.Server
}

func (b *board) start() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.server != nil {
		return
	}
	db := store.New(store.VTEP(), store.DefaultLimits)
	if b.path != "" {
		var err error
		db, _, err = store.Open(b.path, store.VTEP(), store.DefaultLimits)
		check.OK(b.t, err)
	}
	b.server = server.New(db, nil)
}

func (b *board) stop() {
	b.mu.Lock()
	s := b.server
	b.server = nil
	b.mu.Unlock()
	if s != nil {
		check.OK(b.t, s.Close())
	}
}

func (b *board) pipe() net.Conn {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.server == nil {
		return nil
	}
	return b.server.Pipe()
}
