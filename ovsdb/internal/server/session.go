package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/vxswitch/vxswitch/ovsdb/internal/store"
)

// A session is a connection with a client.
type session struct {
	s    *Server
	conn net.Conn
	from string

	monitors map[string]*store.Monitor // by JSON of the id; with s.mu
	pending  map[string]context.CancelFunc
	locks    int

	mu    sync.Mutex
	out   [][]byte // the first one is written just now
	bytes int      // of out
	ended bool
	room  chan struct{} // something is in out
}

type message struct {
	ID     json.RawMessage `json:"id"`
	Method *string         `json:"method"`
	Params json.RawMessage `json:"params"`
}

// run reads requests until the connection ends.
func (x *session) run() error {
	var writing sync.WaitGroup
	writing.Go(x.write)
	ctx, cancel := context.WithCancel(context.Background())
	defer func() {
		cancel()
		x.end()
		writing.Wait()
	}()
	r := &reader{x: x}
	defer func() { r.done() }()
	d := json.NewDecoder(r)
	for {
		var text json.RawMessage
		r.begin()
		if err := d.Decode(&text); err != nil {
			return err
		}
		var m message
		if err := json.Unmarshal(text, &m); err != nil {
			return err
		}
		if err := x.handle(ctx, &m); err != nil {
			return err
		}
		if r.done(); len(text) > ownBytes { // the decoder keeps its buffer
			rest, _ := io.ReadAll(d.Buffered())
			r.rest = bytes.NewReader(rest)
			d = json.NewDecoder(r)
		}
	}
}

// A reader reads a message at a time, within its time and bounds, and probes a silent client.
type reader struct {
	x        *session
	rest     *bytes.Reader // of an earlier decoder
	bytes    int           // of the message
	reserved int           // of what all share
	since    time.Time     // its first byte
}

func (r *reader) begin() { r.bytes, r.since = 0, time.Time{} }

// done gives back what was reserved for a message.
func (r *reader) done() {
	r.x.s.release(r.reserved)
	r.reserved = 0
}

// Read implements io.Reader.
func (r *reader) Read(b []byte) (int, error) {
	if r.rest != nil {
		if n, err := r.rest.Read(b); err == nil {
			return n, r.count(b[:n])
		}
		r.rest = nil
	}
	if r.bytes > MaxMessage {
		return 0, fmt.Errorf("a request of more than %d bytes", MaxMessage)
	}
	for tries := 0; ; tries++ {
		until := time.Now().Add(probe)
		if end := r.since.Add(messageTime); r.bytes > 0 && end.Before(until) {
			until = end
		}
		r.x.conn.SetReadDeadline(until)
		n, err := r.x.conn.Read(b)
		var timeout net.Error
		switch {
		case n > 0 || err == nil || !errors.As(err, &timeout) || !timeout.Timeout():
			return n, errors.Join(err, r.count(b[:n]))
		case r.bytes > 0 && !time.Now().Before(r.since.Add(messageTime)):
			return 0, errors.New("a request that does not end")
		case tries == 2:
			return 0, errors.New("the client is silent")
		}
		r.x.send([]byte(`{"method":"echo","params":[],"id":"echo"}`))
	}
}

// count counts bytes of a message, which does not begin with space.
func (r *reader) count(b []byte) error {
	n := len(b)
	if r.bytes == 0 {
		if len(bytes.TrimSpace(b)) == 0 {
			return nil
		}
		r.since = time.Now()
	}
	if r.bytes += n; r.bytes > ownBytes && n > 0 {
		if !r.x.s.reserve(n) {
			return errors.New("no room for the request")
		}
		r.reserved += n
	}
	return nil
}

// write writes what is queued, until the session ends.
func (x *session) write() {
	for range x.room {
		for {
			b, ended := x.next()
			if ended {
				return
			}
			if b == nil {
				break
			}
			err := x.put(b)
			x.mu.Lock()
			x.out[0] = nil
			x.out = x.out[1:]
			x.resize(-len(b))
			x.mu.Unlock()
			if err != nil {
				x.end()
			}
		}
	}
}

// next returns the first message of the queue, nil if it is empty. At the end of the session, the queue is given up.
func (x *session) next() (b []byte, ended bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	switch {
	case x.ended:
		x.out = nil
		x.resize(-x.bytes)
	case len(x.out) > 0:
		b = x.out[0]
	}
	return b, x.ended
}

// put writes a message. A client that takes less than 64 KB in writeTime is given up.
func (x *session) put(b []byte) error {
	for len(b) > 0 {
		n := min(len(b), 64<<10)
		x.conn.SetWriteDeadline(time.Now().Add(writeTime))
		if _, err := x.conn.Write(b[:n]); err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}

// resize counts bytes that are queued. It reports whether there is room.
func (x *session) resize(n int) bool {
	more := max(0, x.bytes+n-ownBytes) - max(0, x.bytes-ownBytes)
	if more > 0 && !x.s.reserve(more) {
		return false
	}
	if more < 0 {
		x.s.release(-more)
	}
	x.bytes += n
	return true
}

// send queues a message. The session of a client that does not read ends. The first message does not count, which may be all that there
// is: while a client reads that, changes may follow.
func (x *session) send(b []byte) {
	x.mu.Lock()
	if x.ended {
		x.mu.Unlock()
		return
	}
	first := 0
	if len(x.out) > 0 {
		first = len(x.out[0])
	}
	behind := x.bytes-first > queued || !x.resize(len(b))
	if !behind {
		x.out = append(x.out, b)
	}
	x.mu.Unlock()
	if behind {
		if x.s.deaf.due() {
			x.s.log.Warn("a client of the database does not read", "from", x.from)
		}
		x.end()
		return
	}
	x.wake()
}

func (x *session) end() {
	x.mu.Lock()
	x.ended = true
	x.mu.Unlock()
	kill(x.conn)
	x.wake()
}

func (x *session) wake() {
	select {
	case x.room <- struct{}{}:
	default:
	}
}

func (x *session) reply(id json.RawMessage, result []byte) {
	x.send(join(`{"id":`, string(id), `,"result":`, string(result), `,"error":null}`))
}

func (x *session) refuse(id json.RawMessage, why any) {
	text, _ := json.Marshal(why)
	x.send(join(`{"id":`, string(id), `,"result":null,"error":`, string(text), `}`))
}

func (x *session) notify(method, lock string) {
	x.send(join(`{"id":null,"method":"`, method, `","params":["`, lock, `"]}`))
}

func join(parts ...string) []byte {
	var b bytes.Buffer
	for _, p := range parts {
		b.WriteString(p)
	}
	return b.Bytes()
}
