package sys

import (
	"encoding/binary"
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// A LinkWatch tells what becomes of an interface, as rtnetlink(7) reports it to a multicast
// group. It is used by one goroutine; Close wakes it up.
type LinkWatch struct {
	file  *os.File
	index uint32
	buf   [16 << 10]byte // more than the description of an interface takes
}

// LinkState is what is known of an interface.
type LinkState struct {
	MTU      int  // without Ethernet header
	Carrier  bool // it is up, and has a carrier
	Ethernet bool // its frames have Ethernet headers, and it is no loopback
	Gone     bool // it was deleted, or moved to another network namespace
}

// carrier are the flags of an interface that is up and has a carrier.
const carrier = unix.IFF_UP | unix.IFF_RUNNING

// WatchLink begins to watch an interface in the network namespace of the calling thread.
func WatchLink(index int) (*LinkWatch, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.NETLINK_ROUTE)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	if err := unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Groups: unix.RTMGRP_LINK}); err != nil {
		unix.Close(fd)
		return nil, os.NewSyscallError("bind", err)
	}
	w := &LinkWatch{index: uint32(index)}
	if w.file, _, err = Pollable(fd, "rtnetlink socket"); err != nil {
		return nil, err
	}
	if err := w.ask(); err != nil {
		w.file.Close()
		return nil, err
	}
	return w, nil
}

// Close ends the watch: Next returns [os.ErrClosed].
func (w *LinkWatch) Close() { w.file.Close() }

// ask has the kernel describe the interface; Next gets the answer.
func (w *LinkWatch) ask() error {
	_, err := w.file.Write(getLink(w.index))
	return err
}

// Next waits for news of the interface. The first are what it is like now.
func (w *LinkWatch) Next() (LinkState, error) {
	for {
		n, err := w.file.Read(w.buf[:])
		if errors.Is(err, syscall.ENOBUFS) { // news got lost
			if err := w.ask(); err != nil {
				return LinkState{}, err
			}
			continue
		}
		if err != nil {
			return LinkState{}, err
		}
		if s, ok, err := w.last(w.buf[:n]); ok || err != nil {
			return s, err
		}
	}
}

// last returns what the last message says that is about the interface.
func (w *LinkWatch) last(b []byte) (s LinkState, ok bool, err error) {
	for len(b) >= unix.SizeofNlMsghdr {
		n := int(binary.NativeEndian.Uint32(b))
		if n < unix.SizeofNlMsghdr {
			break
		}
		m := b[:min(n, len(b))]
		b = b[min((n+3)&^3, len(b)):]
		switch typ := binary.NativeEndian.Uint16(m[4:]); {
		case typ == unix.NLMSG_ERROR && len(m) >= unix.SizeofNlMsghdr+4:
			// Only questions are answered so, and the only one is for this interface.
			if errno := syscall.Errno(-int32(binary.NativeEndian.Uint32(m[unix.SizeofNlMsghdr:]))); errno != unix.ENODEV {
				return s, false, errno
			}
			return LinkState{Gone: true}, true, nil
		case len(m) < attrAt || m[infoAt] != unix.AF_UNSPEC || binary.NativeEndian.Uint32(m[infoAt+4:]) != w.index:
			// Of AF_BRIDGE is also what a port that leaves its bridge sends: RTM_DELLINK.
		case typ == unix.RTM_DELLINK:
			return LinkState{Gone: true}, true, nil
		case typ == unix.RTM_NEWLINK:
			if mtu := attribute(m[attrAt:], unix.IFLA_MTU); len(mtu) >= 4 {
				s.MTU, ok = int(binary.NativeEndian.Uint32(mtu)), true
				s.Carrier = binary.NativeEndian.Uint32(m[infoAt+8:])&carrier == carrier
				s.Ethernet = binary.NativeEndian.Uint16(m[infoAt+2:]) == unix.ARPHRD_ETHER
			}
		}
	}
	return s, ok, nil
}
