package main

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/vxswitch/vxswitch/node"
)

// A socket is a Unix socket in the file system.
type socket struct {
	path string
	mode fs.FileMode
	*net.UnixListener
	file fs.FileInfo
}

// openSocket makes the socket of a configuration, nil if it has none. It replaces a stale socket. A socket with a listener
// is an error.
func openSocket(c node.Control) (*socket, error) {
	if c.Socket == "" {
		return nil, nil
	}
	s, err := newSocket(c.Socket, modeOf(c))
	if err != nil {
		return nil, fmt.Errorf("control socket %s: %w", c.Socket, err)
	}
	return s, nil
}

func modeOf(c node.Control) fs.FileMode {
	if n, err := strconv.ParseUint(c.Mode, 8, 12); err == nil {
		return fs.FileMode(n)
	}
	return 0o600
}

// newSocket makes the directory of a path if it is missing. It makes the socket in a private directory, sets its permissions
// and moves it to its path, so that it never has other permissions.
func newSocket(path string, mode fs.FileMode) (*socket, error) {
	if err := stale(path); err != nil {
		return nil, err
	}
	folder := filepath.Dir(path)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, adviseSocket(folder, err)
	}
	dir, err := os.MkdirTemp(folder, ".vxs")
	if err != nil {
		return nil, adviseSocket(folder, err)
	}
	defer os.RemoveAll(dir)
	inside := filepath.Join(dir, "s")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: inside, Net: "unix"})
	if err != nil {
		return nil, err
	}
	l.SetUnlinkOnClose(false)
	s := &socket{path: path, mode: mode, UnixListener: l}
	if err = os.Chmod(inside, mode); err == nil {
		if err = os.Rename(inside, path); err == nil {
			s.file, err = os.Lstat(path)
		}
	}
	if err != nil {
		l.Close()
		return nil, err
	}
	return s, nil
}

// stale returns nil if path does not exist or is the socket of a process that has ended.
func stale(path string) error {
	f, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case f.Mode().Type() != fs.ModeSocket:
		return errors.New("the file exists and is not a socket: choose another path")
	}
	c, err := net.DialTimeout("unix", path, time.Second)
	switch {
	case err == nil:
		c.Close()
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, fs.ErrNotExist):
		return nil
	}
	return errors.New("another program listens on it: stop it, or choose another path")
}

// chmod changes the permissions.
func (s *socket) chmod(mode fs.FileMode) error {
	if s == nil || s.mode == mode {
		return nil
	}
	s.mode = mode
	return os.Chmod(s.path, mode)
}

// at returns the path, "" for nil.
func (s *socket) at() string {
	if s == nil {
		return ""
	}
	return s.path
}

// there reports whether the file is still this socket, and not removed or replaced. It returns true for nil.
func (s *socket) there() bool {
	if s == nil {
		return true
	}
	f, err := os.Lstat(s.path)
	return err == nil && os.SameFile(f, s.file)
}

// close stops listening and removes the file unless it was replaced.
func (s *socket) close() {
	if s == nil {
		return
	}
	if s.there() {
		os.Remove(s.path)
	}
	s.UnixListener.Close()
}
