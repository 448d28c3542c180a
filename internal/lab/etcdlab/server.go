// Package etcdlab runs etcd for a test: the program, on loopback, with a folder and ports of its own.
package etcdlab

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// A Server is an etcd. Its methods end the test if they fail.
type Server struct {
	URL  string // of its clients
	Addr string // likewise, host and port

	t     testing.TB
	dir   string
	args  []string
	extra []string // of etcdctl
	cmd   *exec.Cmd
	said  *check.Log
}

// Options of a Server.
type Options struct {
	Scheme string   // default http
	Args   []string // more arguments of etcd
	Ctl    []string // more arguments of etcdctl
}

// Cluster starts several members of one etcd. Each ends with the test.
func Cluster(t testing.TB, n int, o Options) (list []*Server) {
	t.Helper()
	var peers, names []string
	for i := range n {
		peers = append(peers, "http://"+free(t))
		names = append(names, fmt.Sprintf("lab%d=%s", i, peers[i]))
	}
	var starting sync.WaitGroup
	for i := range n {
		m := o
		m.Args = append([]string{"--name", fmt.Sprintf("lab%d", i), "--listen-peer-urls", peers[i], "--initial-advertise-peer-urls", peers[i],
			"--initial-cluster", strings.Join(names, ",")}, o.Args...)
		s := prepare(t, m)
		list = append(list, s)
		s.run()
	}
	for _, s := range list {
		starting.Go(s.wait)
	}
	starting.Wait()
	if t.Failed() {
		t.FailNow()
	}
	return list
}

// Start starts an etcd, which ends with the test. Without the programs etcd and etcdctl the test is skipped, or, with CI=true in the
// environment, fails.
func Start(t testing.TB, o Options) *Server {
	t.Helper()
	s := prepare(t, o)
	s.Start()
	return s
}

func prepare(t testing.TB, o Options) *Server {
	t.Helper()
	if testing.Short() {
		t.Skip("lab: -short leaves out what needs etcd")
	}
	for _, tool := range []string{"etcd", "etcdctl"} {
		switch _, err := exec.LookPath(tool); {
		case err == nil:
		case os.Getenv("CI") == "true":
			t.Fatalf("lab: %v; CI=true forbids to skip", err)
		default:
			t.Skipf("lab: %v", err)
		}
	}
	if o.Scheme == "" {
		o.Scheme = "http"
	}
	s := &Server{t: t, dir: t.TempDir(), extra: o.Ctl}
	s.Addr = free(t)
	s.URL = o.Scheme + "://" + s.Addr
	peer := "http://" + free(t)
	s.args = append([]string{
		"--name", "lab", "--data-dir", filepath.Join(s.dir, "data"), "--listen-client-urls", s.URL, "--advertise-client-urls", s.URL,
		"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", "lab=" + peer,
		"--logger", "zap", "--unsafe-no-fsync",
	}, o.Args...)
	if out, err := exec.Command("etcd", "--help").CombinedOutput(); err != nil || !bytes.Contains(out, []byte("unsafe-no-fsync")) {
		s.args = append(s.args[:len(s.args)-len(o.Args)-1], o.Args...)
	}
	t.Cleanup(s.Stop)
	return s
}

// free returns a port that nobody listens on.
func free(t testing.TB) string {
	l := check.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer l.Close()
	return l.Addr().String()
}

// Start starts the etcd again, with what it had stored, and waits until it answers.
func (s *Server) Start() {
	s.t.Helper()
	s.run()
	s.wait()
	if s.t.Failed() {
		s.t.FailNow()
	}
}

func (s *Server) run() {
	s.t.Helper()
	s.said = new(check.Log)
	s.cmd = exec.Command("etcd", s.args...)
	s.cmd.Stdout, s.cmd.Stderr = s.said, s.said
	s.cmd.Env = append(os.Environ(), "ETCD_UNSUPPORTED_ARCH=arm64")
	if err := s.cmd.Start(); err != nil {
		s.t.Fatalf("lab: etcd: %v", err)
	}
}

// wait waits until the etcd answers.
func (s *Server) wait() {
	var err error
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if _, err = s.try("get", "health"); err == nil || strings.Contains(err.Error(), "user name is empty") {
			return
		}
	}
	s.t.Errorf("lab: etcd does not answer: %v\n%s", err, netns.Tail([]byte(s.said.String())))
}

// Stop stops the etcd. What it has stored stays until the test ends.
func (s *Server) Stop() {
	if s.cmd != nil {
		s.cmd.Process.Kill()
		s.cmd.Wait()
		s.cmd = nil
	}
}

// Ctl runs etcdctl for a test and returns what it prints.
func (s *Server) Ctl(t testing.TB, args ...string) string {
	t.Helper()
	out, err := s.try(args...)
	if err != nil {
		t.Fatalf("lab: etcdctl %s: %v", strings.Join(args, " "), err)
	}
	return out
}

func (s *Server) try(args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	c := exec.CommandContext(ctx, "etcdctl", append(append([]string{"--endpoints", s.URL}, s.extra...), args...)...)
	c.Env = append(os.Environ(), "ETCDCTL_API=3")
	var errs bytes.Buffer
	c.Stderr = &errs
	out, err := c.Output()
	if err != nil {
		err = fmt.Errorf("%w: %s", err, errs.Bytes())
	}
	return string(out), err
}

// Compact forgets all revisions but the newest.
func (s *Server) Compact(t testing.TB) {
	t.Helper()
	_, text, ok := strings.Cut(s.Ctl(t, "endpoint", "status", "-w", "json"), `"revision":`)
	n, _, end := strings.Cut(text, ",")
	if !ok || !end {
		t.Fatal("lab: etcdctl says no revision")
	}
	if _, err := s.try("compact", n); err != nil && !strings.Contains(err.Error(), "has been compacted") {
		t.Fatal(err)
	}
}
