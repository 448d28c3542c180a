package api

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	patience  = time.Minute     // timeout of requests other than streams
	dialing   = 5 * time.Second // timeout while the socket's queue is full
	large     = 1 << 20         // bytes: a body to ask about before it is sent
	maxAnswer = 1 << 30         // bytes: tables with millions of entries
	maxError  = 1 << 20         // bytes
	maxLine   = 16 << 20        // bytes of a line of a stream
)

// ErrEnded is the error of a stream that the node has ended: it was stopped, or the client read too slowly.
var ErrEnded = errors.New("the node closed the stream: it was stopped, or the output was read too slowly")

// A Client sends requests to a node. Methods may be called concurrently. An error that the node has answered with is an
// [*Error]. If no node listens on the socket, errors.Is reports [fs.ErrNotExist] or ECONNREFUSED.
type Client struct {
	socket string
	http   http.Client
}

// NewClient returns a client for the node with a control socket, by default [DefaultSocket]. It connects for each request.
func NewClient(socket string) *Client {
	c := &Client{socket: cmp.Or(socket, DefaultSocket)}
	c.http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse } // a node sends nobody elsewhere
	c.http.Transport = &http.Transport{DialContext: c.dial, DisableKeepAlives: true, ExpectContinueTimeout: dialing}
	return c
}

// Socket returns the path of the socket.
func (c *Client) Socket() string { return c.socket }

// dial connects, and retries while the queue of the socket is full.
func (c *Client) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialing)
	defer cancel()
	for {
		conn, err := new(net.Dialer).DialContext(ctx, "unix", c.socket)
		if err == nil {
			return &asking{UnixConn: conn.(*net.UnixConn), asked: make(chan struct{})}, nil
		}
		if !errors.Is(err, syscall.EAGAIN) || ctx.Err() != nil {
			return nil, err
		}
		time.Sleep(time.Millisecond)
	}
}

// An asking is a connection that is read after the first write. A node with too many clients answers before it is asked; net/http
// would log that, and return an error without a type (Go 1.26). A failed write is left to the reader for the same reason: the node's
// answer, or EOF, is there.
type asking struct {
	*net.UnixConn
	once  sync.Once
	asked chan struct{}
}

func (a *asking) Read(b []byte) (int, error) {
	<-a.asked
	return a.UnixConn.Read(b)
}

func (a *asking) Write(b []byte) (int, error) {
	defer a.ask()
	n, err := a.UnixConn.Write(b)
	if errors.Is(err, syscall.EPIPE) {
		return len(b), nil
	}
	return n, err
}

func (a *asking) Close() error {
	defer a.ask()
	return a.UnixConn.Close()
}

func (a *asking) ask() { a.once.Do(func() { close(a.asked) }) }

// open sends a request and returns the answer. tag is that of the configuration which it changes, if that matters.
func (c *Client) open(ctx context.Context, method, path string, query Query, body any, tag string) (*http.Response, error) {
	target := "http://node" + undotted(path)
	if len(query) > 0 {
		q := url.Values{}
		for k, v := range query {
			q.Set(k, v)
		}
		target += "?" + q.Encode()
	}
	text, ok := body.([]byte)
	if !ok && body != nil {
		var err error
		if text, err = json.Marshal(body); err != nil {
			return nil, err
		}
	}
	req, err := http.NewRequestWithContext(ctx, method, target, bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	if tag != "" {
		req.Header.Set("If-Match", tag)
	}
	if len(text) > large {
		req.Header.Set("Expect", "100-continue") // a node that does not want it says so before it is sent
	}
	resp, err := c.http.Do(req)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED):
		return nil, noNode{c.socket, err}
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE), errors.Is(err, io.EOF):
		return nil, hungUp{c.socket, err}
	case err != nil:
		return nil, fmt.Errorf("%s: %w", c.socket, errors.Unwrap(err))
	case resp.StatusCode == http.StatusOK:
		return resp, nil
	}
	defer resp.Body.Close()
	e := &Error{Status: resp.StatusCode}
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxError)).Decode(e); err != nil || e.Text == "" {
		return nil, fmt.Errorf("%s: status %s: is this the socket of a node?", c.socket, resp.Status)
	}
	return nil, e
}

// undotted escapes the names in a path that a server would take for this folder or the one above.
func undotted(path string) string {
	names := strings.Split(path, "/")
	for i, name := range names {
		if name == "." || name == ".." {
			names[i] = strings.ReplaceAll(name, ".", "%2E")
		}
	}
	return strings.Join(names, "/")
}

// noNode is the error of a socket without a node.
type noNode struct {
	socket string
	err    error
}

func (e noNode) Error() string { return "no node listens on " + e.socket }
func (e noNode) Unwrap() error { return e.err }

// hungUp is the error of a connection that the node has closed.
type hungUp struct {
	socket string
	err    error
}

func (e hungUp) Error() string {
	return e.socket + ": the node has closed the connection without an answer: it has ended, or has too many clients"
}
func (e hungUp) Unwrap() error { return e.err }

// Busy reports whether err is that of a node which has refused a request, or closed the connection, for the number of its clients.
// The request may be sent again. A node that ends closes connections as well.
func Busy(err error) bool {
	e, hung := (*Error)(nil), hungUp{}
	return errors.As(err, &e) && e.Status == http.StatusServiceUnavailable || errors.As(err, &hung)
}

// Do sends a request and returns the answer, whole. body is sent as JSON, or as it is if it is a []byte; nil = none.
func (c *Client) Do(ctx context.Context, method, path string, query Query, body any) ([]byte, error) {
	text, _, err := c.whole(ctx, method, path, query, body, "")
	return text, err
}

// whole is Do with the tags of what is sent and answered.
func (c *Client) whole(ctx context.Context, method, path string, query Query, body any, tag string) ([]byte, string, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	answer, err := c.open(ctx, method, path, query, body, tag)
	if err != nil {
		return nil, "", err
	}
	defer answer.Body.Close()
	text, err := c.readAll(answer.Body, maxAnswer)
	return text, answer.Header.Get("ETag"), err
}

func (c *Client) readAll(body io.Reader, limit int64) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(body, limit+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: incomplete answer: %w", c.socket, err)
	case int64(len(text)) > limit:
		return nil, fmt.Errorf("%s: answer larger than %d bytes: is this the socket of a node?", c.socket, limit)
	}
	return text, nil
}

// Lines sends a request and returns the lines of the answer until ctx is done. The last error is [ErrEnded] if the node ends
// the stream. A line is valid until the next.
func (c *Client) Lines(ctx context.Context, path string, query Query) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		answer, err := c.open(ctx, http.MethodGet, path, query, nil, "")
		if err != nil {
			yield(nil, err)
			return
		}
		defer answer.Body.Close()
		lines := bufio.NewScanner(answer.Body)
		lines.Buffer(nil, maxLine)
		lines.Split(wholeLines)
		for lines.Scan() {
			if !yield(lines.Bytes(), nil) {
				return
			}
		}
		yield(nil, cmp.Or(ctx.Err(), ErrEnded))
	}
}

// wholeLines is bufio.ScanLines without what a stream that breaks off has begun.
func wholeLines(data []byte, _ bool) (advance int, token []byte, err error) {
	if i := bytes.IndexByte(data, '\n'); i >= 0 {
		return i + 1, data[:i], nil
	}
	return 0, nil, nil
}
