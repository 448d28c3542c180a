package routed_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/flannel"
	"github.com/vxswitch/vxswitch/flannel/internal/flanneldlab"
	"github.com/vxswitch/vxswitch/flannel/routed"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
	"github.com/vxswitch/vxswitch/node"
	"github.com/vxswitch/vxswitch/port"
)

// onLink makes a node of ours in host i, as Example_direct says: no kernel has its addresses or routes.
func onLink(t *testing.T, l *flanneldlab.Lab, i, generation int) (*member, *netns.Host) {
	t.Helper()
	h := l.Bare(i)
	f := inHost(t, l, h)
	var err error
	text := strings.NewReplacer("192.0.2.11", fmt.Sprint("192.0.2.", i), "2001:db8::11", fmt.Sprint("2001:db8::", i), "07:0b", fmt.Sprintf("07:%02x", i)).Replace(linkJSON)
	if f.config, err = node.Parse([]byte(text)); err != nil {
		t.Fatal(err)
	}
	return f.join(i, func(p *flannel.PlaneConfig, s *routed.Config) {
		p.Generation, s.Direct, s.Tunnel = generation, 7, linkTunnel
	}), h
}

// kernelPod adds a pod that is a namespace, behind a TAP, with the third address of each subnet of the node.
func (m *member) kernelPod(l *flanneldlab.Lab, name string) *flanneldlab.Pod {
	t := m.pod.t
	t.Helper()
	p := &flanneldlab.Pod{Host: l.Net.Host(name)}
	tap := check.Must(port.OpenTAP(name, &port.DeviceConfig{Namespace: p.NS, MTU: 1430}))(t)
	pods, err := m.node.Segment(routed.DefaultPods, nil)
	if err == nil {
		err = pods.Add(tap, nil)
	}
	check.OK(t, err)
	own := m.Status().Own.Subnet
	for _, x := range []struct {
		subnet netip.Prefix
		to     *netip.Addr
	}{{own.IPv4, &p.IPv4}, {own.IPv6, &p.IPv6}} {
		if !x.subnet.IsValid() {
			continue
		}
		gate := x.subnet.Addr().Next()
		*x.to = gate.Next().Next()
		p.Addr(name, netip.PrefixFrom(*x.to, x.subnet.Bits()).String())
		p.Route("default", "via", gate.String())
	}
	return p
}

// addresses returns those of a pod.
func addresses(p *flanneldlab.Pod) (list []string) {
	for _, a := range []netip.Addr{p.IPv4, p.IPv6} {
		if a.IsValid() {
			list = append(list, a.String())
		}
	}
	return list
}

// wantWay fails the test unless each of two pods pings the other, with a TTL of ttl, in all families.
func wantWay(t *testing.T, a, b *flanneldlab.Pod, ttl int) {
	t.Helper()
	for _, x := range [][2]*flanneldlab.Pod{{a, b}, {b, a}} {
		for _, to := range addresses(x[1]) {
			if got := x[0].PingTTL(to); got != ttl {
				t.Errorf("%s to %s: TTL %d, want %d", x[0].Name, to, got, ttl)
			}
		}
	}
}

// wantStream sends TCP both ways between two pods in all families, and wants no wrong checksum.
func wantStream(t *testing.T, a, b *flanneldlab.Pod) {
	t.Helper()
	for _, to := range addresses(b) {
		a.Transfer(b.Host, netip.AddrPortFrom(netip.MustParseAddr(to), 9000).String(), 4<<20)
	}
	for _, p := range []*flanneldlab.Pod{a, b} {
		if got := p.ChecksumErrors(); len(got) > 0 {
			t.Errorf("%s: checksum errors %v", p.Name, got)
		}
	}
}

const (
	dualJSON = `{"Network": "10.3.0.0/16", "EnableIPv6": true, "IPv6Network": "fc00:3::/48", "EnableNFTables": true, "Backend": {"Type": %q%s}}`
)

