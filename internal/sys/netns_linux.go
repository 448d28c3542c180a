package sys

import (
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// InNamespaceOf runs f on a thread that is in the network namespace of a socket, and
// returns its error. f runs on the calling goroutine; what it opens belongs to that
// namespace.
//
// A thread that is there already is left alone: namespaces are compared by the cookies
// of their sockets (SO_NETNS_COOKIE, Linux 5.14). Going there needs CAP_NET_ADMIN in
// that namespace (SIOCGSKNS) and CAP_SYS_ADMIN (setns).
func InNamespaceOf(fd uintptr, f func() error) error {
	runtime.LockOSThread()
	if here(fd) {
		defer runtime.UnlockOSThread()
		return f()
	}
	home, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		runtime.UnlockOSThread()
		return fmt.Errorf("network namespace: %w", err)
	}
	defer home.Close()
	there, err := unix.IoctlRetInt(int(fd), unix.SIOCGSKNS)
	if err != nil {
		runtime.UnlockOSThread()
		return fmt.Errorf("SIOCGSKNS: %w", err)
	}
	defer unix.Close(there)
	if err := unix.Setns(there, unix.CLONE_NEWNET); err != nil {
		runtime.UnlockOSThread()
		return fmt.Errorf("setns: %w", err)
	}
	// In a defer, for an f that panics. A thread that cannot come back stays locked, and
	// the runtime ends it with the goroutine.
	defer func() {
		if unix.Setns(int(home.Fd()), unix.CLONE_NEWNET) == nil {
			runtime.UnlockOSThread()
		}
	}()
	return f()
}

// here reports whether the thread is in the network namespace of a socket, and true
// when the kernel cannot tell.
func here(fd uintptr) bool {
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return true
	}
	defer unix.Close(s)
	a, ok := netnsCookie(uintptr(s))
	b, ok2 := netnsCookie(fd)
	return !ok || !ok2 || a == b
}

func netnsCookie(fd uintptr) (uint64, bool) {
	v, err := unix.GetsockoptUint64(int(fd), unix.SOL_SOCKET, unix.SO_NETNS_COOKIE)
	return v, err == nil
}
