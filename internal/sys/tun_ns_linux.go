package sys

import (
	"errors"
	"fmt"
	"runtime"

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

func inNamespace(ns int, f func() error) error {
	// Setns is for one thread. It is not unlocked and so ends with the goroutine:
	// there is no way back that could fail, and no other goroutine ever runs in the
	// foreign namespace.
	res := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		if err := unix.Setns(ns, unix.CLONE_NEWNET); err != nil {
			res <- fmt.Errorf("%w: %w", ErrNamespace, err)
			return
		}
		res <- f()
	}()
	return <-res
}
