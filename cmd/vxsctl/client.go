package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"syscall"
	"time"

	"github.com/vxswitch/vxswitch/api"
)

// patience is the timeout of answers other than streams.
const patience = time.Minute

// A client sends requests to a node.
type client struct {
	socket string
	http   http.Client
}

func newClient(socket string) *client {
	return &client{socket: socket, http: http.Client{Transport: &http.Transport{
		DialContext:       func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx, socket) },
		DisableKeepAlives: true,
	}}}
}

// dial connects, and retries while the queue of the socket is full.
func dial(ctx context.Context, socket string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	for {
		c, err := new(net.Dialer).DialContext(ctx, "unix", socket)
		if !errors.Is(err, syscall.EAGAIN) || ctx.Err() != nil {
			return c, err
		}
		time.Sleep(time.Millisecond)
	}
}

// A refusal is an error from the node.
type refusal api.Error

func (r *refusal) Error() string { return r.Text }

// open sends a request and returns the answer's body.
func (c *client) open(ctx context.Context, method, path string, keys map[string]string, body any) (io.ReadCloser, error) {
	q := url.Values{}
	for k, v := range keys {
		q.Set(k, v)
	}
	var text []byte
	if body != nil {
		text, _ = json.Marshal(body) // of plain strings and numbers: cannot fail
	}
	u := url.URL{Scheme: "http", Host: "node", Path: path, RawQuery: q.Encode()}
	req, err := http.NewRequestWithContext(ctx, method, u.String(), bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	resp, err := c.http.Do(req)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED):
		return nil, fmt.Errorf(`no node listens on %s: start one with this "socket" in "control", or use -socket`, c.socket)
	case errors.Is(err, fs.ErrPermission):
		return nil, fmt.Errorf("no permission for %s: run as the user of the node, or change \"mode\" in its \"control\"", c.socket)
	case err != nil:
		return nil, fmt.Errorf("%s: %w", c.socket, errors.Unwrap(err))
	}
	if resp.StatusCode == http.StatusOK {
		return resp.Body, nil
	}
	defer resp.Body.Close()
	r := new(refusal)
	if err := json.NewDecoder(io.LimitReader(resp.Body, 1<<20)).Decode(r); err != nil || r.Text == "" {
		return nil, fmt.Errorf("%s: status %s: is this the socket of a node?", c.socket, resp.Status)
	}
	return nil, r
}

// get returns the answer to a request.
func (c *client) get(ctx context.Context, path string, keys map[string]string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	body, err := c.open(ctx, http.MethodGet, path, keys, nil)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	return readAnswer(c.socket, body, maxAnswer)
}

// maxAnswer is enough for tables with millions of entries.
const maxAnswer = 1 << 30

func readAnswer(socket string, body io.Reader, limit int64) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(body, limit+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: incomplete answer: %w", socket, err)
	case int64(len(text)) > limit:
		return nil, fmt.Errorf("%s: answer larger than %d bytes: is this the socket of a node?", socket, limit)
	}
	return text, nil
}

// post makes a change and prints the result.
func (s *session) post(ctx context.Context, path string, body any) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	answer, err := s.open(ctx, http.MethodPost, path, nil, body)
	if err != nil {
		return err
	}
	defer answer.Close()
	text, err := readAnswer(s.socket, answer, maxAnswer)
	if err != nil {
		return err
	}
	if s.json {
		_, err = s.out.Write(text)
		return err
	}
	var done api.Done
	if err := json.Unmarshal(text, &done); err != nil {
		return err
	}
	if path == "/v1/reload" { // like bridge, print nothing for other changes
		fmt.Fprintln(s.out, done.Done)
	}
	return nil
}
