//go:build linux

package netns

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/vxswitch/vxswitch/internal/lab/check"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func exists(ns string) bool {
	_, err := os.Stat(Folder + "/" + ns)
	return err == nil
}

func TestTwoHostsPing(t *testing.T) {
	t.Parallel()
	n := New(t)
	a, b := n.Host("a"), n.Host("b")
	if x, y := n.Link(a, "10.0.0.1/24,fd00::1/64", b, "10.0.0.2/24,fd00::2/64"); x != "eth0" || y != "eth0" {
		t.Errorf("devices %s and %s", x, y)
	}
	a.Ping("10.0.0.2", 2)
	a.Ping("fd00::2", 2)
	b.Ping("10.0.0.1", 1)
	if got := b.Counter("eth0", "rx_packets"); got < 5 {
		t.Errorf("rx_packets of b: %d", got)
	}
	if _, err := net.ParseMAC(a.MAC("eth0")); err != nil {
		t.Error(err)
	}
}

func TestKernelVXLANPing(t *testing.T) {
	t.Parallel()
	n := New(t)
	a, b := n.Host("a"), n.Host("b")
	n.Link(a, "10.0.0.1/24", b, "10.0.0.2/24")
	a.VXLAN("vx0", VXLAN{ID: 100, Local: "10.0.0.1", Remote: "10.0.0.2", Addr: "192.168.7.1/24"})
	b.VXLAN("vx0", VXLAN{ID: 100, Local: "10.0.0.2", Flood: []string{"10.0.0.1"}, Args: []string{"noudpcsum"}})
	b.Bridge("br0", "vx0")
	b.Addr("br0", "192.168.7.2/24")
	a.Ping("192.168.7.2", 3)
	if out := b.Run("ethtool", "-k", "eth0"); !strings.Contains(out, "tx-checksumming: off") {
		t.Errorf("checksum offload of the underlay is on:\n%s", out)
	}
}

func TestRouteThroughAHost(t *testing.T) {
	t.Parallel()
	n := New(t)
	a, r, b := n.Host("a"), n.Host("r"), n.Host("b")
	n.Link(a, "10.0.1.2/24", r, "10.0.1.1/24")
	if d, _ := n.Link(r, "10.0.2.1/24", b, "10.0.2.2/24"); d != "eth1" {
		t.Errorf("second device of r is %s", d)
	}
	r.Sysctl("net.ipv4.ip_forward", "1")
	a.Route("default", "via", "10.0.1.1")
	b.Route("default", "via", "10.0.2.1")
	a.Ping("10.0.2.2", 1)
}

func TestDoRunsInside(t *testing.T) {
	t.Parallel()
	n := New(t)
	a, b := n.Host("a"), n.Host("b")
	n.Link(a, "10.0.0.1/24", b, "10.0.0.2/24")

	var l net.PacketConn
	var err error
	b.Do(func() { l, err = net.ListenPacket("udp4", "10.0.0.2:7000") })
	check.OK(t, err)
	defer l.Close()
	var c net.Conn
	a.Do(func() { c, err = net.Dial("udp4", "10.0.0.2:7000") })
	check.OK(t, err)
	defer c.Close()
	c.Write([]byte("hello"))
	l.SetReadDeadline(time.Now().Add(5 * time.Second))
	buf := make([]byte, 10)
	if k, _, err := l.ReadFrom(buf); err != nil || string(buf[:k]) != "hello" {
		t.Errorf("%q, %v", buf[:k], err)
	}
	if _, err := net.ListenPacket("udp4", "10.0.0.2:7001"); err == nil {
		t.Error("the test's goroutine is still inside the host")
	}

	// A panic brings the thread home too.
	before, _ := os.Readlink("/proc/thread-self/ns/net")
	func() {
		defer func() {
			check.True(t, recover() != nil, "the panic was lost")
		}()
		a.Do(func() { panic("inside") })
	}()
	if after, _ := os.Readlink("/proc/thread-self/ns/net"); after != before {
		t.Errorf("in %s after a panic, want %s", after, before)
	}
}

func TestTryAndStart(t *testing.T) {
	t.Parallel()
	n := New(t)
	a := n.Host("a")
	if out, err := a.Try(t.Context(), "sh", "-c", "echo out; echo err >&2; exit 3"); err == nil ||
		out != "out\nerr\n" || !strings.Contains(err.Error(), "out\nerr\n") || !strings.Contains(err.Error(), "host a: sh") {
		t.Errorf("Try: %q, %v", out, err)
	}
	p := a.Start("sh", "-c", "trap 'echo bye; exit 4' TERM; echo ready; while :; do sleep 0.05; done")
	p.Want("ready")
	var exit *exec.ExitError
	if err := p.Stop(); !errors.As(err, &exit) || exit.ExitCode() != 4 {
		t.Errorf("Stop: %v", err)
	}
	if got := p.Output(); got != "ready\nbye\n" {
		t.Errorf("output %q", got)
	}
	p.Signal(syscall.SIGTERM) // it has ended: nothing
	q := a.Start("sleep", "1000")
	if err := syscall.Kill(q.PID(), 0); err != nil {
		t.Error(err)
	}
}

