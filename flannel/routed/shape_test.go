package routed_test

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

	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/flannel"
	"github.com/vxswitch/vxswitch/flannel/routed"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/node"
	"github.com/vxswitch/vxswitch/underlay/memory"
	"github.com/vxswitch/vxswitch/vtep"
)

// A fabric is a network of nodes, and a store of leases.
type fabric struct {
	t      *testing.T
	listen func(x *node.Tunnel) (vtep.Underlay, error) // nil = sockets
	kv     func() flannel.KV
	in     func(f func()) // runs what opens sockets
	config *node.Config   // of a node that joins, beside the segment of the pods; nil = none
}

// A member is a node of the flannel network, with one pod.
type member struct {
	*flannel.Plane
	node  *node.Node
	pod   *pod
	log   *slog.Logger
	stop  func() error // the plane
	ended chan error
}

// newFabric makes a network in memory.
func newFabric(t *testing.T, kv func() flannel.KV) *fabric {
	wire := memory.NewNetwork(nil)
	t.Cleanup(func() { wire.Close() })
	return &fabric{t: t, listen: func(x *node.Tunnel) (vtep.Underlay, error) {
		if x.Type == encap.TypeIPIP {
			return wire.ListenIP(x.Local, nil)
		}
		return wire.Listen(x.AddrPort(), nil)
	}, kv: kv, in: func(f func()) { f() }}
}

// join starts node i, and adds a pod as soon as there is a subnet.
func (f *fabric) join(i int, change func(p *flannel.PlaneConfig, s *routed.Config)) *member {
	t := f.t
	t.Helper()
	n, err := node.New(&node.Options{Owners: []string{"flannel"}, Listen: f.listen})
	check.OK(t, err)
	m := &member{node: n, ended: make(chan error, 1)}
	t.Cleanup(func() { n.Close() })
	check.Run(t, n.Run)
	if f.config != nil {
		if f.in(func() { err = n.Apply(f.config) }); err != nil {
			t.Fatal(err)
		}
	}
	pods := check.Must(n.Segment(routed.DefaultPods, nil))(t)
	m.start(f, i, change)
	own := m.Status().Own
	p := own.Subnet.IPv4
	if !p.IsValid() {
		p = own.Subnet.IPv6
	}
	m.pod = newPod(t, fmt.Sprint("pod", i), p.Addr().Next().Next(), podsMAC(i))
	check.OK(t, pods.Add(m.pod.pipe, nil))
	return m
}

func podsMAC(i int) frame.MAC { return frame.MAC{2, 0, 0, 0, 9, byte(i)} }

// start starts a plane on the node, and waits until it is ready.
func (m *member) start(f *fabric, i int, change func(p *flannel.PlaneConfig, s *routed.Config)) {
	t := f.t
	t.Helper()
	sc := &routed.Config{Node: m.node, PodsMAC: podsMAC(i)}
	pc := &flannel.PlaneConfig{Store: &flannel.Registry{KV: f.kv()}, PublicIP: netip.MustParseAddr(fmt.Sprintf("192.0.2.%d", i)),
		PublicIPv6: netip.MustParseAddr(fmt.Sprintf("2001:db8::%d", i)), Log: m.log}
	if change != nil {
		change(pc, sc)
	}
	shape, err := routed.New(sc)
	check.OK(t, err)
	pc.Shape = shape
	if m.Plane, err = flannel.NewPlane(pc); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	go f.in(func() { m.ended <- m.Run(ctx) })
	m.stop = sync.OnceValue(func() error { cancel(); return <-m.ended })
	t.Cleanup(func() { m.stop() })
	select {
	case <-m.Ready():
	case err := <-m.ended:
		m.stop = func() error { return err }
		t.Fatal(err)
	case <-time.After(20 * time.Second):
		t.Fatal("not ready")
	}
}

const vxlanJSON = `{"Network": "10.3.0.0/16", "Backend": {"Type": "vxlan"}}`

func memoryStore(t *testing.T, network string) *flannel.Memory {
	m := flannel.NewMemory(network)
	t.Cleanup(func() { m.Close() })
	return m
}

// everybody pings everybody else.
func everybody(t *testing.T, ttl uint8, all ...*member) {
	t.Helper()
	for _, a := range all {
		for _, b := range all {
			if a != b {
				if got := a.pod.reach(b.pod.ip); got != ttl {
					t.Errorf("%v to %v: TTL %d, want %d", a.pod.ip, b.pod.ip, got, ttl)
				}
			}
		}
	}
}

