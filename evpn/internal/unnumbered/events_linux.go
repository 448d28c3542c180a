package unnumbered

import (
	"encoding/binary"
	"errors"
	"os"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
)

// events hears from the kernel that an interface goes down, also for less than a tick.
type events struct {
	file  *os.File
	index int32
	down  atomic.Bool   // it went down, or is gone
	wake  chan struct{} // likewise
	begun bool
	falls uint32 // how often the carrier was lost
}

const carrierDownCount = 48 // IFLA_CARRIER_DOWN_COUNT

// newEvents is called where the interface is.
func newEvents(index int) (*events, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.NETLINK_ROUTE)
	if err != nil {
		return nil, err
	}
	e := &events{file: os.NewFile(uintptr(fd), "netlink"), index: int32(index), wake: make(chan struct{}, 1)}
	ask := make([]byte, unix.SizeofNlMsghdr+unix.SizeofIfInfomsg) // how it is now
	binary.NativeEndian.PutUint32(ask, uint32(len(ask)))
	binary.NativeEndian.PutUint16(ask[4:], unix.RTM_GETLINK)
	binary.NativeEndian.PutUint16(ask[6:], unix.NLM_F_REQUEST)
	binary.NativeEndian.PutUint32(ask[unix.SizeofNlMsghdr+4:], uint32(index))
	if err = unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Groups: unix.RTMGRP_LINK}); err == nil {
		_, err = e.file.Write(ask)
	}
	if err != nil {
		e.file.Close()
		return nil, err
	}
	return e, nil
}

// run reads until the file is closed. What is lost since there is too much is found out at the next tick.
func (e *events) run() {
	b := make([]byte, 64<<10)
	for {
		n, err := e.file.Read(b)
		if err != nil && !errors.Is(err, unix.ENOBUFS) {
			return
		}
		list, _ := syscall.ParseNetlinkMessage(b[:max(n, 0)])
		for i := range list {
			if e.fell(&list[i]) {
				e.down.Store(true)
				select {
				case e.wake <- struct{}{}:
				default:
				}
			}
		}
	}
}

// fell reports whether a message says that the interface went down, even if it is up again.
func (e *events) fell(m *syscall.NetlinkMessage) bool {
	of := m.Header.Type
	if of != unix.RTM_NEWLINK && of != unix.RTM_DELLINK || len(m.Data) < unix.SizeofIfInfomsg || int32(binary.NativeEndian.Uint32(m.Data[4:])) != e.index {
		return false
	}
	const up = unix.IFF_UP | unix.IFF_RUNNING
	if of == unix.RTM_DELLINK || binary.NativeEndian.Uint32(m.Data[8:])&up != up {
		return true
	}
	attrs, _ := syscall.ParseNetlinkRouteAttr(m)
	for _, a := range attrs {
		if a.Attr.Type == carrierDownCount && len(a.Value) == 4 {
			was, now := e.falls, binary.NativeEndian.Uint32(a.Value)
			e.falls = now
			if e.begun && now != was {
				return true
			}
			e.begun = true
		}
	}
	return false
}
