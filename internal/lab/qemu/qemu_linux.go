package qemu

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net"
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

	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// BootTimeout bounds the time until a guest is up. On an idle machine it is some seconds.
const BootTimeout = 2 * time.Minute

// A Config says where a guest is and what it does first.
type Config struct {
	// Link is a device of the host. If there is none of this name, it becomes the TAP
	// behind which the guest is. Of a bridge, the TAP becomes a port. Any other device is
	// joined to the TAP by a bridge of its own, and is then of no use to the host itself.
	// "" = a TAP with a name of its own.
	Link string
	// Card is the network card of a test that makes the TAP itself, as QEMU's arguments "-netdev", and "-device"
	// with the MAC. Link is not used then.
	Card []string
	// Addr is the addresses of the guest's eth0 in CIDR form, commas between them. IPv6
	// addresses can be used at once: there is no duplicate address detection.
	Addr string
	// Setup is commands that the guest runs before Boot returns, each as in [Guest.Run]. To
	// keep the guest from sending IPv6 packets of its own on eth0:
	// "echo 1 >/proc/sys/net/ipv6/conf/eth0/disable_ipv6".
	Setup []string
	// Modules is modules of the guest's kernel to load beside those of every guest: "esp4".
	Modules []string
	// Programs is programs of this machine that the guest is to have, by their path in the
	// guest: "/bin/p2p". The libraries they need come along.
	Programs map[string]string
	// Memory is what the guest has, in MiB; 0 = 256. Files are in half of it at most.
	Memory int
}

// A Guest is a machine that runs Linux. Its device eth0 is up, and so is lo; tunl0, sit0 and
// ip6tnl0 are there. Its methods end the test of Boot when something fails. They are called
// from one goroutine at a time, of the test or a subtest of it.
type Guest struct {
	TAP string // the host's end of eth0, unless the test made it
	MAC string // of eth0, likewise

	t    testing.TB
	proc *netns.Proc
	conn net.Conn
	in   *bufio.Reader
	last int // number of the last command
}

var (
	guests atomic.Uint32 // numbers the guests of this process
	build  = sync.OnceValues(func() (b boot, err error) {
		k, err := installed("/")
		if err != nil {
			return b, err
		}
		return newBoot(k, Config{})
	})
)

// A boot is the files that QEMU starts a guest with.
type boot struct {
	kernel, initramfs string
	installed         *kernel
}

func newBoot(k *kernel, c Config) (b boot, err error) {
	data, err := initramfs(k, c.Modules, c.Programs)
	if err != nil {
		return b, err
	}
	b.kernel, b.installed = k.image, k
	b.initramfs, err = memory(data)
	return b, err
}

// Boot starts a guest on a host and waits until it is up, at most [BootTimeout], and has
// run its Setup. It ends with the test.
func Boot(t testing.TB, h *netns.Host, c Config) *Guest {
	t.Helper()
	require(t)
	b, err := build()
	if err == nil && len(c.Modules)+len(c.Programs) > 0 {
		if b, err = newBoot(b.installed, c); err == nil {
			t.Cleanup(func() { forget(b.initramfs) })
		}
	}
	if err != nil {
		t.Fatalf("lab: %v", err)
	}
	n := guests.Add(1)
	g := &Guest{t: t, MAC: fmt.Sprintf("52:54:00:%02x:%02x:%02x", byte(n>>16), byte(n>>8), byte(n))}
	card := c.Card
	if card == nil {
		g.link(h, c.Link, n)
		card = []string{"-netdev", "tap,id=net,vhost=off,vnet_hdr=off,script=no,downscript=no,ifname=" + g.TAP,
			"-device", "virtio-net-pci,netdev=net,romfile=,mac=" + g.MAC}
	}
	console := fmt.Sprintf("vxs-guest-%d-%d", os.Getpid(), n)
	g.proc = h.Start("qemu-system-x86_64", append([]string{
		"-no-user-config", "-nodefaults", "-display", "none", "-no-reboot",
		"-M", "pc,accel=tcg", "-cpu", "max", "-m", strconv.Itoa(cmp.Or(c.Memory, 256)),
		"-kernel", b.kernel, "-initrd", b.initramfs, "-append", "console=ttyS0 quiet panic=-1 mitigations=off no_timer_check", // on a busy machine ticks come late
		"-serial", "stdio", // of the kernel; the log of a failed test has it
		"-chardev", "socket,id=console,abstract=on,server=on,wait=off,path=" + console, "-serial", "chardev:console"}, card...)...)
	t.Cleanup(func() { g.proc.Stop() })
	h.Do(func() { g.conn, err = dial(g.proc, "@"+console) }) // such names belong to the namespace
	if err != nil {
		t.Fatalf("lab: guest on %s: %v\n%s", h.Name, err, g.proc.Output())
	}
	t.Cleanup(func() { g.conn.Close() })
	g.in = bufio.NewReader(g.conn)
	g.ready()
	for a := range strings.SplitSeq(c.Addr, ",") {
		if a != "" {
			g.Run("ip addr add " + a + " dev eth0")
		}
	}
	for _, line := range c.Setup {
		g.Run(line)
	}
	return g
}

