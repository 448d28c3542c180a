package underlay

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// A pollConn is a socket that the net package has opened.
type pollConn interface {
	net.PacketConn
	syscall.Conn
}

// A sock is a socket whose descriptor is only touched while the runtime holds it
// open.
type sock struct {
	io.Closer
	raw  syscall.RawConn
	conn pollConn // nil once it is unpolled
}

// unpolled takes a socket that nobody will wait for out of the runtime's poller.
func (s *sock) unpolled() (*sock, error) {
	defer s.Close()
	var fd int
	var err error
	if e := s.raw.Control(func(old uintptr) {
		if fd, err = unix.FcntlInt(old, unix.F_DUPFD_CLOEXEC, 0); err == nil {
			err = unix.SetNonblock(fd, false) // os.NewFile goes by this; we send with MSG_DONTWAIT
		}
	}); e != nil || err != nil {
		return nil, fmt.Errorf("underlay: %w", errors.Join(e, os.NewSyscallError("fcntl", err)))
	}
	f := os.NewFile(uintptr(fd), "transmit socket")
	raw, err := f.SyscallConn()
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("underlay: %w", err)
	}
	return &sock{Closer: f, raw: raw}, nil
}

// port returns the port the socket is bound to. The net package does not say when it cannot tell.
func (s *sock) port() (port uint16, err error) {
	if e := s.raw.Control(func(fd uintptr) {
		var sa unix.Sockaddr
		switch sa, err = unix.Getsockname(int(fd)); x := sa.(type) {
		case *unix.SockaddrInet4:
			port = uint16(x.Port)
		case *unix.SockaddrInet6:
			port = uint16(x.Port)
		}
	}); e != nil {
		return 0, e
	}
	return port, os.NewSyscallError("getsockname", err)
}

func (s *sock) reusePort() (err error) {
	if e := s.raw.Control(func(fd uintptr) {
		err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1)
	}); e != nil {
		return e
	}
	return err
}

// openWatched makes a transmit socket: one that nobody waits for, except for its errors.
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
