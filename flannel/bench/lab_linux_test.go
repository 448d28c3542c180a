package bench

import (
	"bytes"
	"context"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"golang.org/x/sys/unix"

	"github.com/vxswitch/vxswitch/flannel"
	"github.com/vxswitch/vxswitch/flannel/internal/flanneldlab"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// Subnets of the network. Nodes get one of the first hundred free, from 10.1.0.0; the leases of the test are behind.
const (
	networkJSON = `{"Network": "10.0.0.0/8", "SubnetMin": "10.1.0.0", "SubnetMax": "10.1.255.0", "EnableNFTables": true, "Backend": {"Type": "vxlan"}}`
	firstMany   = 100 // 10.100.0.0, 10.100.1.0 ...
	firstNews   = 200
)

// A lab is a network with an etcd, to which leases are written as others would do it.
type lab struct {
	*flanneldlab.Lab
	t     *testing.T
	etcd  *clientv3.Client
	lease clientv3.LeaseID
	hosts int
}

func newLab(t *testing.T) *lab {
	t.Helper()
	l := &lab{Lab: flanneldlab.New(t, networkJSON), t: t, hosts: 10}
	var err error
	if l.etcd, err = clientv3.New(clientv3.Config{Endpoints: []string{l.Etcd.URL}, Logger: zap.NewNop()}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.etcd.Close() })
	g := check.Must(l.etcd.Grant(t.Context(), 24*3600))(t)
	l.lease = g.ID
	return l
}

// lease is that of another node, with the number i behind a first subnet.
func lease(first, i int, ip netip.Addr) (key string, value []byte) {
	a := flannel.Attrs{Type: "vxlan", IPv4: flannel.End{PublicIP: ip, VNI: 1, MAC: frame.MACFrom(0x020000000000 | uint64(first)<<24 | uint64(i))}}
	return fmt.Sprintf("10.%d.%d.0-24", first+i>>8, i&255), a.Value()
}

// somebody returns the address of a node that does not answer.
func somebody(i int) netip.Addr { return netip.AddrFrom4([4]byte{172, 16, byte(i >> 8), byte(i)}) }

// put returns the operation that writes a lease.
func (l *lab) put(key string, value []byte) clientv3.Op {
	return clientv3.OpPut(flanneldlab.Prefix+"/subnets/"+key, string(value), clientv3.WithLease(l.lease))
}

// fill writes n leases.
func (l *lab) fill(n int) {
	l.t.Helper()
	for i := 0; i < n; {
		var ops []clientv3.Op
		for ; i < n && len(ops) < 100; i++ {
			key, value := lease(firstMany, i, somebody(i))
			ops = append(ops, l.put(key, value))
		}
		check.Must(l.etcd.Txn(l.t.Context()).Then(ops...).Commit())(l.t)
	}
}

// remove removes the leases whose subnets begin with a number behind "10.".
func (l *lab) remove(second int) {
	l.t.Helper()
	check.Must(l.etcd.Delete(l.t.Context(), fmt.Sprintf("%s/subnets/10.%d.", flanneldlab.Prefix, second), clientv3.WithPrefix()))(l.t)
}

// A contender is a kind of node.
type contender struct {
	name   string
	device string // of its address in the network
	start  func(l *lab, h *netns.Host, file string) *netns.Proc
	ready  string // what it prints when it can be used
}

// Names of devices.
const (
	pod    = "pod0"
	tunnel = "flannel.1"
)

func contenders() []contender {
	return []contender{
		{"flanneld", tunnel, func(l *lab, h *netns.Host, file string) *netns.Proc {
			return h.Start(flanneldlab.Build(l.t), "-etcd-endpoints", l.Way(h), "-iface", "eth0", "-subnet-file", file, "-iptables-forward-rules=false")
		}, "Running backend."},
		{"tap", tunnel, func(l *lab, h *netns.Host, file string) *netns.Proc {
			return h.Start(vxflanneld, "-etcd-endpoints", l.Way(h), "-iface", "eth0", "-subnet-file", file)
		}, "ready subnet="},
		{"tap, kernel", tunnel, func(l *lab, h *netns.Host, file string) *netns.Proc {
			return h.Start(vxflanneld, "-etcd-endpoints", l.Way(h), "-iface", "eth0", "-subnet-file", file, "-datapath", "kernel")
		}, "ready subnet="},
		{"l3", pod, func(l *lab, h *netns.Host, _ string) *netns.Proc {
			exe := check.Must(os.Executable())(l.t)
			return h.Start("env", program+"=l3", exe, l.Way(h), strings.TrimSuffix(l.underlay(h), "/24"))
		}, "pod is there"},
	}
}

