package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/vxswitch/vxswitch/internal/lab/check"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A fake is a node that says what it is told to.
type fake struct {
	socket  string
	mu      sync.Mutex
	answers map[string]string // by path; one that begins with a status has that
	asked   []string          // method, path and body
}

func newFake(t *testing.T) *fake {
	t.Helper()
	dir := check.Must(os.MkdirTemp("", "vxsctl"))(t) // a socket's path is short
	f := &fake{socket: filepath.Join(dir, "s"), answers: map[string]string{}}
	l := check.Must(net.Listen("unix", f.socket))(t)
	s := &http.Server{Handler: f}
	var serves sync.WaitGroup
	serves.Go(func() { s.Serve(l) })
	t.Cleanup(func() {
		s.Close()
		serves.Wait()
		os.RemoveAll(dir)
	})
	return f
}

// answer sets the answer to requests of a path. Programs may ask already.
func (f *fake) answer(path, text string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.answers[path] = text
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = append(f.asked, strings.TrimSpace(r.Method+" "+r.URL.String()+" "+string(body)))
	text := f.answers[r.URL.Path]
	status := 200
	if n, err := fmt.Sscanf(text, "%d ", &status); n == 1 && err == nil {
		_, text, _ = strings.Cut(text, " ")
	}
	w.WriteHeader(status)
	io.WriteString(w, text)
}

// last is what was asked last.
func (f *fake) last() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.asked) == 0 {
		return ""
	}
	return f.asked[len(f.asked)-1]
}

func do(ctx context.Context, args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	code = run(ctx, args, nil, &out, &errs)
	return code, out.String(), errs.String()
}

// do runs a command on the node.
func (f *fake) do(ctx context.Context, words ...string) (code int, stdout, stderr string) {
	return do(ctx, append([]string{"-socket", f.socket}, words...)...)
}
