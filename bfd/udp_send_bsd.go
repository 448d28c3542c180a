//go:build darwin || freebsd || netbsd || openbsd || dragonfly

package bfd

import (
	"net/netip"
	"strconv"
	"syscall"
)

// A destination is where a socket sends to.
type destination struct{ sa syscall.Sockaddr }

func (d *destination) set(a netip.Addr, port uint16) {
	if a.Is4() {
		d.sa = &syscall.SockaddrInet4{Addr: a.As4(), Port: int(port)}
		return
	}
	zone, _ := strconv.Atoi(a.Zone())
	d.sa = &syscall.SockaddrInet6{Addr: a.As16(), Port: int(port), ZoneId: uint32(zone)}
}

// send sends without waiting: the sockets of package net do not.
func (d *destination) send(fd uintptr, b []byte) error { return syscall.Sendto(int(fd), b, 0, d.sa) }
