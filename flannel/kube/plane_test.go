package kube

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"sync"

	"github.com/vxswitch/vxswitch/control"
	"github.com/vxswitch/vxswitch/control/controltest"
	"github.com/vxswitch/vxswitch/flannel"
	"github.com/vxswitch/vxswitch/frame"
)

// A shape is a flannel.Shape in plain memory.
type shape struct{ controltest.Model }

func (s *shape) Open(*flannel.Network, *flannel.Own, int) (flannel.MapperConfig, error) {
	return flannel.MapperConfig{VRF: "pods"}, nil
}
func (s *shape) Routes(flannel.RouteUpdate) error { return nil }
func (s *shape) Links() <-chan []netip.Prefix     { return nil }
func (s *shape) Misses() flannel.Misses           { return nil }
func (s *shape) Close(bool) error                 { return nil }

// A site is a running Plane of a node.
type site struct {
	*flannel.Plane
	l     *lab
	shape *shape
	ended chan error
}

// netconf is a Store with a network of its own.
type netconf struct {
	*Store
	n *flannel.Network
}

func (s netconf) Network(context.Context) (*flannel.Network, error) { return s.n, nil }

func (l *lab) run(node, ip string) *site {
	l.Helper()
	s := &site{l: l, shape: &shape{controltest.Model{VNIs: []frame.VNI{1}, VRFs: map[string][]frame.VNI{"pods": {1}}}}, ended: make(chan error, 1)}
	var err error
	s.Plane, err = flannel.NewPlane(&flannel.PlaneConfig{Store: netconf{l.store(node), network(l, vxlan)}, Shape: s.shape, PublicIP: netip.MustParseAddr(ip)})
	l.ok(err)
	ctx, cancel := context.WithCancel(l.Context())
	var running sync.WaitGroup
	running.Go(func() { s.ended <- s.Run(ctx) })
	l.Cleanup(func() { cancel(); running.Wait() })
	return s
}

// want waits until the switch has routes to these subnets, and no others.
func (s *site) want(what string, prefixes ...string) {
	s.l.Helper()
	s.l.until(what, func() bool {
		var list []string
		for _, r := range s.shape.Rows("flannel") {
			if p, ok := r.(control.Prefix); ok {
				list = append(list, p.Prefix.String())
			}
		}
		slices.Sort(list)
		return slices.Equal(list, prefixes)
	})
}

// A node waits for its pod CIDR, follows the others, and counts those that it cannot follow.
func planes(l *lab) {
	l.node("a", "10.244.1.0/24")
	l.node("b")
	a, b := l.run("a", "192.0.2.1"), l.run("b", "192.0.2.2")
	l.until("why b waits", func() bool { return b.Status().Phase == flannel.Acquiring && b.Status().LastError != "" })
	l.patch("b", map[string]any{"spec": map[string]any{"podCIDR": "10.244.2.0/24", "podCIDRs": []string{"10.244.2.0/24"}}})
	a.want("b", "10.244.2.0/24")
	b.want("a", "10.244.1.0/24")
	l.node("bad", "10.244.9.0/24")
	l.annotate("bad", "kube-subnet-manager", "true", "backend-type", "vxlan", "public-ip", "192.0.2.9", "backend-data", "rubbish")
	l.node("none")
	l.annotate("none", "kube-subnet-manager", "true", "backend-type", "vxlan", "public-ip", "192.0.2.9")
	l.until("what is refused", func() bool {
		r := a.Status().Refused
		return len(r) == 2 && r[flannel.BadData] == 1 && r[flannel.NoSubnet] == 1
	})
	l.annotate("bad", "backend-data", `{"VNI":1,"VtepMAC":"02:00:00:00:00:09"}`)
	a.want("one that is better", "10.244.2.0/24", "10.244.9.0/24")
	b.want("it, too", "10.244.1.0/24", "10.244.9.0/24") // so its watch has begun: the fake does not tell it what was removed before
	l.remove("b")
	a.want("without b", "10.244.9.0/24")
	if err := <-b.ended; !errors.Is(err, flannel.ErrLost) || b.Status().Phase != flannel.Lost {
		l.Errorf("b, whose node is gone: %v", err)
	}
	b.want("b carries nothing")
	l.annotate("a", "other", "x")
	l.annotate("a", "backend-data", `{"VNI":1,"VtepMAC":"02:00:00:00:00:77"}`)
	if err := <-a.ended; !errors.Is(err, flannel.ErrLost) {
		l.Errorf("a, whose annotations are another's: %v", err)
	}
	a = l.run("a", "192.0.2.1") // as it is started again
	a.want("after a start", "10.244.9.0/24")
	l.annotate("a", "kube-subnet-manager-", "")
	if err := <-a.ended; !errors.Is(err, flannel.ErrLost) {
		l.Errorf("a, whose annotation is gone: %v", err)
	}
}
