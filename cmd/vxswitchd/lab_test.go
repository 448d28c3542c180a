package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/fake"
)

var folder string // for sockets, whose paths must be short, and programs

func TestMain(m *testing.M) {
	os.Exit(func() int {
		var err error
		if folder, err = os.MkdirTemp("", "node"); err != nil {
			panic(err)
		}
		defer os.RemoveAll(folder)
		if code := m.Run(); code != 0 {
			return code
		}
		// The server of net/http leaves a client it has refused half a second to read why.
		if err := goleak.Find(goleak.IgnoreAnyFunction("net/http.(*conn).closeWriteAndWait")); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return 0
	}())
}

// A running is a node inside the test.
type running struct {
	t            *testing.T
	file, socket string
	out, errs    check.Log
	client       http.Client
	stop         func() int // ends it and returns its exit status
}

// begin starts a node with a configuration, in which SOCKET is its socket, and flags.
func begin(t *testing.T, text string, flags ...string) *running {
	t.Helper()
	dir, err := os.MkdirTemp(folder, "")
	must(t, err)
	r := &running{t: t, file: filepath.Join(dir, "node.json"), socket: filepath.Join(dir, "sock")}
	r.write(text)
	r.client.Transport = &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			for {
				c, err := new(net.Dialer).DialContext(ctx, "unix", r.socket)
				if !errors.Is(err, syscall.EAGAIN) { // so many are waiting already
					return c, err
				}
				time.Sleep(time.Millisecond)
			}
		},
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan int, 1)
	go func() { ended <- run(ctx, append([]string{"-config", r.file}, flags...), &r.out, &r.errs) }()
	r.stop = sync.OnceValue(func() int {
		cancel()
		select {
		case code := <-ended:
			return code
		case <-time.After(10 * time.Second):
			t.Error("the node does not end")
			return -1
		}
	})
	t.Cleanup(func() { r.stop() })
	fake.Until(t, "ready", func() bool {
		if len(ended) > 0 {
			t.Fatalf("ended: %s", r.errs.String())
		}
		return strings.Contains(r.out.String(), "ready ")
	})
	return r
}

func (r *running) write(text string) {
	r.t.Helper()
	must(r.t, os.WriteFile(r.file, []byte(strings.ReplaceAll(text, "SOCKET", r.socket)), 0o644))
}

// ask sends a request and returns status and body.
func (r *running) ask(method, path, body string) (int, string) {
	r.t.Helper()
	req := check.Must(http.NewRequest(method, "http://node"+path, strings.NewReader(body)))(r.t)
	resp := check.Must(r.client.Do(req))(r.t)
	defer resp.Body.Close()
	text := check.Must(io.ReadAll(resp.Body))(r.t)
	if !json.Valid(text) {
		r.t.Errorf("%s %s: no JSON: %q", method, path, text)
	}
	return resp.StatusCode, string(text)
}

// gets sends a request, whose answer has to have a status and texts.
func (r *running) gets(status int, method, path, body string, texts ...string) {
	r.t.Helper()
	got, answer := r.ask(method, path, body)
	if got != status || slices.ContainsFunc(texts, func(s string) bool { return !strings.Contains(answer, s) }) {
		r.t.Errorf("%s %s %.80s: %d %s, want %d %q", method, path, body, got, answer, status, texts)
	}
}

// get returns what is at a path.
func get[T any](r *running, path string) (x T) {
	r.t.Helper()
	_, text := r.ask("GET", path, "")
	must(r.t, json.Unmarshal([]byte(text), &x))
	return x
}

// open begins a stream, which ends with the test.
func (r *running) open(path string) *http.Response {
	r.t.Helper()
	resp := check.Must(r.client.Get("http://node" + path))(r.t)
	r.t.Cleanup(func() { resp.Body.Close() })
	return resp
}

// basic is a node with segments, without devices.
func basic(t *testing.T) string {
	return fmt.Sprintf(`{
  "tunnels": [{"name": "vx", "local": "127.0.0.1", "port": %d}],
  "segments": [
    {"vni": 10, "tunnel": "vx", "flood": ["127.0.0.2"], "fdb": [{"mac": "02:00:00:00:00:09", "remote": "127.0.0.2"}],
     "neighbours": {"mode": "suppress", "static": [{"ip": "10.0.10.9", "mac": "02:00:00:00:00:09"}]},
     "gateway": {"vrf": "red", "addresses": ["10.0.10.1/24"], "mac": "02:00:00:00:ff:10"}, "policy": "p"},
    {"vni": 20}
  ],
  "policies": [{"name": "p", "rules": [{"name": "web", "action": "allow", "protocol": 6}]}],
  "vrfs": [{"name": "red", "routes": [{"prefix": "10.1.0.0/16", "via": [{"segment": 10, "ip": "10.0.10.9"}]}, {"prefix": "10.2.0.0/16"}]}],
  "control": {"socket": "SOCKET"}
}`, freePort(t))
}

// freePort returns a UDP port that nobody uses.
func freePort(t *testing.T) int {
	t.Helper()
	c := check.Must(net.ListenPacket("udp4", "127.0.0.1:0"))(t)
	defer c.Close()
	return c.LocalAddr().(*net.UDPAddr).Port
}

var must = check.OK

// silent logs nothing.
var silent = slog.New(slog.DiscardHandler)
