package main

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
)

// An error of the system says what to do, and keeps what it was.
func TestAdvice(t *testing.T) {
	bind := func(errno syscall.Errno) error {
		return &net.OpError{Op: "listen", Net: "udp4", Err: os.NewSyscallError("bind", errno)}
	}
	for _, x := range []struct {
		err, is error
		want    string
	}{
		{advise(bind(syscall.EACCES)), fs.ErrPermission, "bind: permission denied: run as root, or with CAP_NET_BIND_SERVICE for a port below 1024"},
		{advise(syscall.EPERM), fs.ErrPermission, "operation not permitted: run as root, or with CAP_NET_ADMIN and CAP_NET_RAW"},
		{advise(fmt.Errorf("loading: %w; the process must have CAP_BPF", syscall.EPERM)), fs.ErrPermission, "CAP_BPF: run as root, or with these capabilities"},
		{advise(bind(syscall.EADDRINUSE)), syscall.EADDRINUSE, `stop the program or vxlan device that uses the port, or choose another "port"`},
		{advise(bind(syscall.EADDRNOTAVAIL)), syscall.EADDRNOTAVAIL, `"local" must be an address of this host`},
		{adviseMetrics(bind(syscall.EADDRINUSE)), syscall.EADDRINUSE, "address already in use: stop the program that uses the port, or choose another"},
		{adviseMetrics(bind(syscall.EADDRNOTAVAIL)), syscall.EADDRNOTAVAIL, "cannot assign requested address: must be an address of this host"},
		{adviseMetrics(bind(syscall.EACCES)), fs.ErrPermission, "CAP_NET_BIND_SERVICE"},
		{adviseSocket("/run/x", &fs.PathError{Op: "mkdir", Path: "/run/x/.vxs1", Err: syscall.EACCES}), fs.ErrPermission,
			"directory /run/x: permission denied: make it for the user of the node, or choose another path"},
		{adviseSocket("/proc/x", &fs.PathError{Op: "mkdir", Path: "/proc/x", Err: syscall.ENOENT}), fs.ErrNotExist, "directory /proc/x: no such file or directory"},
	} {
		if !strings.Contains(x.err.Error(), x.want) || !errors.Is(x.err, x.is) {
			t.Errorf("%v, want %s", x.err, x.want)
		}
	}
}
