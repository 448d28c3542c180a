package sys

import (
	"errors"
	"net"
	"os"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// thread returns the identity of the calling thread's network namespace.
func thread(t *testing.T) string {
	t.Helper()
	s := check.Must(os.Readlink("/proc/thread-self/ns/net"))(t)
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

// Without a descriptor to ask with, f does not run: it might be in another namespace than
// the socket's, and what it opens, once there is a descriptor again, too.
func TestInNamespaceOfWithoutDescriptors(t *testing.T) {
	own, _ := udp(t)
	var limit unix.Rlimit
	check.OK(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &limit))
	few := unix.Rlimit{Cur: min(limit.Cur, 100), Max: limit.Max}
	check.OK(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &few))
	defer unix.Setrlimit(unix.RLIMIT_NOFILE, &limit)
	var taken []int
	defer func() {
		for _, fd := range taken {
			unix.Close(fd)
		}
	}()
	for {
		fd, err := unix.Open("/dev/null", unix.O_CLOEXEC, 0)
		if err != nil {
			break
		}
		taken = append(taken, fd)
	}
	control(t, own, func(fd uintptr) {
		ran := false
		if err := InNamespaceOf(fd, func() error { ran = true; return nil }); !errors.Is(err, unix.EMFILE) || ran {
			t.Errorf("%v; ran: %v", err, ran)
		}
	})
}