// underlay is the address of a host there.
func (l *lab) underlay(h *netns.Host) string {
	return "192.0.2." + strings.TrimPrefix(h.Name, "n") + "/24"
}

// A member is a running contender.
type member struct {
	*netns.Proc
	contender
	l      *lab
	host   *netns.Host
	before int // routes of the host
	begun  time.Time
	file   string
}

// start starts a contender in a host of its own.
func (l *lab) start(c contender) *member {
	l.t.Helper()
	l.hosts++
	m := &member{contender: c, l: l, host: l.Host(l.hosts), file: filepath.Join(l.t.TempDir(), "subnet.env")}
	m.before = m.routes()
	m.begun = time.Now()
	m.Proc = c.start(l, m.host, m.file)
	return m
}

// stop ends it, and removes what it leaves.
func (m *member) stop() {
	m.l.t.Helper()
	m.Kill()
	if m.device == tunnel {
		m.host.IP("link", "delete", tunnel)
	}
	m.l.remove(1)
}

// started waits until the n leases that were there before it are in its tables.
func (m *member) started(n int) {
	m.l.t.Helper()
	if m.device == pod {
		m.Want("ready subnet=")
		return
	}
	m.programmed(n)
}

// programmed waits until n leases are in its tables. An l3 must have its pod.
func (m *member) programmed(n int) {
	m.l.t.Helper()
	has := func() int { return m.routes() - m.before }
	if m.device == pod {
		has = m.leases
	}
	for end := time.Now().Add(soon); has() < n; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			m.l.t.Fatalf("%s: %d leases in the tables, want %d\n%s", m.name, has(), n, m.Output())
		}
	}
}

// leases asks an l3 how many leases of others it has, and returns what it said last.
func (m *member) leases() (n int) {
	m.Signal(syscall.SIGUSR1)
	for line := range strings.Lines(m.Output()) {
		fmt.Sscanf(line, "leases %d", &n)
	}
	return n
}

// routes returns how many IPv4 routes the host has. To list them would take the time of those who set them.
func (m *member) routes() (n int) {
	m.l.t.Helper()
	m.host.Do(func() {
		b, err := os.ReadFile("/proc/thread-self/net/fib_triestat")
		if err != nil {
			m.l.t.Fatal(err)
		}
		n = prefixes(b)
	})
	return n
}

// prefixes reads /proc/net/fib_triestat, in which each table has a line such as "Prefixes:       12" (Linux 6.18).
func prefixes(b []byte) (n int) {
	for line := range bytes.Lines(b) {
		if rest, ok := strings.CutPrefix(strings.TrimSpace(string(line)), "Prefixes:"); ok {
			x, _ := strconv.Atoi(strings.TrimSpace(rest))
			n += x
		}
	}
	return n
}

func TestPrefixes(t *testing.T) {
	if n := prefixes([]byte("Main:\n\tMax depth:      6\n\tLeaves:         10\n\tPrefixes:       12\nId 7:\n\tPrefixes:       3\n")); n != 15 {
		t.Errorf("%d", n)
	}
}

// address waits until the member can be used, and returns its address in the network, from which it reaches others.
func (m *member) address() netip.Addr {
	m.l.t.Helper()
	m.Want(m.ready)
	if m.device == tunnel {
		b, err := os.ReadFile(m.file)
		if err != nil {
			m.l.t.Fatal(err)
		}
		return flannel.PreviousSubnet(b).IPv4.Addr()
	}
	_, rest, _ := strings.Cut(m.Output(), "ready subnet=")
	key, _, _ := strings.Cut(rest, "\n")
	s, err := flannel.ParseKey(key)
	if err != nil {
		m.l.t.Fatal(err)
	}
	gate := s.IPv4.Addr().Next()
	ip := gate.Next()
	m.host.Addr(pod, netip.PrefixFrom(ip, s.IPv4.Bits()).String())
	m.host.Route("10.0.0.0/8", "via", gate.String())
	return ip
}

// steadily calls f time and again until ctx is done. The timers of Go are late by up to a millisecond where nothing else happens.
func steadily(ctx context.Context, interval time.Duration, f func()) {
	runtime.LockOSThread() // and not unlocked: the thread ends with its goroutine
	unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
	pause := unix.NsecToTimespec(int64(interval))
	for ctx.Err() == nil {
		unix.Nanosleep(&pause, nil)
		f()
	}
}

// every calls f once in each interval, with 0, 1, 2 ..., until ctx ends.
func every(ctx context.Context, interval time.Duration, f func(i int)) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for i := 0; ; i++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			f(i)
		}
	}
}
