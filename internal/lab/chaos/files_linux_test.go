package chaos

import (
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/fake"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
	"github.com/vxswitch/vxswitch/port"
	"github.com/vxswitch/vxswitch/underlay"
)

const childVar = "VXSWITCH_CHAOS_CHILD"

// A process without descriptors to spare: whatever opens something fails and says that it is
// for too many open files, however far it got; nothing of it is left, traffic goes on, and
// with a descriptor more it works. The test runs in a process of its own.
func TestNoDescriptors(t *testing.T) {
	netns.RequireRoot(t)
	if os.Getenv(childVar) == "" {
		c := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestNoDescriptors$", "-test.v", "-test.timeout=100s")
		c.Env = append(os.Environ(), childVar+"=1")
		out, err := c.CombinedOutput()
		check.True(t, err == nil && strings.Contains(string(out), "PASS"), "%v\n%s", err, out)
		return
	}
	both(t, noDescriptors)
}

func noDescriptors(t *testing.T, fam family) {
	// Without offloads all sockets are there from the start: those for runs would come and go.
	r := newRig(t, fam, config{udp: underlay.UDPConfig{NoOffload: true}})
	r.a.Addr("eth0", fam.near2+fam.bits)
	near := netip.MustParseAddr(fam.near)
	attempts := []struct {
		what string
		try  func() (io.Closer, error)
	}{
		{"OpenTAP", func() (io.Closer, error) { return closer(port.OpenTAP("tap1", &port.DeviceConfig{Queues: 2})) }},
		{"OpenPacket", func() (io.Closer, error) { return closer(port.OpenPacket("eth0", nil)) }},
		{"ListenUDP", func() (io.Closer, error) {
			return closer(underlay.ListenUDP(netip.AddrPortFrom(near, 5789), &underlay.UDPConfig{Queues: 2, Device: "eth0"}))
		}},
		{"ListenIP", func() (io.Closer, error) { return closer(underlay.ListenIP(near, nil)) }},
		{"another address", func() (io.Closer, error) { return closer(back{r}, r.move(fam.near2)) }},
	}
	var limit unix.Rlimit
	check.OK(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &limit))
	t.Cleanup(func() { unix.Setrlimit(unix.RLIMIT_NOFILE, &limit) })
	r.a.Do(func() {
		few := unix.Rlimit{Cur: 200, Max: limit.Max}
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &few); err != nil {
			t.Error(err)
			return
		}
		defer unix.Setrlimit(unix.RLIMIT_NOFILE, &limit)
		spare := fill()
		time.Sleep(100 * time.Millisecond) // once a second the TAP has one for a moment, to ask where it is
		spare = append(spare, fill()...)
		defer func() {
			for _, fd := range spare {
				unix.Close(fd)
			}
		}()
		before := descriptors()
		for _, a := range attempts {
			failed, worked := 0, 0
			for free := range min(len(spare), 80) { // more and more of them
				for _, fd := range spare[:free] {
					unix.Close(fd)
				}
				got := r.ab.got()
				c, err := a.try()
				switch {
				case err == nil:
					worked++
					if e := c.Close(); e != nil {
						t.Errorf("%s with %d: Close: %v", a.what, free, e)
					}
				case !errors.Is(err, syscall.EMFILE) || !strings.Contains(err.Error(), "too many open files"):
					t.Errorf("%s with %d: %v", a.what, free, err)
				default:
					failed++
				}
				fake.Until(t, fmt.Sprintf("%s with %d: %d descriptors are open", a.what, free, before-free), func() bool { return descriptors() == before-free })
				taken := 0
				fake.Until(t, "all descriptors are taken again", func() bool { taken += copy(spare[taken:free], fill()); return taken == free })
				if free%40 == 0 {
					for end := time.Now().Add(2 * time.Second); r.ab.got() == got && time.Now().Before(end); {
						time.Sleep(time.Millisecond)
					}
					check.True(t, r.ab.got() != got, "%s with %d: nothing arrives any more", a.what, free)
				}
				if worked == 3 {
					break
				}
			}
			t.Logf("%s: failed %d times, worked %d times", a.what, failed, worked)
			if failed == 0 || worked == 0 {
				t.Errorf("%s: failed %d times, worked %d times", a.what, failed, worked)
			}
		}
	})
	if out := r.a.IP("-o", "link"); strings.Contains(out, "tap1") {
		t.Errorf("left behind:\n%s", out)
	}
	if out := r.a.Run("ss", "-Hanuw"); strings.Count(out, fam.near2) != 0 || strings.Contains(out, ":5789 ") {
		t.Errorf("left behind:\n%s", out)
	}
	flows(t, time.Second, r.ab, r.ba)
	// While our end had the other address b did not know that: hostA.
	r.books(missing{hostA: any})
	if n := r.dropsOut(); len(n) != 0 {
		t.Errorf("lost: %v", n)
	}
}

// closer is what was opened, without the difference between no pointer and no interface.
func closer[T io.Closer](c T, err error) (io.Closer, error) {
	if err != nil {
		return nil, err
	}
	return c, nil
}

type back struct{ r *rig }

func (b back) Close() error { return b.r.move(b.r.fam.near) }

// fill takes every descriptor that is to be had.
func fill() (fds []int) {
	for {
		fd, err := unix.Open("/dev/null", unix.O_CLOEXEC, 0)
		if err != nil {
			return fds
		}
		fds = append(fds, fd)
	}
}

// descriptors counts those that are open, which needs none.
func descriptors() (n int) {
	for fd := range uintptr(4096) {
		if _, err := unix.FcntlInt(fd, unix.F_GETFD, 0); err == nil {
			n++
		}
	}
	return n
}
