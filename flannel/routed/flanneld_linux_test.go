package routed_test

import (
	"fmt"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/flannel"
	"github.com/vxswitch/vxswitch/flannel/etcd"
	"github.com/vxswitch/vxswitch/flannel/internal/etcdlab"
	"github.com/vxswitch/vxswitch/flannel/internal/flanneldlab"
	"github.com/vxswitch/vxswitch/flannel/routed"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
	"github.com/vxswitch/vxswitch/node"
	"github.com/vxswitch/vxswitch/underlay"
	"github.com/vxswitch/vxswitch/vtep"
)

// A lab is a network in namespaces, with an etcd outside.
type lab struct {
	t    *testing.T
	net  *netns.Net
	sw   *netns.Host
	etcd *etcdlab.Server
}

func newLab(t *testing.T, network string) *lab {
	l := &lab{t: t, net: netns.New(t)}
	flanneldlab.Build(t)
	l.etcd = etcdlab.Start(t, etcdlab.Options{})
	l.etcd.Ctl(t, "put", prefix+"/config", network)
	l.sw = l.net.Switch("sw")
	return l
}

// host makes host i, 192.0.2.i.
func (l *lab) host(i int) *netns.Host {
	h := l.net.Router(fmt.Sprint("n", i))
	l.net.Plug(h, fmt.Sprintf("192.0.2.%d/24,2001:db8::%d/64", i, i), l.sw)
	h.TxOff("eth0") // what the kernel's vxlan leaves to a card that is not there
	return h
}

// ours makes a node of ours in host i.
func (l *lab) ours(i int, change func(p *flannel.PlaneConfig, s *routed.Config)) *member {
	h := l.host(i)
	f := &fabric{l.t, func(x *node.Tunnel) (u vtep.Underlay, err error) {
		h.Do(func() { u, err = underlay.ListenUDP(x.AddrPort(), &x.UDPConfig) })
		return u, err
	}, func() flannel.KV {
		s, err := etcd.New(&etcd.Config{Endpoints: []string{l.etcd.URL}})
		if err != nil {
			l.t.Fatal(err)
		}
		l.t.Cleanup(func() { s.Close() })
		return s
	}}
	return f.join(i, change)
}

// A theirs is a node with flanneld, and a pod in a namespace.
type theirs struct {
	*flanneldlab.Node
	host, pod *netns.Host
	ip, ip6   netip.Addr // of the pod
}

func (l *lab) theirs(i int) *theirs {
	l.t.Helper()
	h := l.host(i)
	x := &theirs{host: h}
	x.Node = flanneldlab.Start(l.t, h, "http://"+etcdlab.ProxyIn(l.t, l.etcd.Addr, h.Do).Addr)
	x.pod = l.net.Host(fmt.Sprint("p", i))
	var gates, pods []string
	for _, name := range []string{"FLANNEL_SUBNET", "FLANNEL_IPV6_SUBNET"} {
		if b, err := os.ReadFile(x.File); err == nil && !strings.Contains(string(b), name+"=") {
			continue
		}
		gate := netip.MustParsePrefix(x.Value(l.t, name))
		ip := gate.Addr().Next()
		if ip.Is4() {
			x.ip = ip
		} else {
			x.ip6 = ip
		}
		gates, pods = append(gates, gate.String()), append(pods, netip.PrefixFrom(ip, gate.Bits()).String())
	}
	l.net.Link(h, strings.Join(gates, ","), x.pod, strings.Join(pods, ","))
	for _, g := range gates {
		x.pod.Route("default", "via", netip.MustParsePrefix(g).Addr().String())
	}
	return x
}

const nftJSON = `{"Network": "10.3.0.0/16", "EnableNFTables": true, "Backend": {"Type": "vxlan"%s}}`

// Nodes of ours and real flannelds are one network: they see each other's leases, and pods reach pods, with TTL 62 both ways, in
// each of our generations; when one goes, it is gone for all.
func TestFlanneld(t *testing.T) {
	l := newLab(t, fmt.Sprintf(nftJSON, ""))
	b, c := l.theirs(2), l.theirs(3)
	for g, i := range map[int]int{3: 11, 2: 12, 1: 13} {
		a := l.ours(i, func(p *flannel.PlaneConfig, s *routed.Config) { p.Generation = g })
		if s := a.Status(); s.Leases < 2 || len(s.Refused) != 0 {
			t.Errorf("generation %d: %+v", g, s)
		}
		for _, x := range []*theirs{b, c} {
			if ttl := a.pod.reach(x.ip); ttl != 62 {
				t.Errorf("generation %d: TTL %d from flanneld's pod", g, ttl)
			}
			if ttl := x.pod.PingTTL(a.pod.ip.String()); ttl != 62 {
				t.Errorf("generation %d: TTL %d at flanneld's pod", g, ttl)
			}
		}
	}
	d := l.ours(14, nil)
	d.pod.reach(b.ip)
	before := d.Status().Leases
	l.etcd.Ctl(t, "del", prefix+"/subnets/"+strings.Replace(netip.MustParsePrefix(b.Value(t, "FLANNEL_SUBNET")).Masked().String(), "/", "-", 1))
	until(t, "that a flanneld has no lease", func() bool { return d.Status().Leases == before-1 })
	if _, ok := d.pod.ping(b.ip, 1, 300*time.Millisecond); ok {
		t.Error("it is still reached")
	}
	d.pod.reach(c.ip)
}

// Both families, each with a tunnel of its own.
func TestFlanneldDualStack(t *testing.T) {
	l := newLab(t, `{"Network": "10.3.0.0/16", "EnableIPv6": true, "IPv6Network": "fc00:3::/48", "EnableNFTables": true, "Backend": {"Type": "vxlan"}}`)
	b := l.theirs(2)
	a := l.ours(11, nil)
	if ttl := a.pod.reach(b.ip); ttl != 62 {
		t.Errorf("IPv4: TTL %d", ttl)
	}
	pods, err := a.node.Segment(routed.DefaultPods, nil)
	if err != nil {
		t.Fatal(err)
	}
	p := newPod(t, "six", a.Status().Own.Subnet.IPv6.Addr().Next().Next(), podsMAC(11))
	if err := pods.Add(p.pipe, nil); err != nil {
		t.Fatal(err)
	}
	if ttl := p.reach(b.ip6); ttl != 62 {
		t.Errorf("IPv6: TTL %d", ttl)
	}
	b.pod.Ping(a.pod.ip.String(), 2)
	b.pod.Ping(p.ip.String(), 2)
}
