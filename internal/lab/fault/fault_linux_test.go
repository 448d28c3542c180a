//go:build linux && (amd64 || arm64)

package fault

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Every call fails once with each errno, in order, also those of the standard library.
func TestEach(t *testing.T) {
	var seen []string
	Each(t, nil, func() error {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		c, err := net.ListenPacket("udp4", "127.0.0.1:0")
		if err != nil {
			return err
		}
		return c.Close()
	}, func(x Fault, err error) {
		if n := fmt.Sprint(x.N, x.Call); !slices.Contains(seen, n) {
			seen = append(seen, n)
		}
	})
	if len(seen) < 4 || seen[0] != "1socket" || seen[1] != "2socket" || !slices.ContainsFunc(seen, func(s string) bool { return strings.HasSuffix(s, "bind") }) {
		t.Errorf("%q failed", seen)
	}
}

// A witness is a test whose failures are wanted.
type witness struct {
	testing.TB
	said []string
}

func (w *witness) Errorf(format string, args ...any) {
	w.said = append(w.said, fmt.Sprintf(format, args...))
}
func (w *witness) Fatal(args ...any) { w.said = append(w.said, fmt.Sprint(args...)) }

func TestEachFindsLeaks(t *testing.T) {
	netns.RequireRoot(t)
	defer func(d time.Duration) { patience = d }(patience)
	patience = 10 * time.Millisecond
	w := &witness{TB: t}
	Each(w, nil, func() error {
		a, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return fmt.Errorf("%v", err) // not wrapped
		}
		b, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Cleanup(func() { unix.Close(a) })
			return err
		}
		unix.Close(a)
		unix.Close(b)
		return nil
	}, nil)
	if len(w.said) != 2*len(errnos["socket"]) || !strings.Contains(w.said[0], "call 1, socket: too many open files: the error is") || !strings.Contains(w.said[len(w.said)-1], "descriptors before") {
		t.Errorf("said %q", w.said)
	}
}

// So is memory that is left: a mapping, or what the heap keeps.
func TestEachFindsMemory(t *testing.T) {
	netns.RequireRoot(t)
	defer func(d time.Duration) { patience = d }(patience)
	patience = 10 * time.Millisecond
	var kept [][]byte
	defer func() { kept = nil }()
	w := &witness{TB: t}
	Each(w, nil, func() error {
		a, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			kept = append(kept, make([]byte, 100<<10))
			m, _ := unix.Mmap(-1, 0, 4096, unix.PROT_READ, unix.MAP_SHARED|unix.MAP_ANONYMOUS) // has an inode
			t.Cleanup(func() { unix.Munmap(m) })
			return err
		}
		return unix.Close(a)
	}, nil)
	n := len(errnos["socket"])
	if len(w.said) != n+1 || !strings.Contains(w.said[0], "mappings before") || !strings.Contains(w.said[n], "bytes more on the heap") {
		t.Errorf("said %q", w.said)
	}
}

// What is called n-th may be another call each time, with fewer errnos.
func TestEachTakesAnotherOrder(t *testing.T) {
	netns.RequireRoot(t)
	runs := 0
	Each(t, nil, func() error {
		first, second := unix.AF_UNIX, -1
		if runs++; runs%2 == 1 {
			first, second = second, first
		}
		for _, family := range []int{first, second} {
			var fd int
			var err error
			if family < 0 {
				fd, err = unix.Eventfd(0, unix.EFD_CLOEXEC)
			} else {
				fd, err = unix.Socket(family, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
			}
			if err != nil {
				return err
			}
			defer unix.Close(fd)
		}
		return nil
	}, nil)
}
