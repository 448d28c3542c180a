//go:build unix

package main

import (
	"bytes"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/internal/lab/fake"
)

func modeAt(t *testing.T, path string) os.FileMode {
	t.Helper()
	f, err := os.Lstat(path)
	must(t, err)
	return f.Mode()
}

// hup has the file read again.
func (r *running) hup() error {
	r.t.Helper()
	n := strings.Count(r.out.String(), "reloaded\n")
	if err := syscall.Kill(os.Getpid(), syscall.SIGHUP); err != nil {
		return err
	}
	fake.Until(r.t, "reloaded", func() bool { return strings.Count(r.out.String(), "reloaded\n") > n })
	return nil
}

// The socket has its permissions, follows the configuration and goes with the node.
func TestSocket(t *testing.T) {
	r := begin(t, basic(t))
	if m := modeAt(t, r.socket); m != os.ModeSocket|0o600 {
		t.Errorf("%v", m)
	}
	if want := "ready segments=2 ports=0 tunnels=1 socket=" + r.socket + "\n"; r.out.String() != want {
		t.Errorf("%q, want %q", r.out.String(), want)
	}
	text, _ := os.ReadFile(r.file)
	r.write(strings.Replace(string(text), `{"socket"`, `{"mode": "0660", "socket"`, 1))
	r.ask("POST", "/v1/reload", "")
	if m := modeAt(t, r.socket); m != os.ModeSocket|0o660 {
		t.Errorf("%v", m)
	}
	old := r.socket
	os.Remove(old) // as one cleans up who knows no better
	if err := r.hup(); err != nil || modeAt(t, old) != os.ModeSocket|0o660 {
		t.Errorf("%v %v", err, modeAt(t, old))
	}
	r.write(strings.Replace(string(text), old, old+"2", 1))
	r.ask("POST", "/v1/reload", "")
	r.socket += "2"
	r.gets(200, "GET", "/v1/fdb", "")
	if _, err := os.Lstat(old); !os.IsNotExist(err) {
		t.Errorf("the old socket: %v", err)
	}
	if code := r.stop(); code != 0 {
		t.Errorf("status %d", code)
	}
	left, _ := os.ReadDir(filepath.Dir(r.socket))
	if len(left) != 1 || left[0].Name() != "node.json" {
		t.Errorf("left are %v", left)
	}
}

// What a dead process has left is replaced; what answers is not, nor is what is no socket.
func TestSocketTaken(t *testing.T) {
	r := begin(t, basic(t))
	other := filepath.Join(filepath.Dir(r.file), "other.json")
	another := func(socket string) (int, string) {
		t.Helper()
		text := strings.Replace(basic(t), "SOCKET", socket, 1)
		must(t, os.WriteFile(other, []byte(text), 0o644))
		var stderr bytes.Buffer
		ctx := t.Context()
		return run(ctx, []string{"-config", other}, &stderr, &stderr), stderr.String()
	}
	if code, text := another(r.socket); code != 1 || text != "vxswitchd: control socket "+r.socket+": another program listens on it: stop it, or choose another path\n" {
		t.Errorf("%d %q", code, text)
	}
	if code, text := another(r.file); code != 1 || !strings.Contains(text, "is not a socket") {
		t.Errorf("%d %q", code, text)
	}
	if code, text := another("/dev/null/sock"); code != 1 || !strings.Contains(text, "control socket /dev/null/sock: ") || !strings.Contains(text, "not a directory") {
		t.Errorf("%d %q", code, text)
	}
	r.gets(200, "GET", "/v1/fdb", "")
	r.stop()

	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: r.socket, Net: "unix"})
	must(t, err)
	l.SetUnlinkOnClose(false)
	l.Close() // as a process that was killed leaves it
	s, err := newSocket(r.socket, 0o600)
	must(t, err)
	defer s.close()
	if c, err := net.DialTimeout("unix", r.socket, time.Second); err != nil {
		t.Error(err)
	} else {
		c.Close()
	}
}

// A file that cannot be applied at SIGHUP is a line on standard error, found before anything is
// closed or after; the node goes on as it was, and the next file is taken.
func TestHangupFails(t *testing.T) {
	r := begin(t, basic(t))
	good, _ := os.ReadFile(r.file)
	tables := func() (list []string) {
		for _, path := range []string{"fdb", "neigh", "route", "flood", "config"} {
			_, text := r.ask("GET", "/v1/"+path, "")
			list = append(list, ages.ReplaceAllString(text, ""))
		}
		return list
	}
	before := tables()
	gateway := strings.NewReplacer("02:00:00:00:ff:10", "02:00:00:00:ff:11", "10.0.10.1/24", "10.0.10.2/24")
	for old, new := range map[string]string{
		`{"vni": 20}`: `{"vni": 20, "ageing": "613200h"}`,
		`"local"`:     `"bind": "nope0", "local"`, // found when the tunnel there was is closed
		`127.0.0.`:    `192.0.2.`,
	} {
		r.write(gateway.Replace(strings.ReplaceAll(string(good), old, new)))
		said := len(r.errs.String())
		must(t, syscall.Kill(os.Getpid(), syscall.SIGHUP))
		fake.Until(t, "the error", func() bool { return strings.HasSuffix(r.errs.String()[said:], "\n") })
		if text := r.errs.String()[said:]; strings.Count(text, "\n") != 1 || strings.Contains(text, "restoring") {
			t.Errorf("%s: %q", new, text)
		}
		if after := tables(); !slices.Equal(after, before) {
			t.Errorf("%s:\n%s\nbefore\n%s", new, after, before)
		}
	}
	r.write(gateway.Replace(string(good)))
	must(t, r.hup())
	if after := tables(); slices.Equal(after, before) {
		t.Error("the next file is not taken")
	}
}

// The folder of a socket is made.
func TestSocketFolder(t *testing.T) {
	r := begin(t, strings.ReplaceAll(basic(t), "SOCKET", "SOCKET.d/run/s"))
	if f, err := os.Stat(r.socket + ".d/run"); err != nil || f.Mode().Perm() != 0o755 {
		t.Errorf("%v %v", f, err)
	}
	if m := modeAt(t, r.socket+".d/run/s"); m != os.ModeSocket|0o600 {
		t.Errorf("%v", m)
	}
}
