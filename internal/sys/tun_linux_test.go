package sys_test

import (
	"errors"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/vxswitch/vxswitch/internal/lab/netns"
	"github.com/vxswitch/vxswitch/internal/sys"
)

func TestTunIsPollableAndNotInherited(t *testing.T) {
	h := netns.New(t).Host("h")
	h.Quiet()
	var tun *sys.Tun
	var err error
	h.Do(func() { tun, err = sys.OpenTAP("") })
	if err != nil {
		t.Fatal(err)
	}
	defer tun.Close()
	if name, err := tun.Name(); name != "tap0" || err != nil {
		t.Errorf("name %q, %v", name, err)
	}
	tun.Conn.Control(func(fd uintptr) {
		if fl, err := unix.FcntlInt(fd, unix.F_GETFD, 0); err != nil || fl&unix.FD_CLOEXEC == 0 {
			t.Errorf("a child process inherits the queue: flags %#x, %v", fl, err)
		}
		if fl, err := unix.FcntlInt(fd, unix.F_GETFL, 0); err != nil || fl&unix.O_NONBLOCK == 0 {
			t.Errorf("the queue is blocking: flags %#x, %v", fl, err)
		}
	})
	if err := tun.File.SetReadDeadline(time.Now().Add(10 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if _, err := tun.File.Read(make([]byte, 2000)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("Read: %v", err)
	}
}

func TestPairIsOneWrite(t *testing.T) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fds[0])
	defer unix.Close(fds[1])
	var p sys.Pair
	buf := make([]byte, 20)
	for _, c := range [][2]string{{"head", "rest"}, {"", "rest"}, {"head", ""}} {
		want := c[0] + c[1]
		if n, errno := p.WriteFD(uintptr(fds[0]), []byte(c[0]), []byte(c[1])); errno != 0 || n != len(want) {
			t.Errorf("write of %q: %d, %v", c, n, errno)
		}
		if n, errno := sys.ReadFD(uintptr(fds[1]), buf); errno != 0 || string(buf[:n]) != want {
			t.Errorf("read %q, %v, want %q", buf[:n], errno, want)
		}
	}
	if p != (sys.Pair{}) {
		t.Error("the parts are kept")
	}
	if _, errno := sys.WriteFD(1<<20, []byte("x")); errno != unix.EBADF {
		t.Errorf("write to nowhere: %v", errno)
	}
}
