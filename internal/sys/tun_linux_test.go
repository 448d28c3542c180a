package sys_test

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
	"github.com/vxswitch/vxswitch/internal/sys"
)

// openTun opens a queue inside the host and closes it with the test.
func openTun(t *testing.T, h *netns.Host, name string, m sys.TunMode) *sys.Tun {
	t.Helper()
	var tun *sys.Tun
	var err error
	h.Do(func() { tun, err = sys.OpenTun(name, m) })
	check.OK(t, err)
	t.Cleanup(func() { tun.Close() })
	return tun
}

// pollable checks that Read waits in the poller.
func pollable(t *testing.T, tun *sys.Tun) {
	t.Helper()
	tun.Conn.Control(func(fd uintptr) {
		if fl, err := unix.FcntlInt(fd, unix.F_GETFD, 0); err != nil || fl&unix.FD_CLOEXEC == 0 {
			t.Errorf("a child process inherits the queue: flags %#x, %v", fl, err)
		}
		if fl, err := unix.FcntlInt(fd, unix.F_GETFL, 0); err != nil || fl&unix.O_NONBLOCK == 0 {
			t.Errorf("the queue is blocking: flags %#x, %v", fl, err)
		}
	})
	check.OK(t, tun.File.SetReadDeadline(time.Now().Add(10*time.Millisecond)))
	if _, err := tun.File.Read(make([]byte, 2000)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("Read: %v", err)
	}
}

func TestTunIsPollableAndNotInherited(t *testing.T) {
	h := netns.New(t).Host("h")
	h.Quiet()
	tun := openTun(t, h, "", sys.TunMode{})
	if i, err := tun.Info(); err != nil || i != (sys.TunInfo{Name: "tap0"}) {
		t.Errorf("info %+v, %v", i, err)
	}
	pollable(t, tun)
}

func TestTakeTun(t *testing.T) {
	h := netns.New(t).Host("h")
	h.Quiet()
	for _, how := range []struct {
		name  string
		flags int
	}{{"blocking", 0}, {"non-blocking", unix.O_NONBLOCK}} {
		t.Run(how.name, func(t *testing.T) {
			var f *os.File
			h.Do(func() {
				fd := check.Must(unix.Open("/dev/net/tun", unix.O_RDWR|how.flags, 0))(t)
				// In the poller too early: what a plain os.OpenFile does.
				f = os.NewFile(uintptr(fd), "tun")
				ifr, _ := unix.NewIfreq("t%d")
				ifr.SetUint16(unix.IFF_TUN | unix.IFF_MULTI_QUEUE | unix.IFF_VNET_HDR)
				check.OK(t, unix.IoctlIfreq(fd, unix.TUNSETIFF, ifr))
			})
			defer f.Close()
			tun, err := sys.TakeTun(f)
			check.OK(t, err)
			defer tun.Close()
			want := sys.TunInfo{TunMode: sys.TunMode{TUN: true, Multi: true, Vnet: true}, Name: "t0", Header: 10}
			if i, err := tun.Info(); err != nil || i != want {
				t.Errorf("info %+v, %v", i, err)
			}
			pollable(t, tun)
			l, err := sys.NewLink(tun)
			check.OK(t, err)
			defer l.Close()
			if pi, err := l.PacketInfo(); !pi || err != nil {
				t.Errorf("PacketInfo: %v, %v", pi, err)
			}
		})
	}
	null := check.Must(os.Open("/dev/null"))(t)
	defer null.Close()
	tun, err := sys.TakeTun(null)
	check.OK(t, err)
	defer tun.Close()
	if _, err := tun.Info(); err != unix.ENOTTY {
		t.Errorf("info of /dev/null: %v", err)
	}
}

