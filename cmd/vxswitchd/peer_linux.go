package main

import (
	"fmt"
	"net"
	"syscall"
)

// peerOf returns who has connected.
func peerOf(c net.Conn) (w who) {
	u, ok := c.(*net.UnixConn)
	if !ok {
		return hostOf(c)
	}
	raw, err := u.SyscallConn()
	if err != nil {
		return w
	}
	raw.Control(func(fd uintptr) {
		if cred, err := syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED); err == nil {
			w = who{fmt.Sprint("uid ", cred.Uid), cred.Pid}
		}
	})
	return w
}
