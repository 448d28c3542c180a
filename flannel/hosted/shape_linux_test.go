package hosted_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/vxswitch/vxswitch/flannel"
	"github.com/vxswitch/vxswitch/flannel/etcd"
	"github.com/vxswitch/vxswitch/flannel/hosted"
	"github.com/vxswitch/vxswitch/flannel/internal/flanneldlab"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
	"github.com/vxswitch/vxswitch/node"
	"github.com/vxswitch/vxswitch/underlay"
	"github.com/vxswitch/vxswitch/vtep"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A member is a host with a node of ours, and a pod.
type member struct {
	*flannel.Plane
	t     *testing.T
	host  *netns.Host
	pod   *flanneldlab.Pod
	lab   *flanneldlab.Lab
	i     int
	log   check.Log
	stop  func() error
	ended chan error
}

func ours(t *testing.T, l *flanneldlab.Lab, i int, change func(p *flannel.PlaneConfig)) *member {
	t.Helper()
	m := &member{t: t, host: l.Host(i), lab: l, i: i}
	m.start(change)
	own := m.Status().Own.Subnet
	m.pod = l.Pod(m.host, i, own.IPv4, own.IPv6)
	return m
}

// start starts a node and its plane, as a program does.
func (m *member) start(change func(p *flannel.PlaneConfig)) {
	t := m.t
	t.Helper()
	n, err := node.New(&node.Options{Owners: []string{"flannel"}, Listen: func(x *node.Tunnel) (u vtep.Underlay, err error) {
		m.host.Do(func() { u, err = underlay.ListenUDP(x.AddrPort(), &x.UDPConfig) })
		return u, err
	}})
	check.OK(t, err)
	shape := check.Must(hosted.New(&hosted.Config{Node: n, Namespace: m.host.NS, Link: "eth0", Log: slog.New(slog.NewTextHandler(&m.log, nil))}))(t)
	s, err := etcd.New(&etcd.Config{Endpoints: []string{m.lab.Etcd.URL}})
	check.OK(t, err)
	c := &flannel.PlaneConfig{Store: &flannel.Registry{KV: s}, Shape: shape, OneMAC: true,
		PublicIP: netip.MustParseAddr(fmt.Sprintf("192.0.2.%d", m.i)), PublicIPv6: netip.MustParseAddr(fmt.Sprintf("2001:db8::%d", m.i))}
	if change != nil {
		change(c)
	}
	if m.Plane, err = flannel.NewPlane(c); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { n.Run(ctx) })
	ended := make(chan error, 1)
	m.ended = ended
	planeCtx, stopPlane := context.WithCancel(ctx)
	go func() { ended <- m.Run(planeCtx) }()
	m.stop = sync.OnceValue(func() error {
		stopPlane()
		err := <-ended
		cancel()
		running.Wait()
		n.Close()
		s.Close()
		return err
	})
	t.Cleanup(func() { m.stop() })
	select {
	case <-m.Ready():
	case err := <-ended:
		ended <- err
		t.Fatal(err)
	case <-time.After(20 * time.Second):
		t.Fatal("not ready")
	}
}

const vxlanJSON = `{"Network": "10.3.0.0/16", "EnableNFTables": true, "Backend": {"Type": "vxlan"%s}}`

// reach pings until there is an answer.
func reach(t *testing.T, from *netns.Host, to string) {
	t.Helper()
	from.Until(to+" answers", func() bool {
		_, err := from.Try(t.Context(), "ping", "-n", "-c", "1", "-W", "1", to)
		return err == nil
	})
}

// Beside real flannelds, in each generation: pods reach pods and hosts, TTL 62 both ways; a restart keeps subnet and MAC.
func TestFlanneld(t *testing.T) {
	l := flanneldlab.New(t, fmt.Sprintf(vxlanJSON, ""))
	b := l.Theirs(2)
	for g, i := range map[int]int{3: 11, 2: 12, 1: 13} {
		a := ours(t, l, i, func(p *flannel.PlaneConfig) { p.Generation = g })
		reach(t, a.pod.Host, b.Pod.IPv4.String())
		for _, x := range [][2]*flanneldlab.Pod{{a.pod, b.Pod}, {b.Pod, a.pod}} {
			if ttl := x[0].PingTTL(x[1].IPv4.String()); ttl != 62 {
				t.Errorf("generation %d: TTL %d", g, ttl)
			}
		}
		a.host.Ping(b.Pod.IPv4.String(), 1) // from the address of flannel.1
		b.Host.Ping(a.pod.IPv4.String(), 1)
		mtu := strings.TrimSpace(a.host.Run("cat", "/sys/class/net/flannel.1/mtu"))
		if mtu != "1450" || a.host.MAC("flannel.1") != a.Status().Own.IPv4.MAC.String() {
			t.Errorf("MTU %s, MAC %s", mtu, a.host.MAC("flannel.1"))
		}
		before := a.Status().Own
		check.OK(t, a.stop())
		if got := a.host.Run("ip", "route", "show", "proto", "118"); got != "" {
			t.Errorf("routes are left: %s", got)
		}
		begun := time.Now()
		a.start(func(p *flannel.PlaneConfig) { p.Generation = g })
		if after := a.Status().Own; after != before {
			t.Errorf("%+v, before %+v", after, before)
		}
		t.Logf("generation %d: ready %v after the start", g, time.Since(begun).Round(time.Millisecond))
		reach(t, b.Pod.Host, a.pod.IPv4.String())
	}
}

