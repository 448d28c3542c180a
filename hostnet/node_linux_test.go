package hostnet_test

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/arp"
	"github.com/vxswitch/vxswitch/control"
	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/hostnet"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
	"github.com/vxswitch/vxswitch/node"
	"github.com/vxswitch/vxswitch/port"
	vswitch "github.com/vxswitch/vxswitch/switch"
	"github.com/vxswitch/vxswitch/vtep"
)

// cluster is two hosts with a node each, whose VRF joins pods and hosts:
//
//	host 1                                                host 2
//	  kernel 10.65.1.60, fd65:1::60                         ...60
//	     | vxhost0, routes of hostnet                         |
//	  +--+-- node 1 ------+                            +------+--+
//	  | VRF cluster       +-- IP-in-IP or VXLAN -------+ node 2  |
//	  +--+----------------+   10.1.0.1   10.1.0.2      +------+--+
//	     | TAP                                                |
//	  pod 10.65.1.5, fd65:1::5                              pod ...5
type cluster struct {
	t     *testing.T
	n     *netns.Net
	vxlan bool
	nodes [2]*member
}

type member struct {
	*node.Node
	number    int
	host, pod *netns.Host
	net       *hostnet.Host
}

const (
	device           = "vxhost0"
	pods   frame.VNI = 1
	tunnel frame.VNI = 100
	leg    frame.VNI = 300
)

func addr(format string, args ...any) netip.Addr {
	return netip.MustParseAddr(fmt.Sprintf(format, args...))
}
func prefix(format string, args ...any) netip.Prefix {
	return netip.MustParsePrefix(fmt.Sprintf(format, args...))
}

func newCluster(t *testing.T, vxlan bool) *cluster {
	t.Helper()
	c := &cluster{t: t, n: netns.New(t), vxlan: vxlan}
	a, b := c.n.Host("host1"), c.n.Host("host2")
	c.n.Link(a, "10.1.0.1/24", b, "10.1.0.2/24")
	for i, h := range []*netns.Host{a, b} {
		h.TxOff("eth0")
		h.Ready()
		c.nodes[i] = c.start(i+1, h)
	}
	return c
}

func running(t *testing.T) *node.Node {
	t.Helper()
	n := check.Must(node.New(nil))(t)
	done := make(chan error, 1)
	go func() { done <- n.Run(context.Background()) }()
	t.Cleanup(func() {
		n.Close()
		check.OK(t, <-done)
	})
	return n
}

