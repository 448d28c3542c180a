package main

import (
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/vxswitch/vxswitch/internal/lab/netns"
	"github.com/vxswitch/vxswitch/internal/lab/qemu"
)

// A guest that has the end of a veth pair, and the kernel's vxlan device: the end is moved after p2p is ready, frames go both
// ways, with offloads and without, and nothing is left at the end.
func TestVeth(t *testing.T) {
	for _, flags := range []string{"", "-queues 2 -mtu 1400", "-offload=false"} {
		for i := range families {
			f := &families[i]
			t.Run(f.name+flags, func(t *testing.T) {
				a, b := f.peers(t, netns.VXLAN{Addr: "192.168.7.2/24,fd07::2/64", Keep: true})
				g := guestOf(t, a)
				mtu := f.mtu
				if strings.Contains(flags, "-mtu") {
					mtu = 1400
				}
				p := f.start(t, a, mtu, "-kind veth "+flags)
				a.IP("link", "set", "vxs0", "netns", g.NS, "name", "eth0")
				g.Up("eth0")
				g.Addr("eth0", "192.168.7.1/24,fd07::1/64")
				g.Ready()
				if out := g.IP("link", "show", "eth0"); !strings.Contains(out, fmt.Sprint("mtu ", mtu)) {
					t.Errorf("%s", out)
				}
				for _, to := range []string{"192.168.7.2", "fd07::2"} {
					g.Ping(to, 2)
					intact(t, g, b, to+" -n 20M", to+" -n 20M -R")
				}
				g.Transfer(b, "192.168.7.2:7000", 4<<20)
				l := stop(t, p)
				l.wantDrops(t, "port-full")
				if out := a.IP("-br", "link"); strings.Contains(out, "vx") || strings.Count(g.IP("-br", "link"), "\n") != 1 {
					t.Errorf("left:\n%s%s", out, g.IP("-br", "link"))
				}
			})
		}
	}
}

// guestOf makes a host for a guest in a network that a host is in.
func guestOf(t *testing.T, of *netns.Host) *netns.Host {
	t.Helper()
	return netns.New(t).Host("guest")
}

// A veth that exists stays, with its peer, and keeps its MTU: a guest with a longer one is told of packets that do not fit the tunnel.
func TestVethThatExists(t *testing.T) {
	f := &families[0]
	a, b := f.peers(t, netns.VXLAN{})
	g := guestOf(t, a)
	a.IP("link", "add", "vxs0", "type", "veth", "peer", "name", "eth0", "netns", g.NS)
	g.Up("eth0")
	g.Addr("eth0", "192.168.7.1/24")
	for range 2 {
		p := f.start(t, a, 1450, "-kind veth")
		g.Ready()
		g.Ping("192.168.7.2", 2)
		b.Ping("192.168.7.1", 2)
		if mtu := mtuOf(t, g, "192.168.7.2", 1472); mtu != 1450 {
			t.Errorf("a packet of 1500 bytes: the guest is told of an MTU of %d, want 1450", mtu)
		}
		g.IP("route", "flush", "cache")
		stop(t, p)
		if out := a.IP("link", "show", "vxs0"); !strings.Contains(out, "mtu 1500") {
			t.Errorf("its MTU is another: %s", out)
		}
		if gone(t, a, "vxs0") || strings.Contains(a.IP("-br", "link"), "vxt") {
			t.Errorf("left:\n%s", a.IP("-br", "link"))
		}
	}
}

// The guest's end is deleted, or p2p is killed.
func TestVethGone(t *testing.T) {
	f := &families[0]
	a, _ := f.peers(t, netns.VXLAN{})
	g := guestOf(t, a)
	p := f.start(t, a, 1450, "-kind veth")
	path, err := program()
	must(t, err)
	wantFailure(t, inside(a, path, "-local 10.0.0.1 -dstport 4788 -kind veth"), `port: veth "vxs0": another port has made it: device or resource busy: stop that program, or choose another -dev`)
	a.IP("link", "set", "vxs0", "netns", g.NS)
	g.IP("link", "del", "vxs0")
	if p.Wait() == nil || !strings.Contains(p.Output(), `p2p: the tunnel is down: port: veth "vxs0": it was deleted, or moved to another network namespace: file descriptor in bad state: start p2p again`) {
		t.Errorf("%s", p.Output())
	}
	p = f.start(t, a, 1450, "-kind veth")
	a.IP("link", "set", "vxs0", "netns", g.NS)
	p.Signal(syscall.SIGKILL)
	p.Wait()
	p = f.start(t, a, 1450, "-kind veth")
	g.Until("the guest's end is gone", func() bool { return gone(t, g, "vxs0") })
	a.IP("link", "set", "vxs0", "netns", g.NS)
	stop(t, p)
}

// On a kernel without tcx, one line says so, and nothing is left; a TAP does its work there.
func TestVethOnAnOldKernel(t *testing.T) {
	t.Parallel()
	h := netns.New(t).Host("h")
	g := qemu.Boot(t, h, qemu.Config{
		Addr: "10.0.0.2/24", Modules: []string{"tun", "veth"}, Programs: map[string]string{"/bin/p2p": staticProgram(t)},
	})
	if release := g.Run("uname -r"); !strings.HasPrefix(release, "6.1.") {
		t.Skipf("Linux %s", release)
	}
	out := g.Run("p2p -local 10.0.0.2 -kind veth 2>&1; echo status $?; ip -br link")
	const want = `p2p: port: veth "vxs0": redirecting frames: needs tcx, of Linux 6.6: BPF_LINK_CREATE: invalid argument: unsupported operation: leave -kind out` + "\nstatus 1\n"
	if !strings.HasPrefix(out, want) || strings.Contains(strings.TrimPrefix(out, want), "vx") {
		t.Errorf("\n got %s\nwant %s", out, want)
	}
}
