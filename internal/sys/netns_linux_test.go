package sys

import (
	"errors"
	"net"
	"os"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// thread returns the identity of the calling thread's network namespace.
func thread(t *testing.T) string {
	t.Helper()
	s, err := os.Readlink("/proc/thread-self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestInNamespaceOf(t *testing.T) {
	h := netns.New(t).Host("a")
	var c *net.UDPConn
	var there string
	h.Do(func() {
		var err error
		if c, err = net.ListenUDP("udp4", nil); err != nil {
			t.Fatal(err)
		}
		there = thread(t)
	})
	defer c.Close()
	own, _ := udp(t)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	home := thread(t)
	if home == there {
		t.Fatal("one namespace")
	}
	boom := errors.New("boom")
	for _, tc := range []struct {
		c    *net.UDPConn
		want string
	}{{c, there}, {own, home}} {
		control(t, tc.c, func(fd uintptr) {
			in := ""
			if err := InNamespaceOf(fd, func() error { in = thread(t); return boom }); err != boom {
				t.Error(err)
			}
			if in != tc.want {
				t.Errorf("in %s, want %s", in, tc.want)
			}
		})
		if now := thread(t); now != home {
			t.Fatalf("in %s afterwards, want %s", now, home)
		}
	}
	if a, ok := netnsCookie(^uintptr(0)); ok {
		t.Errorf("cookie %d of no socket", a)
	}
	if err := InNamespaceOf(^uintptr(0), func() error { return unix.EINTR }); err != unix.EINTR {
		t.Errorf("where the kernel cannot tell: %v", err)
	}
}
