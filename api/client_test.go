package api

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// answering returns a client of a server that answers every request in the same way.
func answering(t *testing.T, status int, body string) *Client {
	t.Helper()
	return serving(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		w.Write([]byte(body))
	})
}

// serving returns a client of a server.
func serving(t *testing.T, f http.HandlerFunc) *Client {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s")
	l := check.Must(net.Listen("unix", path))(t)
	s := http.Server{Handler: f}
	go s.Serve(l)
	t.Cleanup(func() { s.Close() })
	return NewClient(path)
}

// Whatever is on the other end of the socket, a client says in a line what is wrong with it.
func TestErrors(t *testing.T) {
	gone := filepath.Join(t.TempDir(), "gone")
	for _, x := range []struct {
		c    *Client
		want string
	}{
		{NewClient(gone), "no node listens on " + gone},
		{answering(t, 404, `{"error": "vni 7: no such segment"}`), "vni 7: no such segment"},
		{answering(t, 404, "404 page not found"), "status 404 Not Found: is this the socket of a node?"},
		{answering(t, 500, `{}`), "status 500 Internal Server Error: is this the socket of a node?"},
		{serving(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }), "the node has closed the connection without an answer: it has ended, or has too many clients"},
		{answering(t, 200, "<html>"), "invalid answer: "},
		{answering(t, 200, `{"fdb": 1}`), "invalid answer: "},
	} {
		if _, err := x.c.FDB(t.Context(), nil); err == nil || !strings.Contains(err.Error(), x.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v, want %q", err, x.want)
		}
	}
	if _, err := NewClient(gone).Stats(t.Context()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v", err)
	}
	var e *Error
	if err := answering(t, 409, `{"error": "no", "lines": ["a", "b"]}`).Reload(t.Context()); !errors.As(err, &e) || e.Status != 409 || len(e.Lines) != 2 {
		t.Errorf("%v %+v", err, e)
	}
	if _, err := NewClient("").readAll(strings.NewReader("12345"), 4); err == nil || !strings.Contains(err.Error(), "larger than 4 bytes") {
		t.Errorf("%v", err)
	}
}

// A node that refuses a connection before it has read the request is busy, as one that says so, and no other is.
func TestBusy(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	check.OK(t, err)
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			io.WriteString(c, "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n{\"error\":\"too many\"}\n")
			c.Close()
		}
	}()
	c := NewClient(path)
	for range 200 {
		if _, err := c.Stats(t.Context()); !Busy(err) || strings.Contains(err.Error(), "%!") {
			t.Fatal(err)
		}
	}
	for _, c := range []*Client{answering(t, 409, `{"error": "no"}`), NewClient(path + "x")} {
		if _, err := c.Stats(t.Context()); err == nil || Busy(err) {
			t.Error(err)
		}
	}
}

// A stream that the node ends is an error, and one that its reader ends is none.
func TestStreams(t *testing.T) {
	c := answering(t, 200, "{\"event\": \"port-up\"}\n{\"event\": \"port-down\"}\n")
	var got []string
	for e, err := range c.Monitor(t.Context()) {
		if err != nil {
			got = append(got, err.Error())
			break
		}
		got = append(got, e.Event)
	}
	if len(got) != 3 || got[0] != "port-up" || got[1] != "port-down" || got[2] != ErrEnded.Error() {
		t.Errorf("%q", got)
	}
	for range c.Monitor(t.Context()) {
		break
	}
	for _, err := range answering(t, 200, "nonsense\n").Trace(t.Context(), nil) {
		if err == nil || !strings.Contains(err.Error(), "invalid answer") {
			t.Error(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, err := range c.Monitor(ctx) {
		if !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
}

// A stream that breaks off within a line has ended, and a long line is one.
func TestBrokenLines(t *testing.T) {
	long := `{"event": "mac-moved", "dest": "` + strings.Repeat("x", 100_000) + `"}` + "\n"
	c := serving(t, func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, long+`{"event": "port-`)
		http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	})
	var events int
	var last error
	for e, err := range c.Monitor(t.Context()) {
		if last = err; err == nil && len(e.Dest) == 100_000 {
			events++
		}
	}
	if events != 1 || !errors.Is(last, ErrEnded) {
		t.Errorf("%d events, %v", events, last)
	}
}

// The end of a capture reaches the node, whose last words reach the client.
func TestCaptureEnds(t *testing.T) {
	c := serving(t, func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, r.URL.RawQuery)
		http.NewResponseController(w).Flush()
		<-r.Context().Done()
		io.WriteString(w, " and the rest")
	})
	x := check.Must(c.Capture(t.Context(), Query{"vni": "7", "filter": "tcp port 80"}))(t)
	defer x.Close()
	check.OK(t, x.End())
	text, err := io.ReadAll(x)
	if want := "filter=tcp+port+80&vni=7 and the rest"; err != nil || string(text) != want {
		t.Errorf("%v %q, want %q", err, text, want)
	}
	if _, err := answering(t, 409, `{"error": "no"}`).Capture(t.Context(), nil); err == nil || err.Error() != "no" {
		t.Errorf("%v", err)
	}
}