func TestInNamespace(t *testing.T) {
	n := netns.New(t)
	h, far := n.Host("h"), n.Host("far")
	inode := func() (st unix.Stat_t) { unix.Stat("/proc/thread-self/ns/net", &st); return st }
	home := inode().Ino
	var tun *sys.Tun
	h.Do(func() {
		before := inode().Ino
		err := sys.InNamespace("/run/netns/"+far.NS, func() (err error) {
			tun, err = sys.OpenTun("there0", sys.TunMode{TUN: true})
			return err
		})
		check.OK(t, err)
		if inode().Ino != before {
			t.Error("the caller is somewhere else")
		}
		if driver, kind := sys.Kind("there0"); driver != "" {
			t.Errorf("the device is here: %s %s", driver, kind)
		}
	})
	defer tun.Close()
	far.Do(func() {
		if driver, kind := sys.Kind("there0"); driver != "tun" || kind != "tun" {
			t.Errorf("the device is not there: %q %q", driver, kind)
		}
	})
	if inode().Ino != home {
		t.Error("the thread did not come back")
	}
	if err := sys.InNamespace("/run/netns/no-such", nil); !errors.Is(err, unix.ENOENT) {
		t.Errorf("no namespace: %v", err)
	}
	if err := sys.InNamespace("/dev/null", nil); !errors.Is(err, unix.EINVAL) || !errors.Is(err, sys.ErrNamespace) {
		t.Errorf("not a namespace: %v", err)
	}
}

func TestLink(t *testing.T) {
	n := netns.New(t)
	h, far := n.Host("h"), n.Host("far")
	tun := openTun(t, h, "tap0", sys.TunMode{})
	var l *sys.Link
	var err error
	far.Do(func() { l, err = sys.NewLink(tun) }) // looks for it in the wrong place first
	check.OK(t, err)
	defer l.Close()
	if pi, err := l.PacketInfo(); pi || err != nil {
		t.Errorf("PacketInfo: %v, %v", pi, err)
	}
	if err := l.SetMTU(1300); err != nil {
		t.Error(err)
	}
	if err := l.Up(); err != nil {
		t.Error(err)
	}
	h.IP("link", "set", "tap0", "down")
	h.IP("link", "set", "tap0", "name", "other0")
	h.IP("link", "set", "other0", "netns", far.NS)
	if mtu, err := l.MTU(); err != nil || mtu != 1300 {
		t.Errorf("MTU %d, %v", mtu, err)
	}
	if out := far.IP("link", "show", "other0"); !strings.Contains(out, "mtu 1300") {
		t.Errorf("the device:\n%s", out)
	}
	far.IP("link", "del", "other0")
	for what, err := range map[string]error{"SetMTU": l.SetMTU(1400), "Up": l.Up(), "SetMAC": l.SetMAC([6]byte{2})} {
		if err != unix.EBADFD {
			t.Errorf("%s of a deleted device: %v", what, err)
		}
	}
}

func TestSetOffload(t *testing.T) {
	h := netns.New(t).Host("h")
	tun := openTun(t, h, "tap0", sys.TunMode{Vnet: true})
	for _, on := range []bool{true, false} {
		uso, err := tun.SetOffload(on)
		if err != nil || uso != on { // Linux 6.2 and later have USO
			t.Errorf("SetOffload(%v): USO %v, %v", on, uso, err)
		}
		for _, f := range []string{"tx-checksum-ip-generic", "tx-tcp-segmentation", "tx-tcp-ecn-segmentation", "tx-tcp6-segmentation", "tx-udp-segmentation"} {
			if out := h.Run("ethtool", "-k", "tap0"); strings.Contains(out, f+": on") != on {
				t.Errorf("SetOffload(%v): %s is not %[1]v", on, f)
			}
		}
	}
	h.IP("link", "del", "tap0")
	if _, err := tun.SetOffload(true); err != unix.EBADFD {
		t.Errorf("a deleted device: %v", err)
	}
}

func TestGatherIsOneWrite(t *testing.T) {
	fds := check.Must(unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0))(t)
	defer unix.Close(fds[0])
	defer unix.Close(fds[1])
	var g sys.Gather
	buf := make([]byte, 20)
	for _, c := range [][]string{{"head", "rest"}, {"", "rest"}, {"head", ""}, {"a", "b", "c", "d", "e"}, {"one"}} {
		var parts [][]byte
		for _, p := range c {
			parts = append(parts, []byte(p))
		}
		want := strings.Join(c, "")
		if n, errno := g.WriteFD(uintptr(fds[0]), parts); errno != 0 || n != len(want) {
			t.Errorf("write of %q: %d, %v", c, n, errno)
		}
		if n, errno := sys.ReadFD(uintptr(fds[1]), buf); errno != 0 || string(buf[:n]) != want {
			t.Errorf("read %q, %v, want %q", buf[:n], errno, want)
		}
	}
	if _, errno := sys.WriteFD(1<<20, []byte("x")); errno != unix.EBADF {
		t.Errorf("write to nowhere: %v", errno)
	}
}
