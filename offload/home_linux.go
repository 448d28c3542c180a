package offload

import (
	"fmt"
	"os"
	"syscall"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/vxswitch/vxswitch/internal/sys"
)

// A home is the network namespace in which flows are carried.
type home struct {
	file *os.File // a socket there
	conn syscall.RawConn
	id   uint64 // SO_NETNS_COOKIE
	link *netlink.Handle
}

// openHome opens the namespace of the calling thread.
func openHome() (h *home, err error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	h = &home{file: os.NewFile(uintptr(fd), "rtnetlink socket")}
	if h.conn, err = h.file.SyscallConn(); err == nil {
		h.id, err = sys.Namespace(h.conn)
	}
	if err == nil && h.id == 0 {
		err = fmt.Errorf("SO_NETNS_COOKIE: must be Linux 5.14 or later")
	}
	if err == nil {
		h.link, err = netlink.NewHandle(unix.NETLINK_ROUTE)
	}
	if err != nil {
		h.file.Close()
		return nil, err
	}
	return h, nil
}

// do runs f there.
func (h *home) do(f func() error) error {
	return sys.Control(h.conn, func(fd int) error { return sys.InNamespaceOf(uintptr(fd), f) })
}

func (h *home) close() {
	h.link.Close()
	h.file.Close()
}
