package main

import (
	"net"
	"syscall"
)

// peerOf returns who has connected.
func peerOf(c net.Conn) (w who) {
	u, ok := c.(*net.UnixConn)
	if !ok {
		return w
	}
	raw, err := u.SyscallConn()
	if err != nil {
		return w
	}
	raw.Control(func(fd uintptr) {
		if cred, err := syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED); err == nil {
			w = who{cred.Uid, cred.Pid}
		}
	})
	return w
}
