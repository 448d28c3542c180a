//go:build linux && (amd64 || arm64)

package fault

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// calls are the system calls that are failed: those that open and set up, and the wait for eBPF programs. To fail close, read or
// write, which the runtime makes for itself, would end the process.
var calls = map[int32]string{
	unix.SYS_SOCKET: "socket", unix.SYS_BIND: "bind", unix.SYS_CONNECT: "connect", unix.SYS_LISTEN: "listen",
	unix.SYS_SETSOCKOPT: "setsockopt", unix.SYS_GETSOCKOPT: "getsockopt", unix.SYS_GETSOCKNAME: "getsockname",
	unix.SYS_SENDTO: "sendto", unix.SYS_RECVFROM: "recvfrom", unix.SYS_IOCTL: "ioctl", unix.SYS_OPENAT: "openat",
	unix.SYS_EPOLL_CREATE1: "epoll_create1", unix.SYS_EPOLL_CTL: "epoll_ctl", unix.SYS_FCNTL: "fcntl",
	unix.SYS_EVENTFD2: "eventfd2", unix.SYS_PIPE2: "pipe2", unix.SYS_SETNS: "setns", unix.SYS_BPF: "bpf",
	unix.SYS_MEMBARRIER: "membarrier",
}

// fails reports whether a call of those is one that can fail: of fcntl a new descriptor.
func (n *notice) fails() bool {
	if n.nr == unix.SYS_FCNTL {
		return n.args[1] == unix.F_DUPFD || n.args[1] == unix.F_DUPFD_CLOEXEC
	}
	return n.nr != unix.SYS_EPOLL_CTL || n.args[1] == unix.EPOLL_CTL_ADD
}

// A notice is struct seccomp_notif, an answer struct seccomp_notif_resp (linux/seccomp.h).
type (
	notice struct {
		id         uint64
		pid, flags uint32
		nr         int32
		arch       uint32
		ip         uint64
		args       [6]uint64
	}
	answer struct {
		id    uint64
		val   int64
		err   int32
		flags uint32
	}
)

// A thread is one whose system calls are looked at, and let pass or failed.
type thread struct {
	listener int
	stop     int // an eventfd, to end watch
	done     chan struct{}

	mu   sync.Mutex
	left int   // calls until the one that fails; 0 = none does
	kind int   // which of its errnos it fails with
	at   Fault // the one that failed
}

// newThread makes the calling goroutine's thread, which is locked, such a thread. It stays one:
// the goroutine ends locked.
func newThread() (*thread, error) {
	prog := filter()
	f := unix.SockFprog{Len: uint16(len(prog)), Filter: &prog[0]}
	x := &thread{done: make(chan struct{})}
	var err error
	if x.stop, err = unix.Eventfd(0, unix.EFD_CLOEXEC); err != nil {
		return nil, os.NewSyscallError("eventfd", err)
	}
	fd, _, e := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_NEW_LISTENER, uintptr(unsafe.Pointer(&f)))
	if e != 0 {
		unix.Close(x.stop)
		return nil, os.NewSyscallError("seccomp", e)
	}
	x.listener = int(fd)
	go x.watch()
	return x, nil
}

// filter passes calls but those that are looked at.
func filter() []unix.SockFilter {
	arch := uint32(unix.AUDIT_ARCH_X86_64)
	if runtime.GOARCH == "arm64" {
		arch = unix.AUDIT_ARCH_AARCH64
	}
	load := func(off uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: off}
	}
	ret := func(v uint32) unix.SockFilter { return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: v} }
	const equal = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
	prog := []unix.SockFilter{load(4), {Code: equal, K: arch, Jt: 1}, ret(unix.SECCOMP_RET_ALLOW), load(0)}
	for nr := range calls {
		prog = append(prog, unix.SockFilter{Code: equal, K: uint32(nr), Jf: 1}, ret(unix.SECCOMP_RET_USER_NOTIF))
	}
	return append(prog, ret(unix.SECCOMP_RET_ALLOW))
}

// watch answers for the thread.
func (x *thread) watch() {
	defer close(x.done)
	for {
		fds := []unix.PollFd{{Fd: int32(x.listener), Events: unix.POLLIN}, {Fd: int32(x.stop), Events: unix.POLLIN}}
		if _, err := unix.Poll(fds, -1); err != nil && err != unix.EINTR {
			return
		}
		if fds[1].Revents != 0 {
			return
		}
		if fds[0].Revents&unix.POLLIN == 0 {
			continue
		}
		var n notice
		if _, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(x.listener), unix.SECCOMP_IOCTL_NOTIF_RECV, uintptr(unsafe.Pointer(&n))); e != 0 {
			continue // a signal was faster, and the call will come again
		}
		x.answer(&n)
	}
}

func (x *thread) answer(n *notice) {
	x.mu.Lock()
	defer x.mu.Unlock()
	left, at := x.left, x.at
	a := answer{id: n.id, flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE}
	if x.left > 0 && n.fails() {
		if x.left--; x.left == 0 {
			x.at.Call = calls[n.nr]
			all := errnos[x.at.Call]
			x.at.Errno = all[min(x.kind, len(all)-1)]
			a = answer{id: n.id, err: -int32(x.at.Errno)}
		}
	}
	if _, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(x.listener), unix.SECCOMP_IOCTL_NOTIF_SEND, uintptr(unsafe.Pointer(&a))); e != 0 {
		x.left, x.at = left, at // likewise
	}
}

// arm has the n-th call from here on fail, with the k-th of its errnos, or the last: it may be
// another call than the last time, where f ranges over a map or something else is ready first.
func (x *thread) arm(n, k int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.left, x.kind, x.at = n, k, Fault{N: n}
}

// disarm returns the call that has failed; false when there were fewer.
func (x *thread) disarm() (Fault, bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.left = 0
	return x.at, x.at.Call != ""
}

func (x *thread) close() {
	_, _ = unix.Write(x.stop, []byte{7: 1})
	<-x.done
	unix.Close(x.listener)
	unix.Close(x.stop)
}

// onThread runs f on a thread of its own, after enter, which may be nil: it takes the thread to
// another namespace, say.
func onThread(enter func() error, f func(x *thread) error) error {
	if os.Geteuid() != 0 {
		return fmt.Errorf("failing system calls: %w", errors.ErrUnsupported)
	}
	res := make(chan error, 1)
	go func() {
		err := errors.New("the function ended its goroutine")
		defer func() { res <- err }()
		runtime.LockOSThread() // never unlocked
		if enter != nil {
			if err = enter(); err != nil {
				return
			}
		}
		x, e := newThread()
		if err = e; err != nil {
			return
		}
		defer x.close()
		err = f(x)
	}()
	return <-res
}
