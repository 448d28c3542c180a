package bgp

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"

	"golang.org/x/sys/unix"
)

// setPassword sets the key of TCP MD5 for a peer (RFC 2385).
func setPassword(fd uintptr, addr netip.Addr, password string) error {
	s := unix.TCPMD5Sig{Keylen: uint16(len(password))}
	copy(s.Key[:], password)
	if addr.Is4() {
		s.Addr.Family = unix.AF_INET
		a := addr.As4()
		for i, v := range a { // struct sockaddr_in: after the family, two bytes of port
			setByte(&s.Addr, 2+i, v)
		}
	} else {
		s.Addr.Family = unix.AF_INET6
		a := addr.As16()
		for i, v := range a { // struct sockaddr_in6: port, then four bytes of flow information
			setByte(&s.Addr, 6+i, v)
		}
	}
	if err := unix.SetsockoptTCPMD5Sig(int(fd), unix.IPPROTO_TCP, unix.TCP_MD5SIG, &s); err != nil {
		return fmt.Errorf("password: %w", err)
	}
	return nil
}

// setByte sets the i-th byte after the family.
func setByte(a *unix.SockaddrStorage, i int, v byte) { a.Data[i] = v }

// zoneOf returns the number of the interface that the other end's link-local address is on, "" if there is none.
func zoneOf(c net.Conn) (zone string) {
	raw, err := c.(*net.TCPConn).SyscallConn()
	if err != nil {
		return ""
	}
	_ = onSocket(raw, func(fd uintptr) error {
		a, err := unix.Getpeername(int(fd))
		if a, ok := a.(*unix.SockaddrInet6); ok {
			zone = strconv.Itoa(int(a.ZoneId))
		}
		return err
	})
	return zone
}

// setTTL sends with a TTL of 255 and wants what is received to have come over at most hops hops (RFC 5082).
func setTTL(fd uintptr, v4 bool, hops uint8) error {
	level, ttl, least := unix.IPPROTO_IPV6, unix.IPV6_UNICAST_HOPS, unix.IPV6_MINHOPCOUNT
	if v4 {
		level, ttl, least = unix.IPPROTO_IP, unix.IP_TTL, unix.IP_MINTTL
	}
	if err := unix.SetsockoptInt(int(fd), level, ttl, 255); err != nil {
		return fmt.Errorf("ttl: %w", err)
	}
	if err := unix.SetsockoptInt(int(fd), level, least, 256-int(hops)); err != nil {
		return fmt.Errorf("least ttl: %w", err)
	}
	return nil
}