func (c *cluster) start(k int, h *netns.Host) *member {
	c.t.Helper()
	m := &member{Node: running(c.t), number: k, host: h, pod: c.n.Host(fmt.Sprint("pod", k))}
	gateway := func(mac frame.MAC, addrs ...string) *node.SegmentGateway {
		g := &node.SegmentGateway{VRF: "cluster", Gateway: node.Gateway{MAC: mac}}
		for _, a := range addrs {
			g.Addresses = append(g.Addresses, netip.MustParsePrefix(a))
		}
		return g
	}
	router := func(k int) frame.MAC { return frame.MAC{2, 0, 0, 0xee, 0, byte(k)} }
	other := 3 - k
	far := node.Hop{Segment: tunnel, Remote: addr("10.1.0.%d", other)}
	t, mac := vtep.Config{Name: "t0", Type: encap.TypeIPIP}, frame.MAC{}
	if c.vxlan {
		t.Type, mac, far.MAC = encap.TypeVXLAN, router(k), router(other)
	}
	cfg := &node.Config{
		Tunnels: []node.Tunnel{{Config: t, Local: addr("10.1.0.%d", k)}},
		Ports: []node.Port{
			{Name: "pod", DeviceConfig: port.DeviceConfig{MTU: 1400, MAC: frame.MAC{2, 0, 0, 0xdd, 0, byte(k)}, Namespace: m.pod.NS}},
			{Name: device, Type: node.PortTUN, DeviceConfig: port.DeviceConfig{Namespace: h.NS}},
		},
		Segments: []node.Segment{{
			VNI: pods, VSIConfig: vswitch.VSIConfig{RouteIsolated: true}, Members: []node.Member{{Port: "pod", Isolated: true}},
			Neighbours: &node.Neighbours{Config: arp.Config{Mode: arp.Access}},
			Gateway:    gateway(arp.DefaultAccessMAC, "169.254.1.1/32", "fe80::ecee:eeff:feee:eeee/128"),
		}, {
			VNI: tunnel, Tunnel: "t0", Gateway: gateway(mac, fmt.Sprintf("10.66.%d.1/32", k)),
		}, {
			VNI: leg, Members: []node.Member{{Port: device}}, Gateway: gateway(frame.MAC{}, fmt.Sprintf("10.66.%d.2/32", k)),
		}},
		VRFs: []node.VRF{{Name: "cluster"}},
	}
	for _, f := range []string{"10.65.%d.%s/32", "fd65:%d::%s/128"} {
		pod, host := prefix(f, k, "5"), prefix(f, k, "60")
		cfg.VRFs[0].Routes = append(cfg.VRFs[0].Routes,
			node.Route{Prefix: pod, Via: []node.Hop{{Segment: pods, IP: pod.Addr()}}},
			node.Route{Prefix: host, Via: []node.Hop{{Segment: leg}}})
	}
	cfg.VRFs[0].Routes = append(cfg.VRFs[0].Routes,
		node.Route{Prefix: prefix("10.65.%d.0/26", other), Via: []node.Hop{far}},
		node.Route{Prefix: prefix("fd65:%d::/64", other), Via: []node.Hop{far}})
	h.Do(func() { check.OK(c.t, m.Apply(cfg)) })

	m.pod.Addr("pod", fmt.Sprintf("10.65.%d.5/32", k))
	m.pod.Addr("pod", fmt.Sprintf("fd65:%d::5/128", k))
	m.pod.Route("169.254.1.1/32", "dev", "pod", "scope", "link")
	m.pod.Route("default", "via", "169.254.1.1", "dev", "pod")
	m.pod.Route("default", "via", "fe80::ecee:eeff:feee:eeee", "dev", "pod")
	m.net = check.Must(hostnet.Open(&hostnet.Config{
		Device: device, Namespace: h.NS, MTU: 1400, Addresses: []netip.Prefix{prefix("10.65.%d.60/32", k), prefix("fd65:%d::60/128", k)},
		Interval: 50 * time.Millisecond,
	}))(c.t)
	c.t.Cleanup(func() { check.OK(c.t, m.net.Close()) })
	return m
}

// follow sets the routes that the rows of the VRF ask for.
func (m *member) follow(t *testing.T) {
	t.Helper()
	stop := hostnet.Follow(m.Plane(), m.net, &hostnet.FollowConfig{VRF: "cluster", Segment: leg, Failed: func(err error) { t.Error(err) }})
	t.Cleanup(stop)
	m.host.Until("the routes are there", func() bool {
		n := 0
		for range m.net.Routes() {
			n++
		}
		return n == 4
	})
}

// source is the address that packets to a pod come from.
func (c *cluster) source(from *netns.Host, to *netns.Host, ip string) string {
	c.t.Helper()
	filter := "icmp and dst host " + ip
	if strings.Contains(ip, ":") {
		filter = "icmp6 and dst host " + ip
	}
	p := to.Capture("pod", filter)
	from.Ping(ip, 1)
	return source(p.Want(1, nil)[0].Data)
}

// source is that of an IP packet in an Ethernet frame.
func source(data []byte) string {
	src := data[26:30]
	if data[12] == 0x86 { // IPv6
		src = data[22:38]
	}
	a, _ := netip.AddrFromSlice(src)
	return a.String()
}

func TestCluster(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"ipip", "vxlan"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t, name == "vxlan")
			a, b := c.nodes[0], c.nodes[1]
			a.follow(t)
			b.follow(t)
			for _, f := range []string{"10.65.%d.%s", "fd65:%d::%s"} {
				at := func(k int, n string) string { return fmt.Sprintf(f, k, n) }
				check.Equal(t, "source at the local pod", c.source(a.host, a.pod, at(1, "5")), at(1, "60"))
				check.Equal(t, "source at the remote pod", c.source(a.host, b.pod, at(2, "5")), at(1, "60"))
				check.Equal(t, "source at the remote pod", c.source(b.host, a.pod, at(1, "5")), at(2, "60"))
				a.pod.Ping(at(1, "60"), 1)  // its host
				a.pod.Ping(at(2, "60"), 1)  // the other host
				a.host.Ping(at(2, "60"), 1) // host to host
				a.pod.Ping(at(2, "5"), 1)
			}
			a.host.Transfer(b.pod, "10.65.2.5:5001", 1<<20)
			b.pod.Transfer(a.host, "10.65.1.60:5002", 1<<20)
			check.Slice(t, "wrong", a.net.Check(), nil)
		})
	}
}

