package sys

import (
	"fmt"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Pollable makes a file of a non-blocking descriptor that the runtime waits for, and closes it on
// error. os.NewFile keeps silent about a descriptor that the poller has no room for (ENOMEM, and
// ENOSPC of fs.epoll.max_user_watches): its reads fail as soon as they would have to wait, and
// deadlines do not end them.
func Pollable(fd int, name string) (*os.File, syscall.RawConn, error) {
	f := os.NewFile(uintptr(fd), name)
	c, err := f.SyscallConn()
	if err == nil {
		err = polled(f)
	}
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, c, nil
}

// Control calls f with a descriptor, which stays open and in the poller meanwhile.
func Control(c syscall.RawConn, f func(fd int) error) (err error) {
	if e := c.Control(func(fd uintptr) { err = f(int(fd)) }); e != nil {
		return e
	}
	return err
}

func polled(f *os.File) error {
	if f.SetDeadline(time.Time{}) != nil {
		return fmt.Errorf("%s: the poller does not take it: %w", f.Name(), unix.ENOMEM)
	}
	return nil
}
