package routed_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/flannel"
	"github.com/vxswitch/vxswitch/flannel/etcd"
	"github.com/vxswitch/vxswitch/flannel/internal/flanneldlab"
	"github.com/vxswitch/vxswitch/flannel/routed"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// ours makes a node of ours in host i.
func ours(t *testing.T, l *flanneldlab.Lab, i int, change func(p *flannel.PlaneConfig, s *routed.Config)) *member {
	return inHost(t, l, l.Host(i)).join(i, change)
}

// inHost is a fabric whose next node is in a host.
func inHost(t *testing.T, l *flanneldlab.Lab, h *netns.Host) *fabric {
	return &fabric{t: t, in: h.Do, kv: func() flannel.KV {
		s := check.Must(etcd.New(&etcd.Config{Endpoints: []string{l.Etcd.URL}}))(t)
		t.Cleanup(func() { s.Close() })
		return s
	}}
}

const nftJSON = `{"Network": "10.3.0.0/16", "EnableNFTables": true, "Backend": {"Type": "vxlan"%s}}`

// Nodes of ours and real flannelds are one network: they see each other's leases, and pods reach pods, with TTL 62 both ways, in
// each of our generations; when one goes, it is gone for all.
func TestFlanneld(t *testing.T) {
	l := flanneldlab.New(t, fmt.Sprintf(nftJSON, ""))
	b, c := l.Theirs(2), l.Theirs(3)
	for g, i := range map[int]int{3: 11, 2: 12, 1: 13} {
		a := ours(t, l, i, func(p *flannel.PlaneConfig, s *routed.Config) { p.Generation = g })
		if s := a.Status(); s.Leases < 2 || len(s.Refused) != 0 {
			t.Errorf("generation %d: %+v", g, s)
		}
		for _, x := range []*flanneldlab.Theirs{b, c} {
			if ttl := a.pod.reach(x.Pod.IPv4); ttl != 62 {
				t.Errorf("generation %d: TTL %d from flanneld's pod", g, ttl)
			}
			if ttl := x.Pod.PingTTL(a.pod.ip.String()); ttl != 62 {
				t.Errorf("generation %d: TTL %d at flanneld's pod", g, ttl)
			}
		}
	}
	d := ours(t, l, 14, nil)
	d.pod.reach(b.Pod.IPv4)
	before := d.Status().Leases
	l.Etcd.Ctl(t, "del", prefix+"/subnets/"+flannel.Subnet{IPv4: b.Subnets(t)[0]}.Key())
	until(t, "that a flanneld has no lease", func() bool { return d.Status().Leases == before-1 })
	if _, ok := d.pod.ping(b.Pod.IPv4, 1, 300*time.Millisecond); ok {
		t.Error("it is still reached")
	}
	d.pod.reach(c.Pod.IPv4)
}

// Both families, each with a tunnel of its own.
func TestFlanneldDualStack(t *testing.T) {
	l := flanneldlab.New(t, `{"Network": "10.3.0.0/16", "EnableIPv6": true, "IPv6Network": "fc00:3::/48", "EnableNFTables": true, "Backend": {"Type": "vxlan"}}`)
	b := l.Theirs(2)
	a := ours(t, l, 11, nil)
	if ttl := a.pod.reach(b.Pod.IPv4); ttl != 62 {
		t.Errorf("IPv4: TTL %d", ttl)
	}
	pods := check.Must(a.node.Segment(routed.DefaultPods, nil))(t)
	p := newPod(t, "six", a.Status().Own.Subnet.IPv6.Addr().Next().Next(), podsMAC(11))
	check.OK(t, pods.Add(p.pipe, nil))
	if ttl := p.reach(b.Pod.IPv6); ttl != 62 {
		t.Errorf("IPv6: TTL %d", ttl)
	}
	b.Pod.Ping(a.pod.ip.String(), 2)
	b.Pod.Ping(p.ip.String(), 2)
}