// Both families in one device of ours, and in two of flanneld.
func TestFlanneldDualStack(t *testing.T) {
	l := flanneldlab.New(t, `{"Network": "10.3.0.0/16", "EnableIPv6": true, "IPv6Network": "fc00:3::/48", "EnableNFTables": true, "Backend": {"Type": "vxlan"}}`)
	b := l.Theirs(2)
	a, c := ours(t, l, 11, nil), ours(t, l, 12, nil)
	for _, x := range [][2]*flanneldlab.Pod{{a.pod, b.Pod}, {b.Pod, a.pod}, {a.pod, c.pod}, {c.pod, b.Pod}} {
		reach(t, x[0].Host, x[1].IPv4.String())
		reach(t, x[0].Host, x[1].IPv6.String())
	}
}

// With DirectRouting no packet to a node on the link is encapsulated, and with host-gw there is no tunnel; at once when the
// links change, too.
func TestDirect(t *testing.T) {
	for name, network := range map[string]string{
		"DirectRouting": fmt.Sprintf(vxlanJSON, `, "DirectRouting": true`), "host-gw": strings.Replace(fmt.Sprintf(vxlanJSON, ""), "vxlan", "host-gw", 1),
	} {
		t.Run(name, func(t *testing.T) {
			l := flanneldlab.New(t, network)
			b := l.Theirs(2)
			a := ours(t, l, 11, func(p *flannel.PlaneConfig) { p.Links = []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")} })
			reach(t, a.pod.Host, b.Pod.IPv4.String())
			tunnel, plain := a.host.Capture("eth0", "udp port 8472"), a.host.Capture("eth0", "icmp")
			for _, x := range [][2]*flanneldlab.Pod{{a.pod, b.Pod}, {b.Pod, a.pod}} {
				if ttl := x[0].PingTTL(x[1].IPv4.String()); ttl != 62 {
					t.Errorf("TTL %d", ttl)
				}
			}
			if in, out := len(tunnel.Stop()), len(plain.Stop()); in != 0 || out != 4 {
				t.Errorf("%d packets in the tunnel, %d plain", in, out)
			}
			if name == "host-gw" {
				return
			}
			check.OK(t, a.SetLinks(nil))
			tunnel = a.host.Capture("eth0", "udp port 8472")
			if ttl := a.pod.PingTTL(b.Pod.IPv4.String()); ttl != 62 {
				t.Errorf("TTL %d", ttl)
			}
			if n := len(tunnel.Stop()); n != 1 { // the answer comes plain
				t.Errorf("%d packets in the tunnel", n)
			}
		})
	}
}

// When the lease is lost, device and routes go.
func TestLost(t *testing.T) {
	l := flanneldlab.New(t, fmt.Sprintf(vxlanJSON, ""))
	l.Theirs(2)
	a := ours(t, l, 11, nil)
	if got := a.host.Run("ip", "route", "show", "proto", "118"); !strings.Contains(got, "dev flannel.1") || !strings.Contains(got, "onlink") {
		t.Errorf("routes %q", got)
	}
	l.Etcd.Ctl(t, "del", flanneldlab.Prefix+"/subnets/"+a.Status().Own.Subnet.Key())
	err := <-a.ended
	a.ended <- err
	if !errors.Is(err, flannel.ErrLost) {
		t.Errorf("%v", err)
	}
	if got := a.host.Run("ip", "route", "show", "proto", "118") + a.host.Run("ip", "-o", "link", "show", "type", "tun"); got != "" {
		t.Errorf("left: %s", got)
	}
}

// A route of somebody else's that comes before ours is named once in the log.
func TestShadowed(t *testing.T) {
	l := flanneldlab.New(t, fmt.Sprintf(vxlanJSON, ""))
	b := l.Theirs(2)
	subnet := netip.PrefixFrom(b.Pod.IPv4, 24).Masked().String()
	a := &member{t: t, host: l.Host(11), lab: l, i: 11}
	a.host.Run("ip", "route", "add", "blackhole", subnet)
	a.start(nil)
	if got := a.log.String(); strings.Count(got, subnet) == 0 || strings.Count(got, "comes first") != 1 {
		t.Errorf("logged: %s", got)
	}
}
