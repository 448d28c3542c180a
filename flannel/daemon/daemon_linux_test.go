package daemon

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/flannel"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
	"github.com/vxswitch/vxswitch/node"
	"github.com/vxswitch/vxswitch/underlay/memory"
	"github.com/vxswitch/vxswitch/vtep"
)

// A running is a Daemon in mode l3 in a host, with a store and an underlay in memory.
type running struct {
	*Daemon
	node  *node.Node
	ended chan error
	stop  func() error
}

func runL3(t *testing.T, n *node.Node, h *netns.Host, store flannel.Store, file string) *running {
	t.Helper()
	return runConfig(t, n, h, store, &Config{Pods: 200, Iface: []string{"eth0"}, SubnetFile: file})
}

func runConfig(t *testing.T, n *node.Node, h *netns.Host, store flannel.Store, c *Config) *running {
	t.Helper()
	ready := make(chan int, 1)
	d, err := New(c, &Options{Node: n, Store: store, Ready: func(_ flannel.Status, mtu int) { ready <- mtu }})
	check.OK(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	r := &running{Daemon: d, node: n, ended: make(chan error, 1)}
	go h.Do(func() { r.ended <- d.Run(ctx) })
	r.stop = sync.OnceValue(func() error { cancel(); return <-r.ended })
	t.Cleanup(func() { r.stop() })
	select {
	case mtu := <-ready:
		if mtu != 1450 || !d.Ready() {
			t.Errorf("MTU %d, ready %v", mtu, d.Ready())
		}
	case err := <-r.ended:
		r.stop = func() error { return err }
		t.Fatal(err)
	case <-time.After(20 * time.Second):
		t.Fatal("not ready")
	}
	return r
}

// That a subnet file cannot be written is the same error each time, with its name.
func TestReplaceFails(t *testing.T) {
	if err := replace("/proc/self/subnet.env", nil); err == nil || err.Error() != "open /proc/self/subnet.env: no such file or directory" {
		t.Error(err)
	}
}

// host returns a host with an address on a wire, and a node for it.
func host(t *testing.T) (*netns.Host, *node.Node) {
	t.Helper()
	n := netns.New(t)
	h := n.Host("h")
	n.Plug(h, "192.0.2.1/24", n.Switch("sw"))
	x := check.Must(node.New(nil))(t)
	t.Cleanup(func() { x.Close() })
	return h, x
}

// With the name of a user, too, etcd may come later than the daemon.
func TestEtcdIsAway(t *testing.T) {
	h, x := host(t)
	c := &Config{Pods: 200, Iface: []string{"eth0"}, SubnetFile: filepath.Join(t.TempDir(), "subnet.env")}
	c.Endpoints, c.Username, c.Password, c.Timeout = []string{"http://192.0.2.9:2379"}, "node", "pod", 200*time.Millisecond
	d, err := New(c, &Options{Node: x})
	check.OK(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go h.Do(func() { ended <- d.Run(ctx) })
	select {
	case err := <-ended:
		t.Fatalf("it has ended: %v", err)
	case <-time.After(2 * time.Second): // two tries
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// A password that cannot be read, such as one in a pipe, which nobody may ever write to, is an error.
func TestPasswordFile(t *testing.T) {
	h, x := host(t)
	dir := t.TempDir()
	c := &Config{Pods: 200, Iface: []string{"eth0"}, SubnetFile: filepath.Join(dir, "subnet.env")}
	c.Username, c.PasswordFile = "node", filepath.Join(dir, "password")
	check.OK(t, syscall.Mkfifo(c.PasswordFile, 0o600))
	d, err := New(c, &Options{Node: x})
	check.OK(t, err)
	ended := make(chan error, 1)
	go h.Do(func() { ended <- d.Run(t.Context()) })
	select {
	case err := <-ended:
		if want := fmt.Sprintf("etcdPasswordFile: %q: it is a pipe; must be a regular file", c.PasswordFile); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("it waits for somebody who writes to the pipe")
	}
}

// In mode l3 the node has segments, gateway and rows while the daemon runs, and the subnet file, which stays for the next one unless
// it leaves.
func TestDaemonL3(t *testing.T) {
	n := netns.New(t)
	h := n.Host("h")
	n.Plug(h, "192.0.2.1/24", n.Switch("sw"))
	wire := memory.NewNetwork(nil)
	t.Cleanup(func() { wire.Close() })
	x := check.Must(node.New(&node.Options{Owners: []string{flannel.DefaultOwner}, Listen: func(t *node.Tunnel) (vtep.Underlay, error) { return wire.Listen(t.AddrPort(), nil) }}))(t)
	t.Cleanup(func() { x.Close() })
	check.OK(t, x.Apply(&node.Config{Segments: []node.Segment{{VNI: 200}}}))
	m := flannel.NewMemory(vxlanJSON)
	t.Cleanup(func() { m.Close() })
	store := &flannel.Registry{KV: m.KV()}
	m.Put("10.3.200.0-24", (&flannel.Attrs{Type: "vxlan", IPv4: flannel.End{PublicIP: netip.MustParseAddr("192.0.2.2"), VNI: 1, MAC: frame.MAC{2, 0, 0, 0, 0, 2}}}).Value(), time.Hour)
	file := filepath.Join(t.TempDir(), "run", "subnet.env")

	r := runL3(t, x, h, store, file)
	b, err := os.ReadFile(file)
	own := r.Plane().Status().Own.Subnet
	if err != nil || flannel.PreviousSubnet(b) != own || !strings.HasSuffix(string(b), "FLANNEL_MTU=1450\nFLANNEL_IPMASQ=false\n") {
		t.Errorf("%v\n%s", err, b)
	}
	if s := r.Plane().Status(); s.Leases != 1 || len(s.Refused) != 0 || len(x.Switch().VSIs()) != 2 {
		t.Errorf("%+v, %d segments", s, len(x.Switch().VSIs()))
	}
	if err := r.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "daemon: Daemon.Run: it was called before; make a new Daemon") {
		t.Error(err)
	}
	if err := r.stop(); err != nil || r.Ready() {
		t.Errorf("%v, ready %v", err, r.Ready())
	}
	if _, err := os.Stat(file); err != nil || len(x.Switch().VSIs()) != 1 {
		t.Errorf("%v, %d segments are left", err, len(x.Switch().VSIs()))
	}
	r = runL3(t, x, h, store, file)
	if again := r.Plane().Status().Own.Subnet; again != own {
		t.Errorf("%v, was %v", again, own)
	}
	r.Leave()
	if err := r.stop(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it has left, and the file: %v", err)
	}

	// A lost lease is an error, after which it may still leave.
	r = runL3(t, x, h, store, file)
	m.Remove(own.Key())
	err = <-r.ended
	r.stop = func() error { return err }
	if !errors.Is(err, flannel.ErrLost) || r.Ready() {
		t.Errorf("%v, ready %v", err, r.Ready())
	}
	r.Leave()
	if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it has left, and the file: %v", err)
	}
}

// A daemon that has ended because another process keeps the subnet file leaves that and all else of the other one alone.
func TestLeaveWhatIsAnothers(t *testing.T) {
	h, x := host(t)
	file := filepath.Join(t.TempDir(), "subnet.env")
	check.OK(t, os.WriteFile(file, []byte("FLANNEL_MTU=1450\n"), 0o600))
	d, err := New(&Config{Pods: 200, Iface: []string{"eth0"}, SubnetFile: file}, &Options{Node: x})
	check.OK(t, err)
	h.Do(func() {
		release, err := alone(t.Context(), file)
		check.OK(t, err)
		defer release()
		if err := d.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "another process on this host keeps it") {
			t.Error(err)
		}
		d.Leave()
	})
	if _, err := os.Stat(file); err != nil {
		t.Errorf("the file of the other process: %v", err)
	}
	h.Do(d.Leave) // the other one has ended
	if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the file that nobody keeps: %v", err)
	}
}