// With DirectRouting, packets to and from a flanneld on the link are in no tunnel, those of one behind a router are, and both
// kinds come to one address, in each of our generations. When the links change, so does the way at once, and no packet is lost.
func TestFlanneldDirectRouting(t *testing.T) {
	l := flanneldlab.New(t, fmt.Sprintf(dualJSON, "vxlan", `, "DirectRouting": true`))
	near, far := l.Theirs(2), l.TheirsIn(l.Far(3), 3)
	a, h := onLink(t, l, 11, 3)
	pod := a.kernelPod(l, "pod")
	if s := a.Status(); s.Leases != 2 || len(s.Refused) != 0 || len(waiting(a.node)) != 0 {
		t.Errorf("%+v, waiting %v", s, waiting(a.node))
	}
	wantCounts := func(when string, tunnelNear, tunnelFar, plain int) {
		t.Helper()
		caught := map[string]*netns.Capture{}
		for name, filter := range map[string]string{
			"in the tunnel to the node on the link": "udp port 8472 and (host 192.0.2.2 or host 2001:db8::2)",
			"in the tunnel to the node behind it":   "udp port 8472 and (host 198.51.100.3 or host 2001:db8:1::3)",
			"in none":                               "((icmp[0] = 8 or icmp[0] = 0) or (ip6[6] = 58 and (ip6[40] = 128 or ip6[40] = 129)))",
		} {
			caught[name] = h.Capture("eth0", filter)
		}
		wantWay(t, pod, near.Pod, 62)
		wantWay(t, pod, far.Pod, 62)
		for name, want := range map[string]int{"in the tunnel to the node on the link": tunnelNear, "in the tunnel to the node behind it": tunnelFar, "in none": plain} {
			if got := caught[name].Stop(); len(got) != want {
				t.Errorf("%s: %d packets %s, want %d\n%s", when, len(got), name, want, netns.Dump(got))
			}
		}
	}
	for _, to := range addresses(near.Pod) {
		reach(t, pod.Host, to)
		reach(t, near.Pod.Host, pod.IPv4.String())
	}
	for _, to := range addresses(far.Pod) {
		reach(t, pod.Host, to)
	}
	wantCounts("at first", 0, 8, 8)
	wantStream(t, pod, near.Pod)
	wantStream(t, pod, far.Pod)
	for _, x := range []*flanneldlab.Theirs{near, far} { // nodes too, from the address that their kernels choose
		for _, to := range addresses(pod) {
			x.Host.Ping(to, 1)
		}
	}
	pod.Ping("192.0.2.2", 1)

	stop := pod.Pinging(near.Pod.IPv4.String())
	check.OK(t, a.SetLinks([]netip.Prefix{netip.MustParsePrefix("203.0.113.0/24")}))
	sent, answered := stop()
	if sent != answered {
		t.Errorf("%d of %d pings answered while the links change", answered, sent)
	}
	wantCounts("without links", 4, 8, 4) // what comes from it is plain
	stop = pod.Pinging(near.Pod.IPv4.String())
	check.OK(t, a.SetLinks([]netip.Prefix{netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("2001:db8::/64")}))
	if sent, answered = stop(); sent != answered {
		t.Errorf("%d of %d pings answered while the links change back", answered, sent)
	}
	wantCounts("with links again", 0, 8, 8)

	for g, i := range map[int]int{2: 12, 1: 13} {
		x, _ := onLink(t, l, i, g)
		other := x.kernelPod(l, fmt.Sprint("host", i))
		for _, p := range []*flanneldlab.Pod{near.Pod, far.Pod, pod} {
			for _, to := range addresses(p) {
				reach(t, other.Host, to)
			}
			wantWay(t, other, p, 62)
		}
	}
}

// With host-gw there is no tunnel: routes lead to flannelds on the link and back, in both families.
func TestFlanneldHostGateway(t *testing.T) {
	l := flanneldlab.New(t, fmt.Sprintf(dualJSON, "host-gw", ""))
	b, c := l.Theirs(2), l.Theirs(3)
	a, h := onLink(t, l, 11, 3)
	pod := a.kernelPod(l, "pod")
	if got := len(a.node.Tunnels()); got != 0 {
		t.Errorf("%d tunnels", got)
	}
	udp := h.Capture("eth0", "udp")
	for _, x := range []*flanneldlab.Theirs{b, c} {
		reach(t, x.Pod.Host, pod.IPv4.String())
		reach(t, x.Pod.Host, pod.IPv6.String())
		wantWay(t, pod, x.Pod, 62)
		wantStream(t, pod, x.Pod)
		x.Host.Ping(pod.IPv4.String(), 1)
		pod.Ping(strings.Replace("192.0.2.I", "I", x.Host.Name[1:], 1), 1)
	}
	if got := udp.Stop(); len(got) != 0 {
		t.Errorf("%d UDP packets\n%s", len(got), netns.Dump(got))
	}
	l.Etcd.Ctl(t, "del", prefix+"/subnets/"+flannel.Subnet{IPv4: b.Subnets(t)[0], IPv6: b.Subnets(t)[1]}.Key())
	until(t, "that a flanneld has no lease", func() bool { return a.Status().Leases == 1 })
	if _, err := pod.Try(t.Context(), "ping", "-n", "-c", "1", "-W", "1", b.Pod.IPv4.String()); err == nil {
		t.Error("it is still reached")
	}
	wantWay(t, pod, c.Pod, 62)
}

// reach pings until there is an answer.
func reach(t *testing.T, from *netns.Host, to string) {
	t.Helper()
	from.Until(to+" answers", func() bool {
		_, err := from.Try(t.Context(), "ping", "-n", "-c", "1", "-W", "1", to)
		return err == nil
	})
}
