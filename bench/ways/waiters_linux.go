package main

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// receive1 is recvfrom(2), once; 0 bytes if there is nothing. An echo that found nobody
// is told as ECONNREFUSED later, and is nothing too.
func receive1(fd int, p []byte, flags int) (int, error) {
	n, _, e := unix.Syscall6(unix.SYS_RECVFROM, uintptr(fd), uintptr(unsafe.Pointer(&p[0])), uintptr(len(p)), uintptr(flags), 0, 0)
	switch e {
	case 0:
		return int(n), nil
	case unix.EAGAIN, unix.EINTR, unix.ECONNREFUSED:
		return 0, nil
	}
	return 0, fmt.Errorf("recv: %w", e)
}

// pollerWait is the way used now: Go parks the goroutine, and whatever thread looks at
// epoll next makes it run again. The runtime's epoll is edge-triggered and has all
// descriptors of the program in it.
type pollerWait struct {
	file *os.File
	conn syscall.RawConn
	p    []byte
	n    int
	err  error
	read func(fd uintptr) bool
	left int // calls until the deadline is moved
}

func newPollerWait(fd int) (waiter, error) {
	w := &pollerWait{file: os.NewFile(uintptr(fd), "socket")}
	var err error
	if w.conn, err = w.file.SyscallConn(); err != nil {
		return nil, err
	}
	w.read = func(fd uintptr) bool { // made once: a closure a call is an allocation
		w.n, w.err = receive1(int(fd), w.p, 0)
		return w.n > 0 || w.err != nil
	}
	return w, nil
}

func (w *pollerWait) wake()  { w.file.SetReadDeadline(time.Now()) }
func (w *pollerWait) Close() { w.file.Close() }

func (w *pollerWait) recv(p []byte) (int, error) {
	if w.left == 0 {
		w.file.SetReadDeadline(time.Now().Add(250 * time.Millisecond))
		w.left = 64
	}
	w.left--
	w.p, w.n, w.err = p, 0, nil
	err := w.conn.Read(w.read)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		w.left = 0
		return 0, nil
	}
	return w.n, errors.Join(err, w.err)
}

// descriptor is what the other waiters have in common.
type descriptor int

func (descriptor) wake()    {}
func (d descriptor) Close() { unix.Close(int(d)) }

// blockingWait sleeps in recvfrom itself: one system call a datagram, on a thread of its
// own. Nothing wakes it but a datagram or the time-out of the socket, so a program that
// wants to end it needs one of both.
type blockingWait struct{ descriptor }

func newBlockingWait(fd int) (waiter, error) {
	if err := unix.SetNonblock(fd, false); err != nil {
		return nil, err
	}
	limit := unix.NsecToTimeval(tick * 1e6)
	return blockingWait{descriptor(fd)}, unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &limit)
}

func (w blockingWait) recv(p []byte) (int, error) { return receive1(int(w.descriptor), p, 0) }

// pollWait waits in poll and then receives: two system calls, and it can wait for an
// eventfd beside the socket, which wakes it.
type pollWait struct{ descriptor }

func newPollWait(fd int) (waiter, error) { return pollWait{descriptor(fd)}, nil }

func (w pollWait) recv(p []byte) (int, error) {
	if err := wait(int(w.descriptor)); err != nil {
		return 0, err
	}
	return receive1(int(w.descriptor), p, unix.MSG_DONTWAIT)
}

// epollWait is the same by epoll, level-triggered: the socket's queue is joined once and
// not for each wait.
type epollWait struct {
	descriptor
	epoll  int
	events []unix.EpollEvent
}

func newEpollWait(fd int) (waiter, error) {
	ep, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, refused("epoll_create1", err)
	}
	if err := unix.EpollCtl(ep, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(fd)}); err != nil {
		unix.Close(ep)
		return nil, fmt.Errorf("epoll_ctl: %w", err)
	}
	return &epollWait{descriptor(fd), ep, make([]unix.EpollEvent, 1)}, nil
}

func (w *epollWait) Close() {
	unix.Close(w.epoll)
	w.descriptor.Close()
}

func (w *epollWait) recv(p []byte) (int, error) {
	if _, err := unix.EpollWait(w.epoll, w.events, tick); err != nil && err != unix.EINTR {
		return 0, fmt.Errorf("epoll_wait: %w", err)
	}
	return receive1(int(w.descriptor), p, unix.MSG_DONTWAIT)
}

// spinWait asks again and again before it waits in poll. It is fast as long as the other
// end answers within the time and has a CPU of its own; where the two must share one, a
// spin keeps the answer from being made, unless it yields. All of the waiting is CPU time.
type spinWait struct {
	descriptor
	yield bool
}

// spinTime bounds a spin before it blocks.
const spinTime = 100 * time.Microsecond

func newSpinWait(fd int, yield bool) (waiter, error) { return &spinWait{descriptor(fd), yield}, nil }

func (w *spinWait) recv(p []byte) (int, error) {
	for begin := time.Now(); ; {
		n, err := receive1(int(w.descriptor), p, unix.MSG_DONTWAIT)
		switch {
		case n > 0 || err != nil:
			return n, err
		case time.Since(begin) > spinTime:
			if err := wait(int(w.descriptor)); err != nil {
				return 0, err
			}
			return receive1(int(w.descriptor), p, unix.MSG_DONTWAIT)
		case w.yield:
			unix.Syscall(unix.SYS_SCHED_YIELD, 0, 0, 0)
		}
	}
}
