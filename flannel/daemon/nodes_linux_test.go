package daemon

import (
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/vxswitch/vxswitch/flannel/internal/flanneldlab"
)

// 62 nodes of ours start at once beside a flanneld: each has a subnet of its own, and reaches the flanneld's pod and the next node.
func TestManyNodes(t *testing.T) {
	const nodes = 62
	l := flanneldlab.New(t, vxlanJSON)
	b := l.Theirs(2)
	list := make([]*program, nodes)
	for i := range list {
		list[i] = &program{host: l.Host(11 + i), file: fmt.Sprintf("%s/%d.env", t.TempDir(), i)}
		list[i].way = l.Way(list[i].host)
	}
	all := func(do func(i int, p *program)) {
		var tasks sync.WaitGroup
		for i, p := range list {
			tasks.Go(func() { do(i, p) })
		}
		tasks.Wait()
	}
	all(func(_ int, p *program) { p.start(t) })
	owner := map[netip.Prefix]int{b.Subnets(t)[0]: -1}
	bases := make([]string, nodes)
	for i, p := range list {
		_, s := p.read(t)
		if _, taken := owner[s.IPv4]; taken || !s.IPv4.IsValid() {
			t.Fatalf("node %d has %v, as node %d", i, s, owner[s.IPv4])
		}
		owner[s.IPv4], bases[i] = i, s.IPv4.Addr().String()
	}
	all(func(i int, p *program) {
		reach(t, p.host, b.Pod.IPv4.String())
		reach(t, p.host, bases[(i+1)%nodes])
	})
	for _, base := range bases {
		b.Pod.Ping(base, 1)
	}
}

// A node that takes the PublicIP of another has its lease: the first ends, and everybody has one lease of the two.
func TestSamePublicIP(t *testing.T) {
	l := flanneldlab.New(t, vxlanJSON)
	b := l.Theirs(2)
	p := start(t, l, 11)
	_, subnet := p.read(t)
	reach(t, p.host, b.Pod.IPv4.String())
	c := l.Host(12)
	theirs := flanneldlab.Start(t, c, l.Way(c), "-public-ip", "192.0.2.11")
	if got := theirs.Subnets(t)[0]; got != subnet.IPv4 {
		t.Errorf("flanneld has %v, ours had %v", got, subnet)
	}
	p.Want("the lease is lost")
	if err := p.Wait(); err == nil {
		t.Error("ended without an error")
	}
	if got := p.host.Run("ip", "-o", "link", "show", "type", "tun") + p.host.Run("ip", "route", "show", "proto", "118"); got != "" {
		t.Errorf("left: %s", got)
	}
	if n := strings.Count(l.Etcd.Ctl(t, "get", "--prefix", "--keys-only", flanneldlab.Prefix+"/subnets/"), "10.3."); n != 2 {
		t.Errorf("%d leases", n)
	}
	theirs.Stop()

	p.start(t) // and the other way round: flanneld does not look, so the program takes the lease that is its own again
	if _, s := p.read(t); s != subnet {
		t.Errorf("%v, had %v", s, subnet)
	}
	reach(t, p.host, b.Pod.IPv4.String())
}

// host-gw in both families: routes by the other's address, no tunnel, and after the process was killed they stay as they are.
func TestHostGatewayDualStack(t *testing.T) {
	l := flanneldlab.New(t, `{"Network": "10.3.0.0/16", "EnableIPv6": true, "IPv6Network": "fc00:3::/48", "EnableNFTables": true, "Backend": {"Type": "host-gw"}}`)
	b := l.Theirs(2)
	p := start(t, l, 11)
	_, subnet := p.read(t)
	pod := l.Pod(p.host, 11, subnet.IPv4, subnet.IPv6)
	both := func() {
		t.Helper()
		for _, x := range [][2]*flanneldlab.Pod{{pod, b.Pod}, {b.Pod, pod}} {
			reach(t, x[0].Host, x[1].IPv4.String())
			reach(t, x[0].Host, x[1].IPv6.String())
		}
	}
	both()
	wire := p.host.Capture("eth0", "udp port 8472")
	for _, to := range []string{b.Pod.IPv4.String(), b.Pod.IPv6.String()} {
		if ttl := pod.PingTTL(to); ttl != 62 {
			t.Errorf("%s: TTL %d", to, ttl)
		}
	}
	if n := len(wire.Stop()); n != 0 {
		t.Errorf("%d packets in a tunnel", n)
	}
	routes := func() string {
		return p.host.Run("ip", "route", "show", "proto", "118") + p.host.Run("ip", "-6", "route", "show", "proto", "118")
	}
	before := routes()
	for _, s := range []string{" via 192.0.2.2 dev eth0", " via 2001:db8::2 dev eth0"} {
		if !strings.Contains(before, s) {
			t.Errorf("routes %s, want%s", before, s)
		}
	}
	p.Signal(syscall.SIGKILL)
	p.Wait()
	both()
	p.start(t)
	if got := routes(); got != before {
		t.Errorf("routes %s, were %s", got, before)
	}
	both()
}

// With DirectRouting, packets go in the tunnel once a router is between, and without when it is no more, while the program runs.
func TestDirectRoutingMoves(t *testing.T) {
	l := flanneldlab.New(t, strings.Replace(vxlanJSON, `"vxlan"`, `"vxlan", "DirectRouting": true`, 1))
	b := l.Theirs(2)
	p := start(t, l, 11)
	_, subnet := p.read(t)
	pod := l.Pod(p.host, 11, subnet.IPv4)
	reach(t, pod.Host, b.Pod.IPv4.String())
	r := l.Net.Router("r")
	l.Net.Plug(r, "192.0.2.9/24", l.Switch())
	want := func(dev string) {
		t.Helper()
		p.host.Until("the way is "+dev, func() bool {
			way, err := p.host.Try(t.Context(), "ip", "route", "get", b.Pod.IPv4.String()) // there may be none for a moment
			return err == nil && strings.Contains(way, dev)
		})
		if ttl := pod.PingTTL(b.Pod.IPv4.String()); ttl != 62 {
			t.Errorf("%s: TTL %d", dev, ttl)
		}
	}
	want("via 192.0.2.2 dev eth0")
	p.host.IP("address", "add", "192.0.2.11/30", "dev", "eth0")
	p.host.IP("address", "delete", "192.0.2.11/24", "dev", "eth0")
	p.host.Route("192.0.2.0/24", "via", "192.0.2.9")
	want("dev flannel.1")
	p.host.IP("route", "delete", "192.0.2.0/24", "via", "192.0.2.9")
	p.host.IP("address", "add", "192.0.2.11/24", "dev", "eth0")
	p.host.IP("address", "delete", "192.0.2.11/30", "dev", "eth0")
	want("via 192.0.2.2 dev eth0")
}
