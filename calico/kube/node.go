package kube

import (
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/vxswitch/vxswitch/calico/internal/resource"
)

type nodeSpec struct {
	BGP                  *nodeBGP      `json:"bgp,omitempty"`
	IPv4VXLANTunnelAddr  string        `json:"ipv4VXLANTunnelAddr,omitempty"`
	IPv6VXLANTunnelAddr  string        `json:"ipv6VXLANTunnelAddr,omitempty"`
	VXLANTunnelMACAddr   string        `json:"vxlanTunnelMACAddr,omitempty"`
	VXLANTunnelMACAddrV6 string        `json:"vxlanTunnelMACAddrV6,omitempty"`
	Addresses            []nodeAddress `json:"addresses,omitempty"`
}

type nodeBGP struct {
	ASNumber                string `json:"asNumber,omitempty"`
	IPv4Address             string `json:"ipv4Address,omitempty"`
	IPv6Address             string `json:"ipv6Address,omitempty"`
	IPv4IPIPTunnelAddr      string `json:"ipv4IPIPTunnelAddr,omitempty"`
	RouteReflectorClusterID string `json:"routeReflectorClusterID,omitempty"`
}

type nodeAddress struct {
	Address string `json:"address"`
	Type    string `json:"type"`
}

const annotations = "projectcalico.org/"

// nodeSays is what a Node says: what Calico writes there is in annotations. A wrong one is overlooked, as by Calico, and named.
func nodeSays(c *Config, x runtime.Object) []said {
	n := &annotated{Node: x.(*corev1.Node)}
	m := metadata{Name: n.Name, Labels: n.labels()}
	bgp := nodeBGP{
		ASNumber: n.of("ASNumber", isAS), IPv4Address: n.of("IPv4Address", isPlace4), IPv6Address: n.of("IPv6Address", isPlace6),
		IPv4IPIPTunnelAddr: n.of("IPv4IPIPTunnelAddr", isIPv4), RouteReflectorClusterID: n.of("RouteReflectorClusterID", isIPv4),
	}
	if c.UsePodCIDR && n.Spec.PodCIDR != "" {
		bgp.IPv4IPIPTunnelAddr = n.firstHost()
	}
	s := nodeSpec{
		IPv4VXLANTunnelAddr: n.of("IPv4VXLANTunnelAddr", isIPv4), IPv6VXLANTunnelAddr: n.of("IPv6VXLANTunnelAddr", isIPv6),
		VXLANTunnelMACAddr: n.of("VXLANTunnelMACAddr", isMAC), VXLANTunnelMACAddrV6: n.of("VXLANTunnelMACAddrV6", isMAC),
	}
	if bgp != (nodeBGP{}) {
		s.BGP = &bgp
	}
	for _, a := range n.Status.Addresses {
		if a.Type == corev1.NodeInternalIP || a.Type == corev1.NodeExternalIP {
			s.Addresses = append(s.Addresses, nodeAddress{a.Address, string(a.Type)})
		}
	}
	list := append(n.wrong, says(resource.KindNode, m, s))
	if c.UsePodCIDR {
		list = append(list, podCIDRs(n.Node)...)
	}
	return list
}

// An annotated is a Node, and what is wrong there.
type annotated struct {
	*corev1.Node
	wrong []said
}

func (n *annotated) overlook(name, value string) {
	n.wrong = append(n.wrong, said{key: "nodes/" + n.Name + " " + name, err: fmt.Errorf("%.100q is none, and is overlooked", value)})
}

// of is what an annotation says, "" if it is wrong.
func (n *annotated) of(name string, is func(string) bool) string {
	text := n.Annotations[annotations+name]
	if text != "" && !is(text) {
		n.overlook(annotations+name, text)
		return ""
	}
	return text
}

// labels are those of Calico, which are in an annotation, and those of the Node, which count.
func (n *annotated) labels() map[string]string {
	const name = annotations + "labels"
	all := map[string]string{}
	if text := n.Annotations[name]; text != "" {
		var own map[string]string
		if err := json.Unmarshal([]byte(text), &own); err != nil {
			n.overlook(name, text)
		} else {
			maps.Copy(all, own)
		}
	}
	maps.Copy(all, n.Labels)
	return all
}

// firstHost is the address of tunnels of a node whose pods have addresses of its pod CIDR, "" for one of IPv6.
func (n *annotated) firstHost() string {
	p, err := netip.ParsePrefix(n.Spec.PodCIDR)
	if err != nil {
		n.overlook("spec.podCIDR", n.Spec.PodCIDR)
	}
	if err != nil || !p.Addr().Is4() {
		return ""
	}
	return p.Addr().Next().String()
}

func isIPv4(s string) bool {
	a, err := netip.ParseAddr(s)
	return err == nil && a.Is4()
}

func isIPv6(s string) bool {
	a, err := netip.ParseAddr(s)
	return err == nil && a.Is6() && !a.Is4In6() && a.Zone() == ""
}

// isPlace4 reports whether a text is an address with or without its network.
func isPlace4(s string) bool {
	p, err := netip.ParsePrefix(s)
	return err == nil && p.Addr().Is4() || isIPv4(s)
}

func isPlace6(s string) bool {
	p, err := netip.ParsePrefix(s)
	return err == nil && isIPv6(p.Addr().String()) || isIPv6(s)
}

func isMAC(s string) bool {
	m, err := net.ParseMAC(s)
	return err == nil && len(m) == 6
}

// isAS reports whether a text is a number, or its two halves with a dot.
func isAS(s string) bool {
	high, low, halves := strings.Cut(s, ".")
	bits := 32
	if halves {
		bits = 16
	} else {
		low = "0"
	}
	_, err1 := strconv.ParseUint(high, 10, bits)
	_, err2 := strconv.ParseUint(low, 10, bits)
	return err1 == nil && err2 == nil
}

// podCIDRs are those of a node, as blocks that it has.
func podCIDRs(n *corev1.Node) (list []said) {
	for _, text := range n.Spec.PodCIDRs {
		p, err := netip.ParsePrefix(text)
		if err != nil {
			continue // the API server has none such
		}
		name := p.Masked().String()
		block, _ := json.Marshal(map[string]string{"cidr": name, "affinity": "host:" + n.Name})
		list = append(list, said{key: resource.Key{Kind: resource.KindBlock, Name: name}.Path(""), value: block},
			said{key: resource.Key{Kind: resource.KindAffinity, Name: name}.Path(n.Name), value: []byte(`{"state":"confirmed"}`)})
	}
	return list
}
