//go:build !linux

package bgp

import (
	"errors"
	"net"
	"net/netip"
)

func setPassword(uintptr, netip.Addr, string) error {
	return errors.New("password: TCP MD5 needs Linux")
}

func zoneOf(c net.Conn) string {
	return withIndex(c.RemoteAddr().(*net.TCPAddr).AddrPort().Addr()).Zone()
}

func setTTL(uintptr, bool, uint8) error { return errors.New("hops: TTL security needs Linux") }
