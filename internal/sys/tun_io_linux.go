package sys

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ReadFD is read(2), once, without an allocation for any outcome.
func ReadFD(fd uintptr, p []byte) (int, syscall.Errno) {
	return transfer(unix.SYS_READ, fd, unsafe.Pointer(unsafe.SliceData(p)), len(p))
}

// WriteFD is write(2), once, without an allocation for any outcome.
func WriteFD(fd uintptr, p []byte) (int, syscall.Errno) {
	return transfer(unix.SYS_WRITE, fd, unsafe.Pointer(unsafe.SliceData(p)), len(p))
}

// A Gather is the scratch memory of writev(2). The zero value works.
type Gather struct{ iov []unix.Iovec }

// WriteFD writes the parts, at most 1024, in one piece. It allocates only to grow.
func (g *Gather) WriteFD(fd uintptr, parts [][]byte) (int, syscall.Errno) {
	iov := g.iov[:0]
	for _, p := range parts {
		v := unix.Iovec{Base: unsafe.SliceData(p)}
		v.SetLen(len(p))
		iov = append(iov, v)
	}
	n, errno := transfer(unix.SYS_WRITEV, fd, unsafe.Pointer(unsafe.SliceData(iov)), len(iov))
	clear(iov) // the parts are borrowed
	g.iov = iov
	return n, errno
}

// transfer does not tell Go's scheduler about the call, which does not wait: the descriptor
// is a non-blocking one. Of a call that it knows of, and that takes longer than 20 us, as one
// with a superframe does, the scheduler gives the processor away, and the goroutine comes
// back to find none.
func transfer(trap, fd uintptr, p unsafe.Pointer, n int) (int, syscall.Errno) {
	for {
		n, _, e := unix.RawSyscall(trap, fd, uintptr(p), uintptr(n))
		if e != unix.EINTR {
			return int(n), e
		}
	}
}
