package bfd

import (
	"net"

	"github.com/vxswitch/vxswitch/internal/sys"
)

// beside runs f, which opens a socket, in the network namespace of another socket: the Speaker's goroutine may be in a
// different one.
func beside(conn *net.UDPConn, f func() error) error {
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	if e := raw.Control(func(fd uintptr) { err = sys.InNamespaceOf(fd, f) }); e != nil {
		return e
	}
	return err
}
