package hosted_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/flannel"
	"github.com/vxswitch/vxswitch/flannel/hosted"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
	"github.com/vxswitch/vxswitch/node"
	"github.com/vxswitch/vxswitch/underlay"
	"github.com/vxswitch/vxswitch/vtep"
)

// A counted is a shape whose snapshots of routes are counted.
type counted struct {
	flannel.Shape
	mu        sync.Mutex
	snapshots int
}

func (c *counted) Routes(u flannel.RouteUpdate) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if u.Snapshot {
		c.snapshots++
	}
	return c.Shape.Routes(u)
}

// An alone is a node of ours on a host, with a store in memory.
type alone struct {
	*flannel.Plane
	t     *testing.T
	shape *counted
	log   check.Log
	ended chan error
	stop  func() error
}

// inHost starts a node on the interface eth0 of a host, and does not wait for it.
func inHost(t *testing.T, h *netns.Host, m *flannel.Memory, change func(*hosted.Config, *flannel.PlaneConfig)) *alone {
	t.Helper()
	n, err := node.New(&node.Options{Owners: []string{"flannel"}, Listen: func(x *node.Tunnel) (u vtep.Underlay, err error) {
		h.Do(func() { u, err = underlay.ListenUDP(x.AddrPort(), &x.UDPConfig) })
		return u, err
	}})
	check.OK(t, err)
	a := &alone{t: t, ended: make(chan error, 1)}
	hc := &hosted.Config{Node: n, Namespace: h.NS, Link: "eth0", Persistent: true, Log: slog.New(slog.NewTextHandler(&a.log, nil))}
	store := &flannel.Registry{KV: m.KV(), Rand: func(int) int { return 0 }} // the first that is free: none that other puts
	pc := &flannel.PlaneConfig{Store: store, OneMAC: true, PublicIP: netip.MustParseAddr("192.0.2.1")}
	if change != nil {
		change(hc, pc)
	}
	shape, err := hosted.New(hc)
	check.OK(t, err)
	a.shape = &counted{Shape: shape}
	pc.Shape = a.shape
	if a.Plane, err = flannel.NewPlane(pc); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { n.Run(ctx) })
	planeCtx, stopPlane := context.WithCancel(ctx)
	go func() { a.ended <- a.Run(planeCtx) }()
	a.stop = sync.OnceValue(func() error {
		stopPlane()
		err := <-a.ended
		cancel()
		running.Wait()
		n.Close()
		return err
	})
	t.Cleanup(func() { a.stop() })
	return a
}

// ready waits until leases are followed.
func (a *alone) ready() *alone {
	t := a.t
	t.Helper()
	select {
	case <-a.Ready():
	case err := <-a.ended:
		a.ended <- err
		t.Fatal(err)
	case <-time.After(20 * time.Second):
		t.Fatal("not ready")
	}
	return a
}

// until waits for something on a host. A plane that has ended meanwhile fails the test at once.
func (a *alone) until(h *netns.Host, what string, ok func() bool) {
	a.t.Helper()
	h.Until(what, func() bool {
		select {
		case err := <-a.ended:
			a.ended <- err
			a.t.Fatalf("%s: the plane has ended: %v\n%s", what, err, a.log.String())
		default:
		}
		return ok()
	})
}

// other puts the lease of another node, whose number is in its subnet, public address and MAC.
func other(m *flannel.Memory, backend string, n int) {
	a := flannel.Attrs{Type: backend, IPv4: flannel.End{PublicIP: netip.MustParseAddr(fmt.Sprintf("192.0.2.%d", n))}}
	if backend == "vxlan" {
		a.IPv4.VNI, a.IPv4.MAC = 1, frame.MAC{2, 0, 0, 0, 0, byte(n)}
	}
	m.Put(fmt.Sprintf("10.3.%d.0-24", n), a.Value(), 0)
}

func hostAndStore(t *testing.T, network string) (*netns.Net, *netns.Host, *flannel.Memory) {
	t.Helper()
	n := netns.New(t)
	h := n.Host("h")
	n.Plug(h, "192.0.2.1/24", n.Switch("sw"))
	m := flannel.NewMemory(network)
	t.Cleanup(func() { m.Close() })
	return n, h, m
}

