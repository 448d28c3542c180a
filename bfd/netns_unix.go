//go:build darwin || freebsd || netbsd || openbsd || dragonfly

package bfd

import "net"

func beside(_ *net.UDPConn, f func() error) error { return f() }