// Three nodes, each generation of vxlan, and ipip: pods reach pods, with two routers in between.
func TestPods(t *testing.T) {
	for name, c := range map[string]struct {
		network    string
		generation int
	}{
		"vxlan 3":              {vxlanJSON, 3},
		"vxlan 2":              {vxlanJSON, 2},
		"vxlan 1":              {vxlanJSON, 1},
		"another VNI and port": {`{"Network": "10.3.0.0/16", "Backend": {"Type": "vxlan", "VNI": 300, "Port": 4789, "GBP": true}}`, 3},
		"IPv6":                 {`{"EnableIPv4": false, "EnableIPv6": true, "IPv6Network": "fc00:3::/48", "Backend": {"Type": "vxlan"}}`, 3},
		"IPv6 1":               {`{"EnableIPv4": false, "EnableIPv6": true, "IPv6Network": "fc00:3::/48", "Backend": {"Type": "vxlan"}}`, 1},
		"ipip":                 {`{"Network": "10.3.0.0/16", "Backend": {"Type": "ipip"}}`, 3},
		"udp":                  {`{"Network": "10.3.0.0/16"}`, 3},
		"udp of IPv6":          {`{"EnableIPv4": false, "EnableIPv6": true, "IPv6Network": "fc00:3::/48"}`, 3},
	} {
		t.Run(name, func(t *testing.T) {
			m := memoryStore(t, c.network)
			f := newFabric(t, m.KV)
			var all []*member
			for i := range 3 {
				all = append(all, f.join(i+1, func(p *flannel.PlaneConfig, s *routed.Config) { p.Generation = c.generation }))
			}
			everybody(t, 62, all...)
			for _, a := range all {
				if s := a.Status(); len(s.Refused) != 0 || s.Leases != 2 || c.generation != 3 && s.Misses == 0 {
					t.Errorf("%+v", s)
				}
				if w := waiting(a.node); len(w) != 0 {
					t.Errorf("rows wait: %v", w)
				}
			}
		})
	}
}

// Pods of both families, in tunnels of both.
func TestDualStack(t *testing.T) {
	m := memoryStore(t, `{"Network": "10.3.0.0/16", "EnableIPv6": true, "IPv6Network": "fc00:3::/48", "Backend": {"Type": "vxlan"}}`)
	f := newFabric(t, m.KV)
	a, b := f.join(1, nil), f.join(2, nil)
	everybody(t, 62, a, b)
	six := func(m *member, i int) *member {
		ip := m.Status().Own.Subnet.IPv6.Addr().Next().Next()
		p := newPod(t, fmt.Sprint("six", i), ip, podsMAC(i))
		pods, err := m.node.Segment(routed.DefaultPods, nil)
		if err == nil {
			err = pods.Add(p.pipe, nil)
		}
		check.OK(t, err)
		return &member{pod: p}
	}
	everybody(t, 62, six(a, 1), six(b, 2))
	s := a.Status().Own
	if s.IPv4.MAC == s.IPv6.MAC {
		t.Errorf("%+v", s)
	}
	v := a.node.Tunnels()["flannel"]
	var peers []string
	for _, p := range v.Listed(0) {
		peers = append(peers, p.String())
	}
	if got := strings.Join(peers, " "); got != "192.0.2.2 2001:db8::2" {
		t.Errorf("peers %s", got)
	}
}

// A node that has no lease any longer is not heard, and one that has lost its own does not speak.
func TestLeaves(t *testing.T) {
	m := memoryStore(t, vxlanJSON)
	f := newFabric(t, m.KV)
	a, b, c := f.join(1, nil), f.join(2, nil), f.join(3, nil)
	everybody(t, 62, a, b, c)
	m.Remove(b.Status().Own.Subnet.Key())
	err := <-b.ended
	b.stop = func() error { return err }
	if !errors.Is(err, flannel.ErrLost) {
		t.Errorf("%v", err)
	}
	for _, x := range []*member{a, c} {
		if _, ok := x.pod.ping(b.pod.ip, 1, 300*time.Millisecond); ok {
			t.Errorf("%v is still reached", b.pod.ip)
		}
		if _, ok := b.pod.ping(x.pod.ip, 1, 300*time.Millisecond); ok {
			t.Errorf("%v still speaks", b.pod.ip)
		}
	}
	if n := len(b.node.Switch().VSIs()); n != 1 { // that of the pods has a member of the program
		t.Errorf("%d segments are left", n)
	}
	everybody(t, 62, a, c)
	old := b.Status().Own.Subnet
	b.start(f, 2, func(p *flannel.PlaneConfig, s *routed.Config) { p.Previous = old }) // and so with another pod of the same address
	pods := check.Must(b.node.Segment(routed.DefaultPods, nil))(t)
	check.OK(t, pods.Remove(b.pod.pipe))
	p := newPod(t, "again", b.Status().Own.Subnet.IPv4.Addr().Next().Next(), podsMAC(2))
	check.OK(t, pods.Add(p.pipe, nil))
	b.pod = p
	everybody(t, 62, a, b, c)
}