// A route that the kernel refuses is said once, and others come and go without it.
func TestRefusedRoute(t *testing.T) {
	_, h, m := hostAndStore(t, fmt.Sprintf(vxlanJSON, ""))
	h.IP("route", "add", "blackhole", "10.3.9.0/24", "metric", "778") // that of ours, too
	other(m, "vxlan", 9)
	a := inHost(t, h, m, nil).ready()
	before := a.shape.snapshots
	for i := 20; i < 30; i++ {
		other(m, "vxlan", i)
		a.until(h, "the route is there", func() bool { return strings.Contains(h.IP("route", "show"), fmt.Sprintf("10.3.%d.0/24", i)) })
	}
	a.shape.mu.Lock()
	defer a.shape.mu.Unlock()
	if n := a.shape.snapshots - before; n != 0 {
		t.Errorf("all routes were passed again %d times", n)
	}
	if n := strings.Count(a.log.String(), "routes wait"); n != 1 {
		t.Errorf("said %d times: %s", n, a.log.String())
	}
	h.IP("route", "del", "blackhole", "10.3.9.0/24", "metric", "778")
	a.until(h, "the route is there", func() bool { return strings.Contains(h.IP("route", "show"), "10.3.9.0/24 via") })
}

// Routes that a former process has left give way when the link has another name.
func TestOtherLink(t *testing.T) {
	n, h, m := hostAndStore(t, strings.Replace(fmt.Sprintf(vxlanJSON, ""), "vxlan", "host-gw", 1))
	n.Plug(h, "198.51.100.1/24", n.Switch("sw2"))
	other(m, "host-gw", 9)
	links := []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("198.51.100.0/24")}
	a := inHost(t, h, m, func(_ *hosted.Config, p *flannel.PlaneConfig) { p.Links = links }).ready()
	a.stop()
	m.Put("10.3.9.0-24", (&flannel.Attrs{Type: "host-gw", IPv4: flannel.End{PublicIP: netip.MustParseAddr("198.51.100.9")}}).Value(), 0)
	a = inHost(t, h, m, func(c *hosted.Config, p *flannel.PlaneConfig) {
		p.Links = links
		c.Link, p.PublicIP = "eth1", netip.MustParseAddr("198.51.100.1")
	}).ready()
	if got := h.IP("route", "show", "10.3.9.0/24"); !strings.Contains(got, "via 198.51.100.9 dev eth1") {
		t.Errorf("%s\n%s", got, a.log.String())
	}
}

// Or the device.
func TestOtherDevice(t *testing.T) {
	_, h, m := hostAndStore(t, fmt.Sprintf(vxlanJSON, ""))
	other(m, "vxlan", 9)
	a := inHost(t, h, m, func(c *hosted.Config, p *flannel.PlaneConfig) { c.Device = "one" }).ready()
	a.stop()
	h.IP("route", "add", "10.3.8.0/25", "dev", "lo", "proto", "118") // not by a next hop, as those of package hostnet for others
	a = inHost(t, h, m, func(c *hosted.Config, p *flannel.PlaneConfig) { c.Device = "two" }).ready()
	if got := h.IP("route", "show", "10.3.9.0/24"); !strings.Contains(got, "dev two") {
		t.Errorf("%s\n%s", got, a.log.String())
	}
	if got := h.IP("route", "show", "10.3.8.0/25"); got == "" {
		t.Error("a route that is not of a node's subnet is gone")
	}
}

// The link is the host's own: it stays down if somebody takes it down, and the routes are back when it is up.
func TestLinkDown(t *testing.T) {
	_, h, m := hostAndStore(t, strings.Replace(fmt.Sprintf(vxlanJSON, ""), "vxlan", "host-gw", 1))
	other(m, "host-gw", 9)
	a := inHost(t, h, m, func(_ *hosted.Config, p *flannel.PlaneConfig) {
		p.Links = []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}
	}).ready()
	route := func() bool { return strings.Contains(h.IP("route", "show", "10.3.9.0/24"), "via 192.0.2.9") }
	a.until(h, "the route is there", route)
	h.IP("link", "set", "eth0", "down")
	a.until(h, "the route waits", func() bool { return strings.Contains(a.log.String(), "failed: hostnet: route 10.3.9.0/24") })
	if got := h.IP("link", "show", "eth0"); !strings.Contains(got, "state DOWN") {
		t.Errorf("it is up again: %s", got)
	}
	h.IP("link", "set", "eth0", "up")
	a.until(h, "the route is back", route)
}
