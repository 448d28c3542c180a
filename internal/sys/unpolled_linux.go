package sys

import (
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// Unpolled returns a copy of a socket that the runtime's poller knows nothing of: the kernel wakes the poller for every packet
// that a socket in it has sent or received. Both are blocking then, since that is a property of the socket: close the original,
// and use MSG_DONTWAIT with the copy.
func Unpolled(c syscall.RawConn, name string) (*os.File, syscall.RawConn, error) {
	var fd int
	if err := Control(c, func(old int) (err error) {
		if fd, err = unix.FcntlInt(uintptr(old), unix.F_DUPFD_CLOEXEC, 0); err != nil {
			return os.NewSyscallError("fcntl", err)
		}
		if err = unix.SetNonblock(fd, false); err != nil { // os.NewFile polls what does not block
			unix.Close(fd)
		}
		return os.NewSyscallError("fcntl", err)
	}); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", name, err)
	}
	f := os.NewFile(uintptr(fd), name)
	raw, err := f.SyscallConn()
	if err != nil {
		f.Close()
		return nil, nil, fmt.Errorf("%s: %w", name, err)
	}
	return f, raw, nil
}
