package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/vxswitch/vxswitch/internal/sys"
)

const (
	netnsDir = "/run/netns"
	prefix   = "vxsways-" // of every namespace of a run; the process id follows
	patience = 20 * time.Second
)

// Addresses. What is sent to nobody goes to a MAC that no device has, so that the
// kernel behind a device forgets it early.
const (
	tapNobody  = "10.1.0.2" // behind the TAP of a
	wireNobody = "10.2.0.2" // behind the veth "blast" of a
	addrA      = "10.3.0.1" // on the veth "wire"
	addrB      = "10.3.0.2"
	macA, macB = "02:00:00:00:03:01", "02:00:00:00:03:02"
)

// A lab is two namespaces and what joins them:
//
//	a: tap     a TAP, persistent, that the measurements open
//	a: blast --- blast :b     without an address at b
//	a: wire  --- wire  :b     with an address at both ends
type lab struct {
	a, b string // namespaces
	cpus [2]int
}

func newLab(ctx context.Context) (_ *lab, err error) {
	if os.Geteuid() != 0 {
		return nil, errors.New("network namespaces need root: run it with sudo")
	}
	if _, err := exec.LookPath("ip"); err != nil {
		return nil, errors.New("ip is not installed: install the Debian package iproute2")
	}
	id := prefix + strconv.Itoa(os.Getpid())
	l := &lab{a: id + "-a", b: id + "-b"}
	if l.cpus, err = twoCPUs(); err != nil {
		return nil, err
	}
	if err := sweep(); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, l.close())
		}
	}()
	if err := ip(ctx, "", "netns add "+l.a, "netns add "+l.b); err != nil {
		return nil, err
	}
	for _, ns := range []string{l.a, l.b} { // router solicitations are packets too
		if err := sys.InNamespace(nsPath(ns), func() error {
			err := os.WriteFile("/proc/sys/net/ipv6/conf/default/disable_ipv6", []byte("1"), 0)
			if errors.Is(err, os.ErrNotExist) {
				return nil // a kernel without IPv6
			}
			return err
		}); err != nil {
			return nil, err
		}
	}
	if err := ip(ctx, l.a,
		"tuntap add tap mode tap vnet_hdr",
		"addr add 10.1.0.1/24 dev tap",
		"link set tap up",
		"neigh add "+tapNobody+" lladdr 02:00:00:00:00:02 dev tap nud permanent",
		"link add blast type veth peer name blast netns "+l.b,
		"addr add 10.2.0.1/24 dev blast",
		"link set blast up",
		"neigh add "+wireNobody+" lladdr 02:00:00:00:00:02 dev blast nud permanent",
		"link add wire address "+macA+" type veth peer name wire address "+macB+" netns "+l.b,
		"addr add "+addrA+"/24 dev wire",
		"link set wire up"); err != nil {
		return nil, err
	}
	return l, ip(ctx, l.b, "link set blast up", "addr add "+addrB+"/24 dev wire", "link set wire up")
}

// close removes the namespaces, and with them the devices.
func (l *lab) close() error { return errors.Join(remove(l.a), remove(l.b)) }

// nsPath is where a namespace can be opened.
func nsPath(ns string) string { return filepath.Join(netnsDir, ns) }

// remove deletes a namespace. One that does not exist is no error.
func remove(ns string) error {
	if _, err := os.Stat(nsPath(ns)); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return ip(context.Background(), "", "netns del "+ns)
}

// sweep removes what runs left that no longer exist.
func sweep() (err error) {
	left, _ := filepath.Glob(filepath.Join(netnsDir, prefix+"*"))
	for _, path := range left {
		ns := filepath.Base(path)
		owner, _, _ := strings.Cut(strings.TrimPrefix(ns, prefix), "-")
		if pid, e := strconv.Atoi(owner); e == nil && errors.Is(unix.Kill(pid, 0), unix.ESRCH) {
			err = errors.Join(err, remove(ns))
		}
	}
	return err
}

// ip has iproute2 execute lines of commands in a namespace, or outside if ns is "".
func ip(ctx context.Context, ns string, lines ...string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	args := []string{"-batch", "-"}
	if ns != "" {
		args = append([]string{"-n", ns}, args...)
	}
	c := exec.CommandContext(ctx, "ip", args...)
	c.Stdin = strings.NewReader(strings.Join(lines, "\n") + "\n")
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // an interrupt from the terminal is ours alone
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("ip: %w: %s: %s", err, strings.Join(lines, "; "), out)
	}
	return nil
}

// kernel is the release of the kernel.
func kernel() string {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return err.Error()
	}
	return unix.ByteSliceToString(u.Release[:])
}

// groups is everything that is measured.
func groups() []group {
	return []group{smallGroup(), superGroup(), sendGroup(), waitGroup(), ipipGroup()}
}
