package port

import (
	"bufio"
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

	"golang.org/x/sys/unix"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/fake"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
	"github.com/vxswitch/vxswitch/internal/lab/underlaytest"
	"github.com/vxswitch/vxswitch/internal/sys"
)

// nothing waits until the hosts have no device but lo.
func nothing(t *testing.T, hosts ...*netns.Host) {
	t.Helper()
	for _, h := range hosts {
		h.Until("no device is left", func() bool { return strings.Count(h.IP("-br", "link"), "\n") == 1 })
	}
}

// Where the devices are, what is set on them, and that Close leaves nothing.
func TestVethDevices(t *testing.T) {
	n := netns.New(t)
	a, m := n.Host("a"), n.Host("m")
	openVeth(t, m, "warm", nil).Close()
	fds := underlaytest.OpenFiles(t)
	mac := frame.MAC{2, 0, 0, 0, 0, 0x11}
	for _, c := range []struct {
		cfg  DeviceConfig
		in   *netns.Host
		mtu  string
		want int
	}{
		{DeviceConfig{}, m, "mtu 1500", 1514},
		{DeviceConfig{MTU: 1400, MAC: mac, Queues: 2}, m, "mtu 1400", 1414},
		{DeviceConfig{MTU: 9000, Namespace: a.NS}, a, "mtu 9000", 9014},
		{DeviceConfig{MTU: maxMTU - ethLen, Namespace: "/run/netns/" + a.NS, Down: true, NoOffload: true}, a, "mtu 65521", 65535},
	} {
		d := openVeth(t, m, "e0", &c.cfg)
		if d.Name() != "e0" || d.MTU(0) != c.want || d.Existed() || len(d.Readers()) != max(c.cfg.Queues, 1) {
			t.Errorf("%+v: name %s, MTU %d, existed %v, %d queues", c.cfg, d.Name(), d.MTU(0), d.Existed(), len(d.Readers()))
		}
		out := c.in.IP("-d", "link", "show", "e0")
		if !strings.Contains(out, c.mtu) || !strings.Contains(out, "veth") || strings.Contains(out, ",UP") == c.cfg.Down {
			t.Errorf("%+v:\n%s", c.cfg, out)
		}
		hook, err := d.Hook()
		if out := m.IP("-o", "link", "show", "vxh0"); !strings.Contains(out, fmt.Sprint(hook.Index, ": vxh0@")) || hook.Kind != HookPair || hook.Namespace == 0 {
			t.Errorf("hook %+v, %v\n%s", hook, err, out)
		}
		if out := m.Run("ethtool", "-k", "vxh0"); !strings.Contains(out, "tx-tcp-segmentation: off") {
			t.Errorf("vxh0 takes superframes:\n%s", out)
		}
		if !c.cfg.MAC.IsZero() && c.in.MAC("e0") != c.cfg.MAC.String() {
			t.Errorf("MAC %s", c.in.MAC("e0"))
		}
		for _, dev := range []string{"vxh0", fmt.Sprint("vxt", d.glue.host.Index)} {
			if out := m.IP("link", "show", dev); !strings.Contains(out, c.mtu) || !strings.Contains(out, ",UP") {
				t.Errorf("%+v:\n%s", c.cfg, out)
			}
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
		if err := d.Fit(1500); !errors.Is(err, net.ErrClosed) {
			t.Errorf("Fit after Close: %v", err)
		}
		for _, h := range []*netns.Host{a, m} {
			if out := h.IP("-br", "link"); strings.Count(out, "\n") != 1 {
				t.Errorf("%+v: left in %s:\n%s", c.cfg, h.Name, out)
			}
		}
	}
	tap := openTAP(t, m, "tap0", nil)
	if hook, err := tap.Hook(); err != nil || hook.Kind != HookTAP || !strings.Contains(m.IP("-o", "link", "show", "tap0"), fmt.Sprint(hook.Index, ": tap0")) {
		t.Errorf("hook %+v, %v", hook, err)
	}
	tap.Close()
	if hook, err := tap.Hook(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("after Close: hook %+v, %v", hook, err)
	}
	for _, name := range []string{"", "auto%d"} {
		d := openVeth(t, m, name, nil)
		if !has(t, m, d.Name()) || strings.Contains(d.Name(), "%") {
			t.Errorf("%q became %q", name, d.Name())
		}
		d.Close()
	}
	if now := underlaytest.OpenFiles(t); now != fds {
		t.Errorf("%d descriptors before, %d after", fds, now)
	}
}

// An interface that exists keeps its name, its peer and its place, and has its stack back after Close.
func TestInterfaceStays(t *testing.T) {
	n := netns.New(t)
	a, m := n.Host("a"), n.Host("m")
	n.Link(a, "10.9.0.1/24", m, "10.9.0.2/24")
	a.Ready()
	a.Ping("10.9.0.2", 1)
	for _, open := range []func(string, *DeviceConfig) (*Device, error){OpenInterface, OpenVeth} {
		for _, namespace := range []string{"", m.NS} {
			in := m
			if namespace != "" {
				in = a
			}
			d := netns.Open(t, in, func() (*Device, error) { return open("eth0", &DeviceConfig{Namespace: namespace, Existing: true}) })
			if hook, err := d.Hook(); err != nil || hook.Kind != HookInterface || hook.Index == 0 || hook.Namespace == 0 || !d.Existed() || d.Name() != "eth0" || d.MTU(0) != 1514 {
				t.Errorf("existed %v, %s, %d", d.Existed(), d.Name(), d.MTU(0))
			}
			m.Do(func() {
				x, err := open("eth0", nil)
				refused(t, x, err, "another port has the interface", syscall.EBUSY)
			})
			done := guest(d, "10.9.0.2")
			a.IP("neigh", "flush", "dev", "eth0")
			a.Ping("10.9.0.2", 2)
			if out := a.IP("neigh", "show", "10.9.0.2"); !strings.Contains(out, "02:00:00:00:00:ee") {
				t.Errorf("the host has answered: %s", out)
			}
			d.Close()
			<-done
			a.IP("neigh", "flush", "dev", "eth0")
			a.Ping("10.9.0.2", 2)
			if out := m.IP("-br", "link"); strings.Contains(out, "vxt") || strings.Contains(m.IP("-d", "link", "show", "eth0"), "promiscuity 1") {
				t.Errorf("left:\n%s", out)
			}
		}
	}
}

// Two ports cannot have one veth, whichever end of it is named.
func TestVethTaken(t *testing.T) {
	n := netns.New(t)
	m := n.Host("m")
	openVeth(t, m, "e0", nil)
	m.Do(func() {
		for _, name := range []string{"e0", "vxh0"} {
			for _, open := range []func(string, *DeviceConfig) (*Device, error){OpenInterface, OpenVeth} {
				d, err := open(name, nil)
				refused(t, d, err, "another port has made it", syscall.EBUSY)
			}
		}
	})
}

func TestVethOpenErrors(t *testing.T) {
	n := netns.New(t)
	h := n.Host("h")
	h.IP("tuntap", "add", "dev", "tap0", "mode", "tap")
	h.IP("tuntap", "add", "dev", "tun0", "mode", "tun")
	h.IP("link", "add", "v0", "type", "veth", "peer", "v1")
	h.IP("link", "add", "v2", "type", "veth", "peer", "v3")
	h.Bridge("br0", "v2")
	index := strings.SplitN(h.IP("-o", "link", "show", "v0"), ":", 2)[0]
	for _, c := range []struct {
		open func(string, *DeviceConfig) (*Device, error)
		name string
		cfg  *DeviceConfig
		is   error
		says string
	}{
		{OpenVeth, "sixteen-bytes-xx", nil, nil, `port: veth name "sixteen-bytes-xx": want 1 to 15 bytes`},
		{OpenInterface, "", nil, nil, `port: interface name "": want 1 to 15 bytes`},
		{OpenVeth, "a/b", nil, syscall.EINVAL, `port: veth "a/b": making a veth pair: `},
		{OpenVeth, "tap0", nil, syscall.EINVAL, `port: veth "tap0": a device of another driver, tun, not a veth: `},
		{OpenVeth, "lo", nil, syscall.EINVAL, `port: veth "lo": a device of another driver, without a kind, not a veth: `},
		{OpenVeth, "v2", nil, syscall.EINVAL, `port: veth "v2": it is in a bridge, `},
		{OpenInterface, "v2", nil, syscall.EINVAL, `port: interface "v2": it is in a bridge, `},
		{OpenVeth, "x", &DeviceConfig{Existing: true}, syscall.ENODEV, `port: veth "x": there is no veth with this name: `},
		{OpenInterface, "x", nil, syscall.ENODEV, `port: interface "x": looking for it: no such device`},
		{OpenInterface, "lo", nil, syscall.EINVAL, `port: interface "lo": not an Ethernet interface: `},
		{OpenInterface, "tun0", nil, syscall.EINVAL, `port: interface "tun0": not an Ethernet interface: `},
		{OpenVeth, "x", &DeviceConfig{Queues: 257}, nil, "Queues: 257"},
		{OpenVeth, "x", &DeviceConfig{MTU: 1 << 20}, nil, "MTU: 1048576"},
		{OpenVeth, "x", &DeviceConfig{MAC: frame.Broadcast}, nil, "must be the MAC of one host"},
		{OpenVeth, "x", &DeviceConfig{Namespace: "no-such"}, os.ErrNotExist, `port: veth "x": DeviceConfig.Namespace "no-such": no such file`},
		{OpenInterface, "x", &DeviceConfig{Namespace: "/dev/null"}, syscall.EINVAL, `port: interface "x": DeviceConfig.Namespace "/dev/null": entering the network namespace`},
	} {
		h.Do(func() {
			d, err := c.open(c.name, c.cfg)
			refused(t, d, err, c.says, c.is)
		})
	}
	h.IP("tuntap", "add", "dev", "vxt"+index, "mode", "tap")
	h.Do(func() {
		d, err := OpenInterface("v0", nil)
		refused(t, d, err, "there is a persistent TAP vxt"+index, syscall.EBUSY)
	})
	h.IP("link", "del", "vxt"+index)
	if out := h.IP("-br", "link"); strings.Count(out, "\n") != 8 {
		t.Errorf("devices are left after errors:\n%s", out)
	}
}

// The guest's end may be moved, renamed, set down and up, under traffic.
func TestVethMoved(t *testing.T) {
	n := netns.New(t)
	x, y, b, m := n.Host("x"), n.Host("y"), n.Host("b"), n.Host("m")
	d, other := openVeth(t, m, "e0", &DeviceConfig{Queues: 2}), openVeth(t, m, "e1", &DeviceConfig{Namespace: b.NS})
	switched(t, []uint32{0, 0}, d, other)
	b.Addr("e1", "10.9.0.2/24")
	flood(t, b, "10.9.0.255:7000")
	at, name := m, "e0"
	for i, to := range []*netns.Host{x, y, m, x} {
		next := fmt.Sprint("g", i)
		at.IP("link", "set", name, "netns", to.NS, "name", next)
		at, name = to, next
		at.MTU(name, 1400+i)
		at.Up(name)
		at.Addr(name, "10.9.0.1/24")
		at.Ready()
		at.Ping("10.9.0.2", 2)
		at.Transfer(b, "10.9.0.2:7000", 1<<20)
		d.update()
		if d.MTU(0) != 1414+i || !strings.Contains(m.IP("link", "show", "vxh0"), fmt.Sprint("mtu ", 1400+i)) {
			t.Errorf("in %s: MTU %d\n%s", to.Name, d.MTU(0), m.IP("link", "show", "vxh0"))
		}
	}
	stop := at.Pinging("10.9.0.2")
	at.IP("link", "set", name, "down")
	at.Up(name)
	stop()
	if d.Name() != "e0" {
		t.Errorf("name %q", d.Name())
	}
}

// The MTU of the pair is one: set by Fit, at either end, and of our end.
func TestVethMTU(t *testing.T) {
	n := netns.New(t)
	a, far, m := n.Host("a"), n.Host("far"), n.Host("m")
	for _, namespace := range []string{"", a.NS} {
		d := openVeth(t, m, "e0", &DeviceConfig{Namespace: namespace})
		in := m
		if namespace != "" {
			in = a
		}
		agree := func(what string, in *netns.Host, mtu int) {
			t.Helper()
			fake.Until(t, what+": the MTU follows", func() bool { return d.MTU(0) == mtu+ethLen })
			for h, dev := range map[*netns.Host]string{in: "e0", m: "vxh0"} {
				h.Until(fmt.Sprint(what, ": ", dev, " has the MTU ", mtu), func() bool {
					return strings.Contains(h.IP("link", "show", dev), fmt.Sprint("mtu ", mtu, " "))
				})
			}
		}
		must(t, d.Fit(1400+ethLen))
		agree("Fit", in, 1400)
		m.MTU("vxh0", 1300)
		agree("our end", in, 1300)
		in.MTU("e0", 1350)
		d.update()
		agree("the guest's end", in, 1350)
		in.IP("link", "set", "e0", "netns", far.NS)
		if err := d.Fit(1450 + ethLen); err == nil || !strings.Contains(err.Error(), "was moved to another network namespace: set its MTU there") {
			t.Errorf("Fit after a move: %v", err)
		}
		if err := d.SetMTU(1450); err == nil || !strings.Contains(err.Error(), "MTU 1450: the guest's end was moved") || d.MTU(0) != 1350+ethLen {
			t.Errorf("SetMTU after a move: %v, and frames of %d are taken", err, d.MTU(0))
		}
		far.MTU("e0", 1450)
		d.update()
		agree("after the move", far, 1450)
		must(t, d.SetMTU(1450))
		d.Close()
	}
	d := openVeth(t, m, "e0", &DeviceConfig{MTU: 1400})
	if err := d.Fit(1300 + ethLen); err != nil || d.MTU(0) != 1414 {
		t.Errorf("Fit of a fixed MTU: %v, %d", err, d.MTU(0))
	}
	must(t, d.SetMTU(1500))
	if out := m.IP("link", "show", "e0"); d.MTU(0) != 1514 || !strings.Contains(out, "mtu 1500 ") {
		t.Errorf("SetMTU: %d\n%s", d.MTU(0), out)
	}
	must(t, d.SetMTU(0))
	if err := d.Fit(1300 + ethLen); err != nil || d.MTU(0) != 1314 {
		t.Errorf("Fit of an MTU that is no longer fixed: %v, %d", err, d.MTU(0))
	}
}

// Whatever part of the chain goes, the port fails as one whose TAP is deleted, once, and Close leaves nothing.
func TestVethGone(t *testing.T) {
	for name, gone := range map[string]func(m, a *netns.Host, tap string){
		"guest's end":       func(m, a *netns.Host, tap string) { a.IP("link", "del", "e0") },
		"our end":           func(m, a *netns.Host, tap string) { m.IP("link", "del", "vxh0") },
		"our end, moved":    func(m, a *netns.Host, tap string) { m.IP("link", "set", "vxh0", "netns", a.NS) },
		"TAP":               func(m, a *netns.Host, tap string) { m.IP("link", "del", tap) },
		"guest's namespace": func(m, a *netns.Host, tap string) { must(t, netns.Remove(a.NS)) },
	} {
		for _, busy := range []bool{false, true} {
			t.Run(fmt.Sprint(name, busy), func(t *testing.T) {
				n := netns.New(t)
				a, m := n.Host("a"), n.Host("m")
				if name == "guest's namespace" {
					a = n.Host("gone")
				}
				d, host := openVeth(t, m, "e0", &DeviceConfig{Queues: 2, Namespace: a.NS}), NewPipe(nil)
				if busy && name != "guest's namespace" { // a socket keeps its namespace
					a.Addr("e0", "10.9.0.1/24")
					a.Neighbour("e0", "10.9.0.2", "02:00:00:00:00:ee")
					flood(t, a, "10.9.0.2:7000")
				}
				events := switched(t, []uint32{0, 0}, d, host).Events()
				defer events.Close()
				time.Sleep(20 * time.Millisecond)
				gone(m, a, fmt.Sprint("vxt", d.glue.host.Index))
				if err := portDown(t, events); !errors.Is(err, unix.EBADFD) || !strings.Contains(err.Error(), `port: veth "e0": `) {
					t.Errorf("event %v", err)
				}
				for _, r := range d.Readers() {
					if err := r.Read(frame.NewBatch(nil)); !errors.Is(err, net.ErrClosed) { // by the switch
						t.Errorf("Read: %v", err)
					}
				}
				nothing(t, m)
				if name != "guest's namespace" && name != "our end, moved" {
					nothing(t, a)
				}
			})
		}
	}
}

func TestInterfaceGone(t *testing.T) {
	for name, gone := range map[string]func(m, a *netns.Host){
		"deleted":  func(m, a *netns.Host) { m.IP("link", "del", "eth0") },
		"its peer": func(m, a *netns.Host) { a.IP("link", "del", "eth0") },
		"moved":    func(m, a *netns.Host) { m.IP("link", "set", "eth0", "netns", a.NS, "name", "eth9") },
	} {
		t.Run(name, func(t *testing.T) {
			n := netns.New(t)
			a, m := n.Host("a"), n.Host("m")
			n.Link(m, "", a, "")
			d := openInterface(t, m, "eth0", nil)
			events := switched(t, []uint32{0, 0}, d, NewPipe(nil)).Events()
			defer events.Close()
			m.MTU("eth0", 1400)
			fake.Until(t, "the MTU follows", func() bool { return d.MTU(0) == 1414 })
			gone(m, a)
			if err := portDown(t, events); !errors.Is(err, unix.EBADFD) || !strings.Contains(err.Error(), `port: interface "eth0": it was deleted, or moved`) {
				t.Errorf("event %v", err)
			}
			nothing(t, m)
		})
	}
}

// Hook has MTU return what the interface has now, before the port has been told of a change.
func TestInterfaceHookMTU(t *testing.T) {
	n := netns.New(t)
	a, m := n.Host("a"), n.Host("m")
	n.Link(m, "", a, "")
	d := openInterface(t, m, "eth0", nil)
	defer d.Close()
	for i := range 100 {
		must(t, d.glue.home.Change(d.glue.host.Index, sys.LinkChange{MTU: 1400 + i}))
		check.Must(d.Hook())(t)
		if got := d.MTU(0); got != 1414+i {
			t.Fatalf("MTU %d, want %d", got, 1414+i)
		}
	}
}

// A process that is killed leaves no device, and the next has the name at once.
func TestVethOfAKilledProcess(t *testing.T) {
	n := netns.New(t)
	a, m := n.Host("a"), n.Host("m")
	ctx, cancel := context.WithTimeout(t.Context(), netns.Timeout)
	defer cancel()
	for i := range 3 {
		c := exec.CommandContext(ctx, "ip", "netns", "exec", m.NS, os.Args[0])
		c.Env = append(os.Environ(), childVar+"="+vethJob)
		check.Must(c.StdinPipe())(t)
		out := check.Must(c.StdoutPipe())(t)
		must(t, c.Start())
		lines := bufio.NewScanner(out)
		if !lines.Scan() || lines.Text() != "false <nil>" || !has(t, m, "e0") {
			t.Fatal(lines.Text())
		}
		if i == 0 {
			m.IP("link", "set", "e0", "netns", a.NS)
		}
		must(t, c.Process.Kill())
		c.Wait()
		if i == 1 {
			openVeth(t, m, "e0", nil).Close()
		}
	}
	nothing(t, a, m)
}

// What capabilities are needed, and what is said without.
func TestVethCapabilities(t *testing.T) {
	n := netns.New(t)
	far, m := n.Host("far"), n.Host("m")
	n.Link(m, "", far, "")
	for _, c := range []struct{ job, caps, want string }{
		{vethJob, "", `true port: veth "e0": hidden network namespace: needs CAP_SYS_ADMIN and CAP_NET_ADMIN: `},
		{vethJob, ",+net_admin,+bpf", `true port: veth "e0": hidden network namespace: needs CAP_SYS_ADMIN and CAP_NET_ADMIN: `},
		{vethJob, ",+sys_admin", `true port: veth "e0": making a veth pair: `},
		{vethJob, ",+sys_admin,+net_admin", `false <nil>`},
		{ifaceJob, "", `true port: interface "eth0": TAP vxt`},
		{ifaceJob, ",+net_admin", `true port: interface "eth0": redirecting frames: needs CAP_BPF and CAP_NET_ADMIN: BPF_PROG_LOAD: operation not permitted`},
		{ifaceJob, ",+net_admin,+bpf", `false <nil>`},
	} {
		t.Setenv(childVar, c.job)
		out := strings.TrimSpace(m.Run("setpriv", "--bounding-set=-all"+c.caps, os.Args[0]))
		if !strings.HasPrefix(out, c.want) || strings.Contains(out, "\n") {
			t.Errorf("%s with %q:\n got %s\nwant %s", c.job, c.caps, out, c.want)
		}
		if out := m.IP("-br", "link"); strings.Count(out, "\n") != 2 {
			t.Errorf("%s with %q: left\n%s", c.job, c.caps, out)
		}
	}
}

func TestVethCloseRacesWithEverything(t *testing.T) {
	n := netns.New(t)
	a, m := n.Host("a"), n.Host("m")
	a.Quiet()
	for i := range 5 {
		d := openVeth(t, m, "e0", &DeviceConfig{Queues: 2, Namespace: a.NS})
		a.Inject("e0", fake.Ethernet(60, 0), fake.Ethernet(1514, 0))
		m.MTU("vxh0", 1500+i)
		closeRaces(t, d, d, func() { d.update(); d.Fit(1400 + i) })
	}
}
