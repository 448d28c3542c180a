package kube

import (
	"cmp"
	"fmt"
	"net/netip"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vxswitch/vxswitch/flannel"
	"github.com/vxswitch/vxswitch/internal/hostaddr"
)

// names are those of annotations.
type names struct {
	managed, backend, data, data6, ip, ip6 string // of a lease

	overwrite, overwrite6, nodeIP, nodeIP6 string // of an operator
}

func newNames(prefix string) names {
	return names{
		managed: prefix + "kube-subnet-manager", backend: prefix + "backend-type", data: prefix + "backend-data", data6: prefix + "backend-v6-data",
		ip: prefix + "public-ip", ip6: prefix + "public-ipv6", overwrite: prefix + "public-ip-overwrite", overwrite6: prefix + "public-ipv6-overwrite",
		nodeIP: prefix + "node-public-ip", nodeIP6: prefix + "node-public-ipv6",
	}
}

// isManaged is the value of the annotation managed that says that a node has a lease.
const isManaged = "true"

// lease returns what a node says, and whether that is a lease.
func (x *names) lease(n *corev1.Node) (l flannel.NodeLease, is bool) {
	a := n.Annotations
	l = flannel.NodeLease{PodCIDRs: n.Spec.PodCIDR, Type: a[x.backend], PublicIP: a[x.ip], PublicIPv6: a[x.ip6], Data: a[x.data], DataV6: a[x.data6]}
	if len(n.Spec.PodCIDRs) > 0 {
		l.PodCIDRs = strings.Join(n.Spec.PodCIDRs, ",")
	}
	return l, a[x.managed] == isManaged
}

// changes returns the annotations that a node needs for a lease. What the lease does not have is left as it is.
func (x *names) changes(n *corev1.Node, l flannel.NodeLease) map[string]any {
	changes := map[string]any{}
	for name, value := range map[string]string{x.managed: isManaged, x.backend: l.Type, x.ip: l.PublicIP, x.ip6: l.PublicIPv6, x.data: l.Data, x.data6: l.DataV6} {
		if value != n.Annotations[name] && (value != "" || name == x.backend) {
			changes[name] = value
		}
	}
	return changes
}

// merged returns what a node says that has said is, once the changes for a lease are made.
func merged(is, l flannel.NodeLease) flannel.NodeLease {
	l.PodCIDRs = is.PodCIDRs
	l.PublicIP, l.PublicIPv6 = cmp.Or(l.PublicIP, is.PublicIP), cmp.Or(l.PublicIPv6, is.PublicIPv6)
	l.Data, l.DataV6 = cmp.Or(l.Data, is.Data), cmp.Or(l.DataV6, is.DataV6)
	return l
}

// none returns the annotations that end a lease.
func (x *names) none() map[string]any {
	return map[string]any{x.managed: nil, x.backend: nil, x.ip: nil, x.ip6: nil, x.data: nil, x.data6: nil}
}

// address reads an annotation with an address, invalid for none.
func address(n *corev1.Node, name string, is func(netip.Addr) bool, what string) (netip.Addr, error) {
	s := n.Annotations[name]
	if s == "" {
		return netip.Addr{}, nil
	}
	a, err := netip.ParseAddr(s)
	if err != nil || !is(a) || hostaddr.Neighbour(a) != nil {
		return netip.Addr{}, fmt.Errorf("node %s: annotation %s: %.100q: must be an %s address of one host", n.Name, name, s, what)
	}
	return a, nil
}

// addresses reads a pair of them.
func addresses(n *corev1.Node, name4, name6 string) (four, six netip.Addr, err error) {
	if four, err = address(n, name4, netip.Addr.Is4, "IPv4"); err == nil {
		six, err = address(n, name6, netip.Addr.Is6, "IPv6")
	}
	return four, six, err
}

// maxAnnotation is how many bytes of one are kept: half of it is too long for a lease, so what is cut is refused.
const maxAnnotation = 8 << 10

// strip returns what a Store needs of a node: a hundredth.
func (x *names) strip(n *corev1.Node) *corev1.Node {
	s := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.Name, UID: n.UID, ResourceVersion: n.ResourceVersion, CreationTimestamp: n.CreationTimestamp, Annotations: map[string]string{}}}
	s.Spec.PodCIDR, s.Spec.PodCIDRs = n.Spec.PodCIDR, n.Spec.PodCIDRs
	for _, name := range []string{x.managed, x.backend, x.data, x.data6, x.ip, x.ip6} {
		if v, ok := n.Annotations[name]; ok {
			s.Annotations[name] = strings.Clone(v[:min(len(v), maxAnnotation)])
		}
	}
	return s
}
