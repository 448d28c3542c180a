package sys

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// ErrNamespace is wrapped by the error of a thread that may not enter a namespace.
var ErrNamespace = errors.New("entering the network namespace")

// InNamespace runs f in the network namespace of a file such as /run/netns/blue:
// what f opens belongs to that namespace. f runs on a goroutine of its own;
// goroutines that it starts do not run in the namespace.
func InNamespace(path string, f func() error) error {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return inNamespace(fd, f)
}

// InNamespaceOf runs f in the network namespace of a socket, on this goroutine if it is
// there already: namespaces are compared by the cookies of their sockets
// (SO_NETNS_COOKIE, Linux 5.14). Going there needs CAP_NET_ADMIN in that namespace
// (SIOCGSKNS) and CAP_SYS_ADMIN (setns).
func InNamespaceOf(fd uintptr, f func() error) error {
	switch ok, err := here(fd); {
	case err != nil:
		return err
	case ok:
		return f()
	}
	ns, err := unix.IoctlRetInt(int(fd), unix.SIOCGSKNS)
	if err != nil {
		return fmt.Errorf("network namespace: SIOCGSKNS: %w", err)
	}
	defer unix.Close(ns)
	return inNamespace(ns, f)
}

func inNamespace(ns int, f func() error) error {
	res := make(chan error, 1)
	onThread(func() {
		if err := unix.Setns(ns, unix.CLONE_NEWNET); err != nil {
			res <- fmt.Errorf("%w: %w", ErrNamespace, err)
			return
		}
		res <- f()
	})
	return <-res
}

// onThread starts f on a goroutine with a thread of its own, which ends with it: there is no way back from another
// namespace that could fail, and no other goroutine ever runs there. Only the main thread of a process would not
// end and would hold the namespace: it is kept busy while another runs f.
func onThread(f func()) {
	go func() {
		runtime.LockOSThread()
		if unix.Gettid() != unix.Getpid() {
			f()
			return
		}
		defer runtime.UnlockOSThread()
		done := make(chan struct{})
		go func() {
			defer close(done)
			runtime.LockOSThread()
			f()
		}()
		<-done
	}()
}

// here reports whether the thread is in the network namespace of a socket, and true
// when the kernel cannot tell. It needs a descriptor, and without one nobody knows.
func here(fd uintptr) (bool, error) {
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err == unix.EAFNOSUPPORT {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("network namespace: %w", os.NewSyscallError("socket", err))
	}
	defer unix.Close(s)
	a, ok := netnsCookie(uintptr(s))
	b, ok2 := netnsCookie(fd)
	return !ok || !ok2 || a == b, nil
}

func netnsCookie(fd uintptr) (uint64, bool) {
	v, err := unix.GetsockoptUint64(int(fd), unix.SOL_SOCKET, unix.SO_NETNS_COOKIE)
	return v, err == nil
}

// Namespace returns the number of the network namespace of a socket, 0 before Linux 5.14 (SO_NETNS_COOKIE). No two namespaces
// have one number until the system is started again.
func Namespace(c syscall.RawConn) (ns uint64, err error) {
	err = Control(c, func(fd int) error {
		ns, _ = netnsCookie(uintptr(fd))
		return nil
	})
	return ns, err
}