// failAndLeave runs a daemon in mode tap whose subnet file cannot be written, and has it leave after that. It returns an exit status.
func failAndLeave() int {
	m := flannel.NewMemory(`{"Network": "10.3.0.0/16", "Backend": {"Type": "vxlan", "DirectRouting": true}}`)
	defer m.Close()
	for key, ip := range map[string]string{"10.3.8.0-24": "192.0.2.8", "10.3.9.0-24": "198.51.100.9"} {
		m.Put(key, (&flannel.Attrs{Type: "vxlan", IPv4: flannel.End{PublicIP: netip.MustParseAddr(ip), VNI: 1, MAC: frame.MAC{2, 0, 0, 0, 0, key[5]}}}).Value(), 0)
	}
	n, err := node.New(&node.Options{Owners: []string{flannel.DefaultOwner}})
	if err != nil {
		return fail(err)
	}
	defer n.Close()
	d, err := New(&Config{Mode: TAP, Iface: []string{"eth0"}, SubnetFile: "/proc/self/subnet.env"}, &Options{Node: n, Store: &flannel.Registry{KV: m.KV()}})
	if err != nil {
		return fail(err)
	}
	fmt.Println("it ends:", d.Run(context.Background()))
	_, err = net.InterfaceByName("flannel.1")
	fmt.Println("its device:", err)
	d.Leave()
	return 0
}

func fail(err error) int {
	fmt.Println(err)
	return 1
}

// A daemon that has ended with an error, and kept its device and routes for the next one, may still leave.
func TestLeaveAfterAnError(t *testing.T) {
	n := netns.New(t)
	h := n.Host("h")
	n.Plug(h, "192.0.2.1/24", n.Switch("sw"))
	h.IP("route", "add", "default", "via", "192.0.2.254")
	exe, err := os.Executable()
	check.OK(t, err)
	p := h.Start("env", "VXFLANNELD_TEST=leave", exe)
	p.Want("it ends: subnet file: open /proc/self/subnet.env")
	p.Want("its device: <nil>")
	if err := p.Wait(); err != nil {
		t.Error(err)
	}
	if got := h.Run("ip", "-o", "link", "show", "type", "tun") + h.Run("ip", "route", "show", "proto", "118"); got != "" {
		t.Errorf("left: %s", got)
	}
}
