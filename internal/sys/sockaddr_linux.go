package sys

import (
	"encoding/binary"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/vxswitch/vxswitch/frame"
)

// Sockaddr holds a raw socket address of either family: sockaddr_in6, whose first
// 16 bytes serve as sockaddr_in too.
type Sockaddr = unix.RawSockaddrInet6

// PutSockaddr writes e to sa as the kernel wants it for a socket of one family, and
// returns the length; 0 when e is of the other family. Ports are in network order.
func PutSockaddr(sa *Sockaddr, e *frame.Endpoint, is4 bool) uint32 {
	if e.Is4() != is4 {
		return 0
	}
	binary.BigEndian.PutUint16((*[2]byte)(unsafe.Pointer(&sa.Port))[:], e.Port)
	if is4 {
		sa4 := (*unix.RawSockaddrInet4)(unsafe.Pointer(sa))
		sa4.Family = unix.AF_INET
		sa4.Addr = [4]byte(e.IP[12:])
		return unix.SizeofSockaddrInet4
	}
	sa.Family = unix.AF_INET6
	sa.Flowinfo = 0
	sa.Addr = e.IP
	sa.Scope_id = e.Scope
	return unix.SizeofSockaddrInet6
}

// Endpoint reads a socket address of n bytes that the kernel wrote. It reports
// false when it is not IPv4 or IPv6.
func Endpoint(sa *Sockaddr, n uint32) (e frame.Endpoint, ok bool) {
	switch {
	case n >= unix.SizeofSockaddrInet4 && sa.Family == unix.AF_INET:
		sa4 := (*unix.RawSockaddrInet4)(unsafe.Pointer(sa))
		e.IP = [16]byte{10: 0xff, 11: 0xff}
		copy(e.IP[12:], sa4.Addr[:])
	case n >= unix.SizeofSockaddrInet6 && sa.Family == unix.AF_INET6:
		e.IP = sa.Addr
		e.Scope = sa.Scope_id
	default:
		return frame.Endpoint{}, false
	}
	e.Port = binary.BigEndian.Uint16((*[2]byte)(unsafe.Pointer(&sa.Port))[:])
	return e, true
}