// Rows come and go, and the kernel's routes with them.
func TestFollow(t *testing.T) {
	t.Parallel()
	c := newCluster(t, false)
	a := c.nodes[0]
	a.host.IP("route", "add", "10.77.0.0/16", "via", "10.1.0.2", "proto", "bird")
	a.follow(t)
	shown := func() string { return a.host.IP("route", "show", "proto", "118") }
	row := func(p string) control.Row {
		return control.Prefix{VRF: "cluster", Prefix: netip.MustParsePrefix(p), Via: control.Via{VNI: tunnel, VTEP: netip.AddrPortFrom(addr("10.1.0.2"), 0)}}
	}
	check.OK(t, a.Program("bgp", control.Update{Add: []control.Row{row("10.65.7.0/26"), row("10.65.8.0/26"), row("0.0.0.0/0"),
		control.Prefix{VRF: "cluster", Prefix: prefix("10.65.9.0/26"), Via: control.Via{VNI: leg}}}}))
	a.host.Until("the routes come", func() bool {
		s := shown()
		return strings.Contains(s, "10.65.7.0/26 dev vxhost0 scope link src 10.65.1.60") && strings.Contains(s, "10.65.8.0/26")
	})
	for _, not := range []string{"default", "10.65.9.0", "10.65.1.60 "} {
		check.True(t, !strings.Contains(shown(), "\n"+not), "routes with %q:\n%s", not, shown())
	}
	check.OK(t, a.Program("bgp", control.Update{Snapshot: true, Add: []control.Row{row("10.65.8.0/26")}}))
	a.host.Until("the route goes", func() bool { return !strings.Contains(shown(), "10.65.7.0/26") })
	check.True(t, strings.Contains(shown(), "10.65.8.0/26"), "the other has gone")
	check.True(t, strings.Contains(a.host.IP("route", "show", "proto", "bird"), "10.77.0.0/16"), "the foreign one has gone")

	// A row that waits has no route, a blackhole has one.
	const lan = 777
	waits := control.Prefix{VRF: "cluster", Prefix: prefix("10.65.10.0/26"), Via: control.Via{VNI: lan, IP: addr("10.66.0.2")}}
	drops := control.Prefix{VRF: "cluster", Prefix: prefix("10.65.11.0/26")}
	check.OK(t, a.Program("bgp", control.Update{Loose: true, Add: []control.Row{waits, drops}}))
	a.host.Until("the blackhole comes", func() bool { return strings.Contains(shown(), "10.65.11.0/26 dev vxhost0") })
	check.True(t, !strings.Contains(shown(), "10.65.10.0"), "a route of a row that waits:\n%s", shown())
	check.OK(t, check.Must(a.Segment(lan, nil))(t).Gateway("cluster", node.Gateway{Addresses: []netip.Prefix{prefix("10.66.0.1/24")}}))
	a.host.Until("its place has come", func() bool { return strings.Contains(shown(), "10.65.10.0/26 dev vxhost0") })
	check.OK(t, a.Update(func(cfg *node.Config) error {
		cfg.Segments = slices.DeleteFunc(cfg.Segments, func(s node.Segment) bool { return s.VNI == lan })
		return nil
	}))
	a.host.Until("its place has gone", func() bool { return !strings.Contains(shown(), "10.65.10.0") })

	// The node makes the device anew.
	index := func() string { return a.host.Run("cat", "/sys/class/net/"+device+"/ifindex") }
	old := index()
	a.host.Until("the node has reopened it", func() (ok bool) {
		// A program that another test is starting may have a copy of the descriptor, until it has started.
		a.host.Do(func() {
			ok = a.Update(func(cfg *node.Config) error {
				cfg.Ports[1].BusyPoll = time.Microsecond
				return nil
			}) == nil
		})
		return ok
	})
	check.True(t, index() != old, "it is the same device")
	a.host.Until("the routes are back", func() bool { return strings.Contains(shown(), "10.65.8.0/26") })
	check.Equal(t, "source", c.source(a.host, a.pod, "10.65.1.5"), "10.65.1.60")
	a.net.Close()
	check.Equal(t, "routes", shown()+a.host.IP("-6", "route", "show", "proto", "118"), "")
}