// A plane that starts again on the node, as after a crash of the program's other parts, has the same subnet, and
// while the store is away packets pass.
func TestOutageAndRestart(t *testing.T) {
	m := memoryStore(t, vxlanJSON)
	f := newFabric(t, m.KV)
	a, b := f.join(1, nil), f.join(2, nil)
	everybody(t, 62, a, b)
	m.Fail(errors.New("away"))
	everybody(t, 62, a, b)
	m.Fail(nil)
	before := b.Status().Own
	check.OK(t, b.stop())
	b.start(f, 2, nil)
	if after := b.Status().Own; after != before {
		t.Errorf("%+v, before %+v", after, before)
	}
	everybody(t, 62, a, b)
}

// What stands in the way of a network in the node is an error of Run, and leaves the node as it was.
func TestConflicts(t *testing.T) {
	onLink := func(vrf string, addrs ...string) *node.Config {
		g := &node.SegmentGateway{VRF: vrf, Gateway: node.Gateway{MAC: podsMAC(7)}}
		for _, a := range addrs {
			g.Addresses = append(g.Addresses, netip.MustParsePrefix(a))
		}
		return &node.Config{Segments: []node.Segment{{VNI: 7, Gateway: g}}, VRFs: []node.VRF{{Name: vrf}}}
	}
	const (
		directJSON = `{"Network": "10.3.0.0/16", "Backend": {"Type": "vxlan", "DirectRouting": true}}`
		hostGW     = `{"Network": "10.3.0.0/16", "Backend": {"Type": "host-gw"}}`
		noAddress  = `routed: direct: segment 7: a gateway in the VRF "flannel" with the address 192.0.2.1 is needed with `
	)
	for want, c := range map[string]struct {
		network string
		config  *node.Config
		direct  frame.VNI
	}{
		"VNI 1 of the network is that of a segment of this node":                                                        {vxlanJSON, &node.Config{Segments: []node.Segment{{VNI: 1}}}, 0},
		"VNI 1 of the network is that of a segment of this node:":                                                       {vxlanJSON, &node.Config{Segments: []node.Segment{{VNI: 1, Gateway: &node.SegmentGateway{VRF: "x", Gateway: node.Gateway{MAC: podsMAC(1)}}}}, VRFs: []node.VRF{{Name: "x"}}}, 0},
		"routed: VNI 16777214 of the network is that of the pods":                                                       {`{"Network": "10.3.0.0/16", "Backend": {"Type": "vxlan", "VNI": 16777214}}`, &node.Config{}, 0},
		"routed: direct: no segment: one is needed with backend host-gw, since nodes on our link send without a tunnel": {hostGW, &node.Config{}, 0},
		"routed: direct: no segment: one is needed with DirectRouting":                                                  {directJSON, &node.Config{}, 0},
		noAddress + "backend host-gw, since nodes on our link send to it":                                               {hostGW, &node.Config{}, 7},
		noAddress + "DirectRouting":                                                                                     {directJSON, onLink("flannel", "192.0.2.9/24"), 7},
		noAddress + "DirectRouting,":                                                                                    {directJSON, onLink("other", "192.0.2.1/24"), 7},
	} {
		n := check.Must(node.New(nil))(t)
		check.OK(t, n.Apply(c.config))
		shape := check.Must(routed.New(&routed.Config{Node: n, Direct: c.direct}))(t)
		p, err := flannel.NewPlane(&flannel.PlaneConfig{Store: &flannel.Registry{KV: memoryStore(t, c.network).KV()}, Shape: shape, PublicIP: netip.MustParseAddr("192.0.2.1")})
		check.OK(t, err)
		if err := p.Run(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
		if got := len(n.Switch().VSIs()); got != len(c.config.Segments) {
			t.Errorf("%s: %d segments are left", want, got)
		}
		n.Close()
	}
	n, _ := node.New(nil)
	defer n.Close()
	for want, c := range map[string]*routed.Config{
		"Node": nil, "PodsMAC": {Node: n, PodsMAC: frame.Broadcast}, "are different segments": {Node: n, Pods: 7, Direct: 7}, "Direct": {Node: n, Direct: 1 << 24},
	} {
		if _, err := routed.New(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

func waiting(n *node.Node) (list []string) {
	for w := range n.Plane().Waiting("flannel") {
		list = append(list, fmt.Sprint(w))
	}
	return list
}
