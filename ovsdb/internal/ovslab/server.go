// Package ovslab runs Debian's ovsdb-server with the schema hardware_vtep, and vtep-ctl, for tests.
package ovslab

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const schema = "/usr/share/openvswitch/vtep.ovsschema"

// A Server is a database on a Unix socket in a folder of the test.
type Server struct {
	t    testing.TB
	dir  string
	Sock string
	cmd  *exec.Cmd
}

// New makes a database and starts a server. Without the programs, the test is skipped.
func New(t testing.TB) *Server {
	t.Helper()
	for _, f := range []string{"ovsdb-server", "ovsdb-tool", "vtep-ctl"} {
		if _, err := exec.LookPath(f); err != nil {
			t.Skipf("%s is needed: package openvswitch-vtep", f)
		}
	}
	dir, err := os.MkdirTemp("", "ovs") // a Unix socket has a short name
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{t: t, dir: dir, Sock: filepath.Join(dir, "db.sock")}
	t.Cleanup(func() {
		s.Stop()
		os.RemoveAll(dir)
	})
	s.run("ovsdb-tool", "create", s.File(), schema)
	s.Start()
	return s
}

// File is the file of the database.
func (s *Server) File() string { return filepath.Join(s.dir, "vtep.db") }

func (s *Server) run(name string, args ...string) string {
	s.t.Helper()
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		s.t.Fatalf("%s %.300s: %v: %.1000s", name, strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// Start starts the server, with the rows that the file has.
func (s *Server) Start() {
	s.t.Helper()
	s.cmd = exec.Command("ovsdb-server", "--remote=punix:"+s.Sock, "--no-chdir", "--unixctl="+filepath.Join(s.dir, "ctl"), "--log-file="+filepath.Join(s.dir, "log"), s.File())
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	for range 500 {
		if conn, err := net.Dial("unix", s.Sock); err == nil {
			conn.Close()
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	s.t.Fatal("ovsdb-server does not listen")
}

// Swap exchanges the file of a stopped server with another one.
func (s *Server) Swap(file string) {
	s.t.Helper()
	for _, f := range [][2]string{{s.File(), s.File() + ".swap"}, {file, s.File()}, {s.File() + ".swap", file}} {
		if err := os.Rename(f[0], f[1]); err != nil {
			s.t.Fatal(err)
		}
	}
}

// Stop kills the server.
func (s *Server) Stop() {
	if s.cmd != nil {
		s.cmd.Process.Kill()
		s.cmd.Wait()
		os.Remove(s.Sock)
		s.cmd = nil
	}
}

// Target is where clients connect to.
func (s *Server) Target() string { return "unix:" + s.Sock }

// Ctl runs vtep-ctl, and returns what it prints. Commands are separated by "--".
func (s *Server) Ctl(args ...string) string {
	s.t.Helper()
	return s.run("vtep-ctl", append([]string{"--timeout=10", "--db=" + s.Target()}, args...)...)
}
