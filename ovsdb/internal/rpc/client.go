// Package rpc is a client of the OVSDB management protocol (RFC 7047): JSON-RPC 1.0 over a connection, with the methods
// transact, monitor, lock and echo.
//
//	Run reads:  reply --> who waits      update --> what Monitor was given      echo --> is answered
//
// A connection is used once: when Run ends, make another one.
package rpc

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

const (
	// Probe is how long a server may be silent before it is asked whether it is alive. After three of them it is not.
	Probe = 5 * time.Second

	// MaxMessage is the most bytes that one message may have.
	MaxMessage = 256 << 20

	// Answer is how long a server may take to answer monitor and lock.
	Answer = time.Minute

	sendTimeout = 10 * time.Second
)

// Errors of servers that are connected and do not work.
var (
	ErrSilent   = errors.New("the server is silent")
	ErrNoAnswer = fmt.Errorf("the server has not answered for %v", Answer)
)

// Tables are rows by table and UUID, each as it is now; a nil row was deleted.
type Tables map[string]map[string]map[string]any

// An Op is an operation of a transaction (RFC 7047, section 5.2).
type Op = map[string]any

// A Client speaks with a server.
type Client struct {
	conn   net.Conn
	budget int // bytes left of the message that is read

	sending sync.Mutex

	mu      sync.Mutex
	last    int // id of a request
	waiting map[int]func(result json.RawMessage, err error)
	update  func(Tables)
	lock    func(ours bool)
	ended   error
}

// New returns a client on a connection, which Run closes.
func New(conn net.Conn) *Client {
	return &Client{conn: conn, waiting: map[int]func(json.RawMessage, error){}}
}

type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
}

// Run reads until ctx is done, the connection ends, or the server is silent. All calls end then.
func (c *Client) Run(ctx context.Context) (err error) {
	stop := context.AfterFunc(ctx, func() { c.conn.Close() })
	defer func() {
		stop()
		c.conn.Close()
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		c.end(err)
	}()
	d := json.NewDecoder(bufio.NewReader(reader{c}))
	for {
		var m message
		c.budget = MaxMessage
		if err := d.Decode(&m); err != nil {
			return fmt.Errorf("ovsdb: %w", err)
		}
		if err := c.take(&m); err != nil {
			return fmt.Errorf("ovsdb: %w", err)
		}
	}
}

// end has all calls return an error.
func (c *Client) end(err error) {
	c.mu.Lock()
	c.ended = err
	waiting := c.waiting
	c.waiting = nil
	c.mu.Unlock()
	for _, f := range waiting {
		f(nil, err)
	}
}

// A reader reads for a Client, and probes a silent server.
type reader struct{ c *Client }

// Read implements io.Reader.
func (r reader) Read(b []byte) (int, error) {
	if r.c.budget <= 0 {
		return 0, fmt.Errorf("a message of more than %d bytes", MaxMessage)
	}
	for tries := 0; ; tries++ {
		r.c.conn.SetReadDeadline(time.Now().Add(Probe))
		n, err := r.c.conn.Read(b)
		var timeout net.Error
		switch {
		case n > 0 || err == nil || !errors.As(err, &timeout) || !timeout.Timeout():
			r.c.budget -= n
			return n, err
		case tries == 2:
			return 0, ErrSilent
		}
		if err := r.c.send(map[string]any{"method": "echo", "params": []any{}, "id": "echo"}); err != nil {
			return 0, err
		}
	}
}

// take carries out a message.
func (c *Client) take(m *message) error {
	switch m.Method {
	case "":
		var id int
		if json.Unmarshal(m.ID, &id) != nil {
			return nil // of a probe
		}
		c.mu.Lock()
		f := c.waiting[id]
		delete(c.waiting, id)
		c.mu.Unlock()
		if f == nil {
			return nil
		}
		if len(m.Error) > 0 && string(m.Error) != "null" {
			f(nil, fmt.Errorf("ovsdb: the server says: %.500s", m.Error))
			return nil
		}
		f(m.Result, nil)
	case "echo":
		return c.send(map[string]any{"result": m.Params, "error": nil, "id": m.ID})
	case "update":
		var p []json.RawMessage
		if err := json.Unmarshal(m.Params, &p); err != nil || len(p) != 2 {
			return fmt.Errorf("an update with params %.100s", m.Params)
		}
		return c.changed(p[1])
	case "locked", "stolen":
		c.mu.Lock()
		f := c.lock
		c.mu.Unlock()
		if f != nil {
			f(m.Method == "locked")
		}
	}
	return nil // not a method that was asked for
}

