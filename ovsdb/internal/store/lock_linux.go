package store

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// lock locks the file at path, which is open as long as the lock is to hold.
func lock(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	// Of the open file, not of the process: two databases of a program exclude each other, too.
	l := unix.Flock_t{Type: unix.F_WRLCK}
	err = unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &l)
	if err == nil {
		return f, nil
	}
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES) {
		err = errors.New("another program uses it")
		if unix.FcntlFlock(f.Fd(), unix.F_OFD_GETLK, &l) == nil && l.Pid > 0 {
			err = fmt.Errorf("process %d uses it", l.Pid)
		}
	}
	f.Close()
	return nil, err
}
