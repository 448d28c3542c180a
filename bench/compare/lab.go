package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// prefix begins the name of everything a run makes; the process id follows.
const prefix = "vxscompare-"

// overhead of VXLAN over IPv4, in bytes of the underlay's MTU (RFC 7348, section 5):
// the inner Ethernet header 14, VXLAN 8, UDP 8, IPv4 20.
const overhead = 50

const vni = "100"

// An underlay is what joins the two hosts.
type underlay struct {
	mtu   int
	plain bool // without the offloads of veth
}

// shared is what the labs of a run have in common.
type shared struct {
	self, p2p string // programs: this one, and examples/p2p
	dir       string // for files
}

// A lab is the two hosts with their guests; see the drawing of the package.
type lab struct {
	shared
	hosts, guests [2]string // namespaces; a guest may be its host
	inner         int       // MTU of the guests
	pairs         int       // of hosts behind the guests that talk, in the case pairs
	tunnels       []*netns.Process
	procs         []*netns.Process // all there are, tunnels included
}

// newLab makes hosts, guests and the veth pairs. It makes no bridge and no tunnel.
func newLab(ctx context.Context, s shared, u underlay) (_ *lab, err error) {
	l := &lab{shared: s, inner: u.mtu - overhead}
	defer func() {
		if err != nil {
			err = errors.Join(err, l.close())
		}
	}()
	id := prefix + strconv.Itoa(os.Getpid())
	for i, end := range []string{"a", "b"} {
		l.hosts[i], l.guests[i] = id+"-host-"+end, id+"-guest-"+end
		if err := netns.IP(ctx, "", "netns add "+l.hosts[i], "netns add "+l.guests[i]); err != nil {
			return nil, err
		}
	}
	if err := netns.IP(ctx, l.hosts[0], fmt.Sprintf("link add under mtu %d type veth peer name under mtu %[1]d netns %s", u.mtu, l.hosts[1])); err != nil {
		return nil, err
	}
	for i := range 2 {
		if err := netns.IP(ctx, l.hosts[i],
			"link set lo up",
			"addr add "+hostAddr(i)+"/24 dev under",
			"link set under up",
			fmt.Sprintf("link add guest mtu %d type veth peer name eth0 mtu %[1]d netns %s", l.inner, l.guests[i]),
			"link set guest up"); err != nil {
			return nil, err
		}
		if err := netns.IP(ctx, l.guests[i], "link set lo up", "addr add "+l.guestAddr(i)+"/24 dev eth0", "link set eth0 up"); err != nil {
			return nil, err
		}
		if u.plain {
			if err := offloads(ctx, l.hosts[i], "under", "tx", "tso", "gso", "gro"); err != nil {
				return nil, err
			}
		}
	}
	return l, nil
}

// hostAddr is the address of a host on the underlay.
func hostAddr(i int) string { return "10.0.0." + strconv.Itoa(i+1) }

func (l *lab) guestAddr(i int) string { return "192.168.7." + strconv.Itoa(i+1) }

// offloads turns offloads of a device off.
func offloads(ctx context.Context, ns, dev string, which ...string) error {
	args := []string{"ethtool", "-K", dev}
	for _, w := range which {
		args = append(args, w, "off")
	}
	_, err := netns.Output(ctx, netns.Timeout, ns, args...)
	return err
}

// start runs a program for as long as the lab is there, and returns when it has printed text.
func (l *lab) start(ctx context.Context, text, ns string, args ...string) (*netns.Process, error) {
	p, err := netns.Start(ctx, ns, args...)
	if err != nil {
		return nil, err
	}
	l.procs = append(l.procs, p)
	return p, p.Printed(ctx, text)
}

// tunnel is start for a program that carries packets: what it costs is counted.
func (l *lab) tunnel(ctx context.Context, text, ns string, args ...string) error {
	p, err := l.start(ctx, text, ns, args...)
	if err == nil {
		l.tunnels = append(l.tunnels, p)
	}
	return err
}

// tunnelAt returns the process that is the tunnel's end at host i, nil if none is.
func (l *lab) tunnelAt(i int) *netns.Process {
	for _, p := range l.tunnels {
		if p.NS == l.hosts[i] {
			return p
		}
	}
	return nil
}

// warm returns when the guests have reached each other and the tables are filled.
func (l *lab) warm(ctx context.Context) error {
	if _, err := l.start(ctx, "ready", l.guests[1], l.self, "echo", l.guestAddr(1)+echoPort); err != nil {
		return err
	}
	_, err := l.rr(ctx, "50ms")
	return err
}

// close removes the lab, whatever became of the run's context.
func (l *lab) close() (err error) {
	for _, p := range l.procs {
		p.Kill()
	}
	for i, ns := range append(l.hosts[:], l.guests[:]...) {
		if !slices.Contains(l.hosts[:], ns) || i < len(l.hosts) {
			err = errors.Join(err, netns.Remove(ns))
		}
	}
	return err
}

// sweep removes what runs left that no longer exist: namespaces and folders.
func sweep() error {
	folders := func(name string) error { return os.RemoveAll(filepath.Join(os.TempDir(), name)) }
	return errors.Join(netns.Sweep(netns.Folder, prefix, netns.Remove), netns.Sweep(os.TempDir(), prefix, folders))
}