// changed passes table updates on (RFC 7047, section 4.1.6).
func (c *Client) changed(text json.RawMessage) error {
	var tables map[string]map[string]struct {
		New map[string]any `json:"new"`
	}
	if err := json.Unmarshal(text, &tables); err != nil {
		return err
	}
	if tables == nil { // an empty database has no tables, and is not null
		return errors.New("null, not tables")
	}
	t := Tables{}
	for name, rows := range tables {
		t[name] = map[string]map[string]any{}
		for id, r := range rows {
			t[name][id] = r.New
		}
	}
	c.mu.Lock()
	f := c.update
	c.mu.Unlock()
	if f != nil {
		f(t)
	}
	return nil
}

func (c *Client) send(m any) error {
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	c.sending.Lock()
	defer c.sending.Unlock()
	c.conn.SetWriteDeadline(time.Now().Add(sendTimeout))
	_, err = c.conn.Write(append(text, '\n'))
	return err
}

// call sends a request, and has Run pass its reply to f.
func (c *Client) call(ctx context.Context, method string, f func(result json.RawMessage) error, params ...any) error {
	done := make(chan error, 1)
	c.mu.Lock()
	if c.waiting == nil {
		defer c.mu.Unlock()
		return c.ended
	}
	c.last++
	id := c.last
	c.waiting[id] = func(result json.RawMessage, err error) {
		if err == nil {
			err = f(result)
		}
		done <- err
	}
	c.mu.Unlock()
	if err := c.send(map[string]any{"method": method, "params": params, "id": id}); err != nil {
		c.conn.Close() // half a message may have been sent
		return fmt.Errorf("ovsdb: %w", err)
	}
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// ask is call for what the server answers before all else. take returns what is wrong with the reply.
func (c *Client) ask(ctx context.Context, method string, take func(result json.RawMessage) error, params ...any) error {
	ctx, cancel := context.WithTimeoutCause(ctx, Answer, fmt.Errorf("ovsdb: %s: %w", method, ErrNoAnswer))
	defer cancel()
	return c.call(ctx, method, func(result json.RawMessage) error {
		if err := take(result); err != nil {
			return fmt.Errorf("ovsdb: a reply to %s: %w", method, err)
		}
		return nil
	}, params...)
}

// Monitor has update called with all rows of tables, by table and columns, and then with what each transaction changes.
// It is called once. update is called by Run, and must not call the Client. After an error the connection is of no use.
func (c *Client) Monitor(ctx context.Context, db string, columns map[string][]string, update func(Tables)) error {
	c.mu.Lock()
	c.update = update
	c.mu.Unlock()
	want := map[string]any{}
	for table, list := range columns {
		want[table] = []any{map[string]any{"columns": list}}
	}
	return c.ask(ctx, "monitor", c.changed, db, nil, want)
}

// Lock asks for a lock of the server (RFC 7047, section 4.1.8), which it gives to one client at a time, and takes back when the
// connection ends. told is called by Run with whether it is ours, at once and when that changes. It must not call the Client.
func (c *Client) Lock(ctx context.Context, id string, told func(ours bool)) error {
	c.mu.Lock()
	c.lock = told
	c.mu.Unlock()
	return c.ask(ctx, "lock", func(result json.RawMessage) error {
		var r struct {
			Locked *bool `json:"locked"`
		}
		if err := json.Unmarshal(result, &r); err != nil {
			return err
		}
		if r.Locked == nil {
			return errors.New("locked is missing")
		}
		told(*r.Locked)
		return nil
	}, id)
}

// Transact carries out operations, all or none. It returns the UUIDs of the rows that were inserted, by number of the operation.
// If ctx ends before the reply has come, nobody knows what became of them, and the connection ends: the next one says what is there.
func (c *Client) Transact(ctx context.Context, db string, ops ...Op) (inserted map[int]string, err error) {
	params := []any{db}
	for _, op := range ops {
		params = append(params, op)
	}
	inserted = map[int]string{}
	err = c.call(ctx, "transact", func(result json.RawMessage) error {
		var list []*struct {
			UUID    []string `json:"uuid"`
			Error   string   `json:"error"`
			Details string   `json:"details"`
		}
		if err := json.Unmarshal(result, &list); err != nil {
			return fmt.Errorf("ovsdb: a reply to transact: %w", err)
		}
		for i, r := range list {
			switch {
			case r == nil: // after an operation that has failed
			case r.Error != "" && i < len(ops):
				return fmt.Errorf("ovsdb: %v of %v is refused: %s: %s", ops[i]["op"], ops[i]["table"], r.Error, r.Details)
			case r.Error != "":
				return fmt.Errorf("ovsdb: the transaction is refused: %s: %s", r.Error, r.Details)
			case len(r.UUID) == 2:
				inserted[i] = r.UUID[1]
			}
		}
		if len(list) < len(ops) {
			return io.ErrUnexpectedEOF
		}
		return nil
	}, params...)
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		c.conn.Close()
	}
	return inserted, err
}
