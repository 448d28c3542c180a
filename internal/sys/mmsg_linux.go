package sys

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// Mmsghdr is struct mmsghdr of recvmmsg(2): a message header and, after the call,
// how many bytes of payload were moved. Go pads it as C does.
type Mmsghdr struct {
	Hdr unix.Msghdr
	Len uint32
}

// Recvmmsg receives up to len(msgs) messages and returns how many. The errno is 0
// when at least one arrived. A pending error of the socket is reported once, before
// any message, and is forgotten by that.
func Recvmmsg(fd uintptr, msgs []Mmsghdr, flags int) (int, unix.Errno) {
	if len(msgs) == 0 {
		return 0, 0
	}
	return mmsg(unix.SYS_RECVMMSG, fd, msgs, flags)
}

// Sendmmsg sends up to len(msgs) messages, in order, and returns how many went out;
// the kernel looks at no more than 1024. It stops at the first that fails. The
// reason is told only when that is the first of all; otherwise the caller learns
// it by trying the rest again, unless it was a pending error of the socket, which
// is forgotten once it has stopped a message.
func Sendmmsg(fd uintptr, msgs []Mmsghdr, flags int) (int, unix.Errno) {
	if len(msgs) == 0 {
		return 0, 0
	}
	return mmsg(unix.SYS_SENDMMSG, fd, msgs, flags)
}

// mmsg does not tell Go's scheduler of a call that does not wait (MSG_DONTWAIT): see
// transfer.
func mmsg(trap, fd uintptr, msgs []Mmsghdr, flags int) (n int, e unix.Errno) {
	var r uintptr
	if flags&unix.MSG_DONTWAIT != 0 {
		r, _, e = unix.RawSyscall6(trap, fd, uintptr(unsafe.Pointer(&msgs[0])), uintptr(len(msgs)), uintptr(flags), 0, 0)
	} else {
		r, _, e = unix.Syscall6(trap, fd, uintptr(unsafe.Pointer(&msgs[0])), uintptr(len(msgs)), uintptr(flags), 0, 0)
	}
	if e != 0 {
		return 0, e
	}
	return int(r), 0
}

// Discard throws away what waits in the receive buffer of a socket that refuses any more.
func Discard(fd uintptr) {
	var b [1]byte
	for {
		switch _, _, err := unix.Recvfrom(int(fd), b[:], unix.MSG_DONTWAIT|unix.MSG_TRUNC); err {
		case nil, unix.EINTR:
		default:
			return
		}
	}
}

// memDrops is SK_MEMINFO_DROPS, the last of the nine words of SO_MEMINFO
// (linux/sock_diag.h).
const memDrops = 8

// Drops returns how many packets the kernel has dropped at a socket because its
// receive buffer was full, a filter refused them or their checksum was wrong. It
// is a 32-bit counter that wraps (SO_MEMINFO, Linux 4.12).
//
// SO_RXQ_OVFL would tell the same beside each packet, and must not be asked for: when
// the packet is one that TCP of a guest on this machine made and a vxlan device of this
// kernel wrapped, copying the counter is a BUG in mm/usercopy.c that ends the thread and
// leaves the socket locked (put_cmsg out of an skb of skbuff_fclone_cache, with hardened
// usercopy; seen on Linux 6.18).
func Drops(fd uintptr) (uint32, bool) {
	var info [memDrops + 1]uint32
	n := uint32(unsafe.Sizeof(info))
	_, _, e := unix.Syscall6(unix.SYS_GETSOCKOPT, fd, unix.SOL_SOCKET, unix.SO_MEMINFO,
		uintptr(unsafe.Pointer(&info)), uintptr(unsafe.Pointer(&n)), 0)
	if e != 0 || n < uint32(unsafe.Sizeof(info)) {
		return 0, false
	}
	return info[memDrops], true
}