// As flannel does it: a TAP in a VXLAN segment, an address of the own subnet on it, and routes to the subnets of others
// through theirs.
func TestTAP(t *testing.T) {
	t.Parallel()
	n := netns.New(t)
	a, b := n.Host("host1"), n.Host("host2")
	n.Link(a, "10.1.0.1/24", b, "10.1.0.2/24")
	for i, h := range []*netns.Host{a, b} {
		h.TxOff("eth0")
		h.Ready()
		k, other := i+1, 2-i
		nd := running(t)
		h.Do(func() {
			check.OK(t, nd.Apply(&node.Config{
				Tunnels:  []node.Tunnel{{Config: vtep.Config{Name: "vx", Port: 8472}, Local: addr("10.1.0.%d", k)}},
				Ports:    []node.Port{{Name: "flannel.1"}},
				Segments: []node.Segment{{VNI: 1, Tunnel: "vx", Flood: []netip.Addr{addr("10.1.0.%d", other)}, Members: []node.Member{{Port: "flannel.1"}}}},
			}))
		})
		host := check.Must(hostnet.Open(&hostnet.Config{Device: "flannel.1", Namespace: h.NS,
			Addresses: []netip.Prefix{prefix("10.244.%d.0/32", k), prefix("fd24:%d::1/128", k)}}))(t)
		t.Cleanup(func() { check.OK(t, host.Close()) })
		check.OK(t, host.SetRoutes(
			hostnet.Route{Prefix: prefix("10.244.%d.0/24", other), Via: addr("10.244.%d.0", other), OnLink: true},
			hostnet.Route{Prefix: prefix("fd24:%d::/64", other), Via: addr("fd24:%d::1", other), OnLink: true}))
		h.Addr("lo", fmt.Sprintf("10.244.%d.5/32", k)) // of a pod
		h.Addr("lo", fmt.Sprintf("fd24:%d::5/128", k))
	}
	for _, c := range []struct{ to, from, filter string }{
		{"10.244.2.5", "10.244.1.0", "icmp[icmptype] == icmp-echo"}, {"fd24:2::5", "fd24:1::1", "icmp6 and ip6[40] == 128"},
	} {
		p := b.Capture("flannel.1", c.filter)
		a.Ping(c.to, 1)
		check.Equal(t, "source", source(p.Want(1, nil)[0].Data), c.from)
	}
	a.Transfer(b, "10.244.2.5:5001", 1<<20)
}

// Routes change under traffic, and no packet is lost.
func TestReplace(t *testing.T) {
	t.Parallel()
	c := newCluster(t, false)
	a, b := c.nodes[0], c.nodes[1]
	b.follow(t)
	ways := [][]hostnet.Route{
		{{Prefix: prefix("10.65.2.0/26")}, {Prefix: prefix("fd65:2::/64")}},
		{{Prefix: prefix("10.65.2.0/27")}, {Prefix: prefix("fd65:2::/96")}},
		{{Prefix: prefix("10.65.2.0/27"), Via: addr("10.65.2.0"), OnLink: true}, {Prefix: prefix("fd65:2::/96"), Via: addr("fd65:2::1"), OnLink: true}},
		{{Prefix: prefix("10.65.2.0/27"), Via: addr("10.65.2.1"), OnLink: true}, {Prefix: prefix("fd65:2::/96"), Source: netip.IPv6Unspecified()}},
		{{Prefix: prefix("10.65.2.0/27"), Metric: 30}, {Prefix: prefix("fd65:2::/96"), Metric: 30}},
	}
	check.OK(t, a.net.SetRoutes(ways[0]...))
	stop4, stop6 := a.host.Pinging("10.65.2.5"), a.host.Pinging("fd65:2::5")
	for start := time.Now(); time.Since(start) < time.Second; {
		for _, routes := range ways {
			check.OK(t, a.net.SetRoutes(routes...))
		}
	}
	for _, stop := range []func() (int, int){stop4, stop6} {
		sent, answered := stop()
		t.Logf("%d of %d answered", answered, sent)
		check.Equal(t, "answered", answered, sent)
	}
}
