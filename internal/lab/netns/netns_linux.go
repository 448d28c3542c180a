package netns

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Timeout bounds every command a lab waits for.
const Timeout = 30 * time.Second

const (
	nsPrefix = "vxs-"
	nsFolder = "/run/netns"
)

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
// with CI=true in the environment, fails.
func New(t testing.TB) *Net {
	t.Helper()
	RequireRoot(t)
	Tool(t, "ip")
	sweeping.Do(func() { sweep(t) })
	return &Net{t: t, id: nets.Add(1)}
}

// RequireRoot skips the test when it does not run as root, or, with CI=true in the
// environment, fails it: there nothing may be skipped silently.
func RequireRoot(t testing.TB) {
	t.Helper()
	switch skip, fail := privilege(os.Geteuid(), os.Getenv("CI")); {
	case fail != "":
		t.Fatal(fail)
	case skip != "":
		t.Skip(skip)
	}
}

func privilege(euid int, ci string) (skip, fail string) {
	switch {
	case euid == 0:
		return "", ""
	case ci == "true":
		return "", "lab: network namespaces need root, and CI=true forbids to skip"
	}
	return "lab: network namespaces need root; run the test with sudo", ""
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
		if err := remove(h.NS); err != nil {
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
	away, err := os.Open(nsFolder + "/" + h.NS)
	if err != nil {
		runtime.UnlockOSThread()
		h.t.Fatalf("lab: %v", err)
	}
	defer away.Close()
	// In a defer, for an f that ends the test or panics. A thread that cannot come
	// back stays locked, and the runtime ends it with the goroutine.
	defer func() {
		if err := unix.Setns(int(home.Fd()), unix.CLONE_NEWNET); err != nil {
			h.t.Errorf("lab: leaving host %s: %v", h.Name, err)
			return
		}
		runtime.UnlockOSThread()
	}()
	if err := unix.Setns(int(away.Fd()), unix.CLONE_NEWNET); err != nil {
		h.t.Fatalf("lab: entering host %s: %v", h.Name, err)
	}
	f()
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

// remove ends the processes in a namespace and deletes it. One that does not exist
// is no error.
func remove(ns string) error {
	if _, err := os.Stat(nsFolder + "/" + ns); os.IsNotExist(err) {
		return nil
	}
	pids, _ := ip("netns", "pids", ns)
	for _, f := range strings.Fields(pids) {
		// Not this process: a thread of it may be inside, see Do.
		if pid, err := strconv.Atoi(f); err == nil && pid != os.Getpid() {
			unix.Kill(pid, unix.SIGKILL)
		}
	}
	out, err := ip("netns", "del", ns)
	if err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	return nil
}

// sweep removes the namespaces of test processes that no longer exist.
func sweep(t testing.TB) {
	entries, err := os.ReadDir(nsFolder)
	if err != nil {
		return // nobody ever made a namespace
	}
	for _, e := range entries {
		pid, ok := owner(e.Name())
		if !ok || unix.Kill(pid, 0) != unix.ESRCH {
			continue
		}
		if err := remove(e.Name()); err != nil {
			t.Logf("lab: sweeping a leftover: %v", err) // another test process was faster
		}
	}
}

// owner returns the process that made a namespace of a lab.
func owner(ns string) (pid int, ok bool) {
	rest, ok := strings.CutPrefix(ns, nsPrefix)
	if !ok {
		return 0, false
	}
	first, _, ok := strings.Cut(rest, "-")
	pid, err := strconv.Atoi(first)
	return pid, ok && err == nil && pid > 0
}