// Without a test, all of it are errors. What a process printed is there after its end.
func TestProcess(t *testing.T) {
	if out, err := Output(t.Context(), time.Minute, "", "sh", "-c", "echo out; echo oops >&2; exit 3"); err == nil || string(out) != "out\n" || !strings.HasSuffix(err.Error(), "exit status 3: oops") {
		t.Errorf("%q, %v", out, err)
	}
	if _, err := Output(t.Context(), time.Millisecond, "", "sleep", "100"); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	check.ErrorHas(t, IP(t.Context(), "", "link set nowhere up"), "", `Cannot find device "nowhere"`)
	p := check.Must(Start(t.Context(), "", "sh", "-c", "echo ready; echo oops >&2; exit 3"))(t)
	if err := p.Printed(t.Context(), "ready"); err != nil {
		t.Error(err)
	}
	var exit *exec.ExitError
	if err := p.Ended(t.Context()); !errors.As(err, &exit) || exit.ExitCode() != 3 || p.Output() != "ready\noops\n" {
		t.Errorf("%v, %q", err, p.Output())
	}
	check.ErrorHas(t, p.Printed(t.Context(), "more"), "", `ended (exit status 3) without "more"`)
	p.Kill()
	check.True(t, check.Err(Start(t.Context(), "", "/no/such")) != nil, "started a program that is not there")
}

func TestHostsEndWithTheTest(t *testing.T) {
	var ns []string
	var child string
	t.Run("lab", func(t *testing.T) {
		n := New(t)
		a, b := n.Host("a"), n.Host("b")
		n.Link(a, "10.0.0.1/24", b, "10.0.0.2/24")
		p := a.Start("sh", "-c", "sleep 1000 & echo child $! up; wait")
		p.Want("up")
		child = strings.Fields(p.Output())[1]
		ns = []string{a.NS, b.NS}
		for _, s := range ns {
			check.True(t, exists(s), "no namespace %s", s)
		}
	})
	for _, s := range ns {
		check.True(t, !exists(s), "namespace %s is left", s)
	}
	if child == "" {
		return // skipped
	}
	for end := time.Now().Add(5 * time.Second); ; time.Sleep(time.Millisecond) {
		stat, err := os.ReadFile("/proc/" + child + "/stat")
		if err != nil || strings.Contains(string(stat), ") Z ") {
			break // gone, or dead and waiting for its new parent
		}
		check.Need(t, !time.Now().After(end), "a background process is left: %s", stat)
	}
}

// The two tests below run this binary once more, as the test process that breaks.
func TestBreaks(t *testing.T) {
	how := os.Getenv("LAB_TEST_BREAKS")
	if how == "" {
		return // only when run by the tests below
	}
	h := New(t).Host("x")
	h.Start("sleep", "1000")
	fmt.Println(h.NS)
	switch how {
	case "fatal":
		t.Fatal("as asked")
	case "panic":
		panic("as asked")
	case "kill":
		syscall.Kill(os.Getpid(), syscall.SIGKILL)
	}
}

func breaks(t *testing.T, how string) (ns string) {
	t.Helper()
	RequireRoot(t)
	c := exec.Command(os.Args[0], "-test.run=^TestBreaks$", "-test.v")
	c.Env = append(os.Environ(), "LAB_TEST_BREAKS="+how)
	c.WaitDelay = time.Second
	out, err := c.CombinedOutput()
	check.Need(t, err != nil, "it did not break:\n%s", out)
	for line := range strings.Lines(string(out)) {
		if strings.HasPrefix(line, nsPrefix) {
			return strings.TrimSpace(line)
		}
	}
	t.Fatalf("it made no namespace:\n%s", out)
	return ""
}

func TestNothingIsLeftAfterAFailureOrAPanic(t *testing.T) {
	for _, how := range []string{"fatal", "panic"} {
		if ns := breaks(t, how); exists(ns) {
			t.Errorf("%s: namespace %s is left", how, ns)
		}
	}
}

func TestLeftoversOfAKilledProcessAreSwept(t *testing.T) {
	ns := breaks(t, "kill")
	if !exists(ns) {
		t.Skipf("another test process has swept namespace %s already", ns)
	}
	mine := New(t).Host("mine")
	sweep(t)
	if exists(ns) {
		t.Errorf("namespace %s is left", ns)
		Remove(ns)
	}
	check.True(t, exists(mine.NS), "the sweep took a namespace in use")
}

func TestOwner(t *testing.T) {
	for name, want := range map[string]int{"vxs-12-3-a": 12, "vxs-12": 0, "vxs--1-a": 0, "vxs-x-1-a": 0, "blue": 0, "vxs-0-1-a": 0} {
		if got, ok := owner(name, nsPrefix); ok != (want != 0) || ok && got != want {
			t.Errorf("owner(%q) = %d, %v", name, got, ok)
		}
	}
}

func TestRequire(t *testing.T) {
	for ci, want := range map[string]string{"": "skip", "true": "fail"} {
		t.Setenv("CI", ci)
		var r recorder
		if Require(&r, nil); r.said != "" {
			t.Errorf("nothing is missing: %s", r.said)
		}
		if Require(&r, errors.New("no root")); r.said != want {
			t.Errorf("CI=%q: %q, want %s", ci, r.said, want)
		}
	}
}

// A recorder keeps how a test ends.
type recorder struct {
	testing.TB
	said string
}

func (r *recorder) Helper()               {}
func (r *recorder) Fatalf(string, ...any) { r.said = "fail" }
func (r *recorder) Skipf(string, ...any)  { r.said = "skip" }
