package underlay

import (
	"fmt"
	"io"
	"net"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/vxswitch/vxswitch/internal/sys"
)

// A pollConn is a socket that package net has opened.
type pollConn interface {
	net.PacketConn
	syscall.Conn
}

// A sock is a socket. Its descriptor is used only while the runtime holds it open.
type sock struct {
	io.Closer
	raw  syscall.RawConn
	conn pollConn // nil once it is unpolled
}

// unpolled removes a socket that no goroutine waits for from the runtime's poller.
func (s *sock) unpolled() (*sock, error) {
	defer s.Close()
	f, raw, err := sys.Unpolled(s.raw, "transmit socket")
	if err != nil {
		return nil, fmt.Errorf("underlay: %w", err)
	}
	return &sock{Closer: f, raw: raw}, nil
}

// port returns the port that the socket is bound to. Package net does not report errors of getsockname.
func (s *sock) port() (port uint16, err error) {
	err = sys.Control(s.raw, func(fd int) error {
		sa, err := unix.Getsockname(fd)
		switch x := sa.(type) {
		case *unix.SockaddrInet4:
			port = uint16(x.Port)
		case *unix.SockaddrInet6:
			port = uint16(x.Port)
		}
		return os.NewSyscallError("getsockname", err)
	})
	return port, err
}

// option returns the value of an integer option, 0 after Close.
func (s *sock) option(level, name int) (v int, err error) {
	err = sys.Control(s.raw, func(fd int) (err error) { v, err = unix.GetsockoptInt(fd, level, name); return err })
	return v, err
}

// setOption sets an option to 0 or 1.
func (s *sock) setOption(level, name int, on bool) error {
	v := 0
	if on {
		v = 1
	}
	return sys.Control(s.raw, func(fd int) error { return unix.SetsockoptInt(fd, level, name, v) })
}

// reusePort sets whether other sockets of the same user may share the socket's port.
func (s *sock) reusePort(on bool) error {
	if err := s.setOption(unix.SOL_SOCKET, unix.SO_REUSEPORT, on); err != nil {
		return fmt.Errorf("underlay: SO_REUSEPORT: %w", err)
	}
	return nil
}

// openWatched makes a transmit socket: a goroutine waits only for its errors.
func (u *base) openWatched(network string, port uint16, set func(fd int) error) (*txSock, error) {
	s, err := u.open(network, port, set)
	if err == nil {
		s, err = s.unpolled()
	}
	if err != nil {
		return nil, err
	}
	t := &txSock{sock: s}
	if err := u.watch.add(t); err != nil {
		t.Close()
		return nil, fmt.Errorf("underlay: waiting for errors: %w", err)
	}
	return t, nil
}
