package sys

import (
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// NewEpoll returns an epoll instance that the runtime's poller can wait for.
func NewEpoll(name string) (*os.File, syscall.RawConn, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", name, os.NewSyscallError("epoll_create1", err))
	}
	if err := unix.SetNonblock(fd, true); err != nil { // required by the poller
		unix.Close(fd)
		return nil, nil, fmt.Errorf("%s: %w", name, os.NewSyscallError("fcntl", err))
	}
	return Pollable(fd, name)
}

// EpollAdd adds a socket to an epoll instance, under a number.
func EpollAdd(ep, s syscall.RawConn, events uint32, number int32) error {
	return epollCtl(ep, s, unix.EPOLL_CTL_ADD, events, number)
}

// EpollChange has an epoll instance wait for other events of a socket, and look at once whether there are some.
func EpollChange(ep, s syscall.RawConn, events uint32, number int32) error {
	return epollCtl(ep, s, unix.EPOLL_CTL_MOD, events, number)
}

func epollCtl(ep, s syscall.RawConn, op int, events uint32, number int32) error {
	return Control(ep, func(epfd int) error {
		return Control(s, func(fd int) error {
			return os.NewSyscallError("epoll_ctl", unix.EpollCtl(epfd, op, fd, &unix.EpollEvent{Events: events, Fd: number}))
		})
	})
}
