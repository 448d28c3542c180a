package flanneldlab

import (
	"fmt"
	"net/netip"
	"os"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/internal/lab/etcdlab"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// Prefix is that of the keys.
const Prefix = "/coreos.com/network"

// A Lab is a flannel network in namespaces, with an etcd outside of them.
//
//	etcd ---- (a way into each host)
//
//	host n1      host n2      ...    192.0.2.I, 2001:db8::I
//	  |  \         |  \
//	  |   pod p1   |   pod p2        the second address of the subnet; the host has the first
//	  +---- sw ----+---- router 192.0.2.254, 2001:db8::fe --- host n3    198.51.100.I, 2001:db8:1::I
type Lab struct {
	Net  *netns.Net
	Etcd *etcdlab.Server

	t  testing.TB
	sw *netns.Host
}

// New makes a lab with a network, and builds flanneld.
func New(t testing.TB, network string) *Lab {
	t.Helper()
	l := &Lab{t: t, Net: netns.New(t)}
	Build(t)
	l.Etcd = etcdlab.Start(t, etcdlab.Options{})
	l.Etcd.Ctl(t, "put", Prefix+"/config", network)
	l.sw = l.Net.Switch("sw")
	return l
}

// Host makes host I.
func (l *Lab) Host(i int) *netns.Host {
	l.t.Helper()
	h := l.Net.Router(fmt.Sprint("n", i))
	l.Net.Plug(h, fmt.Sprintf("192.0.2.%d/24,2001:db8::%d/64", i, i), l.sw)
	h.TxOff("eth0") // the kernel's vxlan leaves checksums to a card that is not there
	h.Route("198.51.100.0/24", "via", Router)
	h.Route("2001:db8:1::/64", "via", Router6)
	return h
}

// Switch is what hosts on the link are plugged into.
func (l *Lab) Switch() *netns.Host { return l.sw }

// Bare makes host I without addresses: a node on its eth0 has them.
func (l *Lab) Bare(i int) *netns.Host {
	l.t.Helper()
	h := l.Net.Host(fmt.Sprint("n", i))
	h.Quiet()
	l.Net.Plug(h, "", l.sw)
	return h
}

// Addresses of the router on the link.
const (
	Router  = "192.0.2.254"
	Router6 = "2001:db8::fe"
)

// Far makes host I and the router. A lab has one.
func (l *Lab) Far(i int) *netns.Host {
	l.t.Helper()
	r, h := l.Net.Router("router"), l.Net.Router(fmt.Sprint("n", i))
	l.Net.Plug(r, Router+"/24,"+Router6+"/64", l.sw)
	l.Net.Link(h, fmt.Sprintf("198.51.100.%d/24,2001:db8:1::%d/64", i, i), r, "198.51.100.254/24,2001:db8:1::fe/64")
	h.TxOff("eth0")
	h.Route("192.0.2.0/24", "via", "198.51.100.254")
	h.Route("2001:db8::/64", "via", "2001:db8:1::fe")
	return h
}

// Way is the URL of etcd in a host.
func (l *Lab) Way(h *netns.Host) string {
	l.t.Helper()
	return l.WayFrom(h, "127.0.0.1")
}

// WayFrom is the URL of etcd at an address of a host, for others on its links.
func (l *Lab) WayFrom(h *netns.Host, addr string) string {
	l.t.Helper()
	return "http://" + etcdlab.ProxyIn(l.t, l.Etcd.Addr, addr, h.Do).Addr
}

// A Pod is a namespace with an address in each subnet of a host.
type Pod struct {
	*netns.Host
	IPv4, IPv6 netip.Addr // invalid = none
}

// Pod makes a pod in host I, which has the first address of each subnet.
func (l *Lab) Pod(h *netns.Host, i int, subnets ...netip.Prefix) *Pod {
	l.t.Helper()
	p := &Pod{Host: l.Net.Host(fmt.Sprint("p", i))}
	var gates, pods []string
	for _, s := range subnets {
		if !s.IsValid() {
			continue
		}
		gate := s.Masked().Addr().Next()
		ip := gate.Next()
		if ip.Is4() {
			p.IPv4 = ip
		} else {
			p.IPv6 = ip
		}
		gates, pods = append(gates, netip.PrefixFrom(gate, s.Bits()).String()), append(pods, netip.PrefixFrom(ip, s.Bits()).String())
	}
	l.Net.Link(h, strings.Join(gates, ","), p.Host, strings.Join(pods, ","))
	for _, g := range gates {
		p.Route("default", "via", netip.MustParsePrefix(g).Addr().String())
	}
	return p
}

// A Theirs is a host with flanneld and a pod.
type Theirs struct {
	*Node
	Host *netns.Host
	Pod  *Pod
}

// Theirs makes host I with flanneld.
func (l *Lab) Theirs(i int, args ...string) *Theirs {
	l.t.Helper()
	return l.TheirsIn(l.Host(i), i, args...)
}

// TheirsIn starts flanneld in host I.
func (l *Lab) TheirsIn(h *netns.Host, i int, args ...string) *Theirs {
	l.t.Helper()
	x := &Theirs{Node: Start(l.t, h, l.Way(h), args...), Host: h}
	x.Pod = l.Pod(h, i, x.Subnets(l.t)...)
	return x
}

// Subnets returns those of a flanneld.
func (n *Node) Subnets(t testing.TB) (list []netip.Prefix) {
	t.Helper()
	b, err := os.ReadFile(n.File)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"FLANNEL_SUBNET", "FLANNEL_IPV6_SUBNET"} {
		if strings.Contains(string(b), name+"=") {
			list = append(list, netip.MustParsePrefix(n.Value(t, name)).Masked())
		}
	}
	return list
}