// link makes the TAP and joins it to the link.
func (g *Guest) link(h *netns.Host, name string, n uint32) {
	g.t.Helper()
	is, exists := kind(g.t, h, name)
	g.TAP = name
	if exists || name == "" {
		g.TAP = fmt.Sprintf("guest%d", n)
	}
	h.IP("tuntap", "add", "dev", g.TAP, "mode", "tap")
	g.t.Cleanup(func() { h.IP("link", "del", g.TAP) })
	switch {
	case !exists:
		h.Up(g.TAP)
		return
	case is == "bridge":
		h.IP("link", "set", g.TAP, "master", name)
	default:
		bridge := fmt.Sprintf("gbr%d", n)
		g.t.Cleanup(func() { h.IP("link", "del", bridge) })
		h.Bridge(bridge, name, g.TAP)
		h.Sysctl("net.ipv6.conf."+bridge+".disable_ipv6", "1")
	}
	h.Sysctl("net.ipv6.conf."+g.TAP+".disable_ipv6", "1")
	h.Up(g.TAP)
}

// kind returns what a device of the host is.
func kind(t testing.TB, h *netns.Host, name string) (kind string, exists bool) {
	t.Helper()
	var devs []struct {
		Name string `json:"ifname"`
		Info struct {
			Kind string `json:"info_kind"`
		} `json:"linkinfo"`
	}
	if err := json.Unmarshal([]byte(h.IP("-d", "-j", "link", "show")), &devs); err != nil {
		t.Fatalf("lab: host %s: %v", h.Name, err)
	}
	for _, d := range devs {
		if d.Name == name {
			return d.Info.Kind, true
		}
	}
	return "", false
}

// dial waits until QEMU listens, or has ended.
func dial(p *netns.Proc, name string) (net.Conn, error) {
	for end := time.Now().Add(netns.Timeout); ; time.Sleep(5 * time.Millisecond) {
		conn, err := net.Dial("unix", name)
		if err == nil || time.Now().After(end) || unix.Kill(p.PID(), 0) == unix.ESRCH {
			return conn, err
		}
	}
}

// require ends the test where there can be no guest.
func require(t testing.TB) {
	t.Helper()
	netns.RequireRoot(t)
	if err := missing(); err != nil {
		netns.Require(t, fmt.Errorf("guest: %w", err))
	}
}

// missing says what a guest needs and this machine has not.
func missing() error {
	if runtime.GOARCH != "amd64" && runtime.GOARCH != "386" {
		return errors.New("guests need an amd64 machine")
	}
	for _, t := range [][2]string{{"qemu-system-x86_64", "qemu-system-x86"}, {"busybox", "busybox-static"}, {"ip", "iproute2"}} {
		if _, err := exec.LookPath(t[0]); err != nil {
			return fmt.Errorf("%w: install the package %s (apt-get install %[2]s)", err, t[1])
		}
	}
	_, err := installed("/")
	return err
}
