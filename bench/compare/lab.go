package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
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
	hosts, guests [2]string // namespaces
	inner         int       // MTU of the guests
	tunnels       []*process
	procs         []*process // all there are, tunnels included
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
		if err := ip(ctx, "", "netns add "+l.hosts[i], "netns add "+l.guests[i]); err != nil {
			return nil, err
		}
	}
	if err := ip(ctx, l.hosts[0], fmt.Sprintf("link add under mtu %d type veth peer name under mtu %[1]d netns %s", u.mtu, l.hosts[1])); err != nil {
		return nil, err
	}
	for i := range 2 {
		if err := ip(ctx, l.hosts[i],
			"link set lo up",
			"addr add "+l.addr(i)+"/24 dev under",
			"link set under up",
			fmt.Sprintf("link add guest mtu %d type veth peer name eth0 mtu %[1]d netns %s", l.inner, l.guests[i]),
			"link set guest up"); err != nil {
			return nil, err
		}
		if err := ip(ctx, l.guests[i], "link set lo up", "addr add "+l.guestAddr(i)+"/24 dev eth0", "link set eth0 up"); err != nil {
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

// addr is the address of a host on the underlay.
func (l *lab) addr(i int) string { return "10.0.0." + strconv.Itoa(i+1) }

func (l *lab) guestAddr(i int) string { return "192.168.7." + strconv.Itoa(i+1) }

// offloads turns offloads of a device off.
func offloads(ctx context.Context, ns, dev string, which ...string) error {
	args := []string{"ethtool", "-K", dev}
	for _, w := range which {
		args = append(args, w, "off")
	}
	_, err := output(ctx, patience, ns, args...)
	return err
}

// start runs a program for as long as the lab is there; see the function start.
func (l *lab) start(ctx context.Context, text, ns string, args ...string) (*process, error) {
	p, err := start(ctx, text, ns, args...)
	if err == nil {
		l.procs = append(l.procs, p)
	}
	return p, err
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
func (l *lab) tunnelAt(i int) *process {
	for _, p := range l.tunnels {
		if p.ns == l.hosts[i] {
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
		p.kill()
	}
	for _, ns := range append(l.guests[:], l.hosts[:]...) {
		err = errors.Join(err, remove(ns))
	}
	return err
}

// netnsDir is where iproute2 keeps the names of namespaces.
const netnsDir = "/run/netns"

// remove ends the processes of a namespace and deletes it. One that does not exist is
// no error.
func remove(ns string) error {
	if _, err := os.Stat(filepath.Join(netnsDir, ns)); ns == "" || errors.Is(err, os.ErrNotExist) {
		return nil
	}
	pids, _ := exec.Command("ip", "netns", "pids", ns).Output()
	for f := range strings.FieldsSeq(string(pids)) {
		if pid, err := strconv.Atoi(f); err == nil {
			if p, err := os.FindProcess(pid); err == nil {
				p.Kill()
			}
		}
	}
	return ip(context.Background(), "", "netns del "+ns)
}

// sweep removes what runs left that no longer exist: namespaces and folders.
func sweep() (err error) {
	left, _ := filepath.Glob(filepath.Join(netnsDir, prefix+"*"))
	folders, _ := filepath.Glob(filepath.Join(os.TempDir(), prefix+"*"))
	for _, name := range append(left, folders...) {
		rest, _ := strings.CutPrefix(filepath.Base(name), prefix)
		first, _, _ := strings.Cut(rest, "-")
		pid, e := strconv.Atoi(first)
		switch {
		case e != nil || !gone(pid):
		case filepath.Dir(name) == netnsDir:
			err = errors.Join(err, remove(filepath.Base(name)))
		default:
			err = errors.Join(err, os.RemoveAll(name))
		}
	}
	return err
}
