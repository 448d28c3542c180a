package kube

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"

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

// node is a Node: what Calico writes there is in annotations. A wrong one leaves the node out, and is named; Calico overlooks it.
func node(c *Config, x runtime.Object) []said {
	n := x.(*corev1.Node)
	m := metadata{Name: n.Name}
	labels, err := nodeLabels(n)
	if err != nil {
		return []said{orWrong(says(resource.KindNode, m, nil), err)}
	}
	m.Labels = labels
	of := func(name string) string { return n.Annotations[annotations+name] }
	bgp := nodeBGP{
		ASNumber: of("ASNumber"), IPv4Address: of("IPv4Address"), IPv6Address: of("IPv6Address"), IPv4IPIPTunnelAddr: of("IPv4IPIPTunnelAddr"),
		RouteReflectorClusterID: of("RouteReflectorClusterID"),
	}
	var blocks []said
	if c.UsePodCIDR && n.Spec.PodCIDR != "" {
		if bgp.IPv4IPIPTunnelAddr, err = firstHost(n.Spec.PodCIDR); err != nil {
			return []said{orWrong(says(resource.KindNode, m, nil), err)}
		}
		blocks = podCIDRs(n)
	}
	s := nodeSpec{
		IPv4VXLANTunnelAddr: of("IPv4VXLANTunnelAddr"), IPv6VXLANTunnelAddr: of("IPv6VXLANTunnelAddr"),
		VXLANTunnelMACAddr: of("VXLANTunnelMACAddr"), VXLANTunnelMACAddrV6: of("VXLANTunnelMACAddrV6"),
	}
	if bgp != (nodeBGP{}) {
		s.BGP = &bgp
	}
	for _, a := range n.Status.Addresses {
		if a.Type == corev1.NodeInternalIP || a.Type == corev1.NodeExternalIP {
			s.Addresses = append(s.Addresses, nodeAddress{a.Address, string(a.Type)})
		}
	}
	return append(blocks, says(resource.KindNode, m, s))
}

// nodeLabels are those of Calico, which are in an annotation, and those of the Node, which count.
func nodeLabels(n *corev1.Node) (map[string]string, error) {
	labels := map[string]string{}
	if text := n.Annotations[annotations+"labels"]; text != "" {
		if err := json.Unmarshal([]byte(text), &labels); err != nil {
			return nil, fmt.Errorf("annotation %slabels: %w", annotations, err)
		}
		if labels == nil { // of null
			labels = map[string]string{}
		}
	}
	maps.Copy(labels, n.Labels)
	return labels, nil
}

// firstHost is the address of tunnels of a node whose pods have addresses of its pod CIDR, "" for one of IPv6.
func firstHost(cidr string) (string, error) {
	p, err := netip.ParsePrefix(cidr)
	if err != nil {
		return "", fmt.Errorf("spec.podCIDR %.100q: must be a prefix", cidr)
	}
	if !p.Addr().Is4() {
		return "", nil
	}
	return p.Masked().Addr().Next().String(), nil
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
