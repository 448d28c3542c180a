package netns

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/vxswitch/vxswitch/internal/lab/check"
)

const nsPrefix = "vxs-"

var (
	nets     atomic.Int32 // numbers the networks of this process
	sweeping sync.Once
)

// A Net is one test's hosts, each a network namespace. Its methods, and those of
// its hosts, end the test when something fails, so they are called from the
// test's goroutine.
type Net struct {
	t  testing.TB
	id int32
}

// New starts an empty network for the test. Without root the test is skipped, or,
// with CI=true in the environment, fails. See [RequireRoot] for -short.
func New(t testing.TB) *Net {
	t.Helper()
	RequireRoot(t)
	Tool(t, "ip")
	sweeping.Do(func() { sweep(t) })
	check.OK(t, stamps())
	return &Net{t: t, id: nets.Add(1)}
}

// RequireRoot is [Require] of root. With -short it skips the test: what needs root is not short.
func RequireRoot(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("lab: -short leaves out what needs root")
	}
	if os.Geteuid() != 0 {
		Require(t, errors.New("network namespaces need root; run the test with sudo"))
	}
}

// Require skips the test if something is missing, or, with CI=true in the environment, fails
// it: there nothing may be skipped silently.
func Require(t testing.TB, missing error) {
	t.Helper()
	switch {
	case missing == nil:
	case os.Getenv("CI") == "true":
		t.Fatalf("lab: %v; CI=true forbids to skip", missing)
	default:
		t.Skipf("lab: %v", missing)
	}
}

// A Host is a network namespace with its loopback up.
type Host struct {
	Name string // as given to Net.Host
	NS   string // the namespace's name, as in "ip netns"

	t     testing.TB
	links []string // its veth devices: eth0, eth1 ...
	raw   *os.File // what Inject sends with
}

// Host makes a host. It ends with the test.
func (n *Net) Host(name string) *Host {
	n.t.Helper()
	h := &Host{Name: name, NS: fmt.Sprintf("%s%d-%d-%s", nsPrefix, os.Getpid(), n.id, name), t: n.t}
	n.t.Cleanup(func() {
		if err := Remove(h.NS); err != nil {
			n.t.Errorf("lab: %v", err)
		}
	})
	if out, err := ip("netns", "add", h.NS); err != nil {
		n.t.Fatalf("lab: host %s: %v\n%s", name, err, out)
	}
	h.IP("link", "set", "lo", "up")
	h.Sysctl("net.ipv6.conf.default.accept_dad", "0") // else link-local addresses wait for a second or two
	return h
}

// Do runs Go code inside the host: sockets and devices that f opens belong to the
// host and stay there. f runs on the calling goroutine; goroutines it starts do
// not run inside the host.
func (h *Host) Do(f func()) {
	h.t.Helper()
	runtime.LockOSThread()
	home, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		runtime.UnlockOSThread()
		h.t.Fatalf("lab: %v", err)
	}
	defer home.Close()
	// In a defer, for an f that ends the test or panics. A thread that cannot come
	// back stays locked, and the runtime ends it with the goroutine.
	defer func() {
		if err := unix.Setns(int(home.Fd()), unix.CLONE_NEWNET); err != nil {
			h.t.Errorf("lab: leaving host %s: %v", h.Name, err)
			return
		}
		runtime.UnlockOSThread()
	}()
	if err := h.Enter(); err != nil {
		h.t.Fatalf("lab: entering host %s: %v", h.Name, err)
	}
	f()
}

// Open opens something inside a host, and closes it with the test.
func Open[T io.Closer](t testing.TB, h *Host, open func() (T, error)) (x T) {
	t.Helper()
	var err error
	h.Do(func() { x, err = open() })
	check.OK(t, err)
	t.Cleanup(func() { x.Close() })
	return x
}

// Enter takes the calling thread into the host, for good: it is to be locked to a goroutine
// that ends.
func (h *Host) Enter() error {
	f, err := os.Open(Folder + "/" + h.NS)
	if err != nil {
		return err
	}
	defer f.Close()
	return unix.Setns(int(f.Fd()), unix.CLONE_NEWNET)
}

// ip runs iproute2, for set-up and removal, whatever became of the test's context.
func ip(args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), Timeout)
	defer cancel()
	out, err := exec.CommandContext(ctx, "ip", args...).CombinedOutput()
	if err != nil {
		err = fmt.Errorf("ip %s: %w", strings.Join(args, " "), err)
	}
	return string(out), err
}

// sweep removes the namespaces of test processes that no longer exist.
func sweep(t testing.TB) {
	if err := Sweep(Folder, nsPrefix, Remove); err != nil {
		t.Logf("lab: sweeping leftovers: %v", err) // another test process was faster
	}
}
