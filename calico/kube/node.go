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

// nodeSays is what a Node says: what Calico writes there is in annotations. A wrong one is overlooked, as by Calico, and named.
func nodeSays(c *Config, x runtime.Object) []said {
	n := &annotated{Node: x.(*corev1.Node)}
	m := metadata{Name: n.Name, Labels: n.labels()}
	bgp := new(nodeBGP)
	s := nodeSpec{BGP: bgp}
	for _, a := range []struct {
		name string
		to   *string
	}{
		{"ASNumber", &bgp.ASNumber}, {"IPv4Address", &bgp.IPv4Address}, {"IPv6Address", &bgp.IPv6Address}, {"IPv4IPIPTunnelAddr", &bgp.IPv4IPIPTunnelAddr},
		{"RouteReflectorClusterID", &bgp.RouteReflectorClusterID}, {"IPv4VXLANTunnelAddr", &s.IPv4VXLANTunnelAddr}, {"IPv6VXLANTunnelAddr", &s.IPv6VXLANTunnelAddr},
		{"VXLANTunnelMACAddr", &s.VXLANTunnelMACAddr}, {"VXLANTunnelMACAddrV6", &s.VXLANTunnelMACAddrV6},
	} {
		if *a.to = n.Annotations[annotations+a.name]; *a.to == "" {
			continue
		}
		if _, err := resource.Parse(resource.Key{Kind: resource.KindNode}, says(resource.KindNode, metadata{}, s).value); err != nil {
			n.overlook(annotations+a.name, err)
			*a.to = ""
		}
	}
	if c.UsePodCIDR && n.Spec.PodCIDR != "" {
		bgp.IPv4IPIPTunnelAddr = n.firstHost()
	}
	if *bgp == (nodeBGP{}) {
		s.BGP = nil
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

func (n *annotated) overlook(name string, err error) {
	n.wrong = append(n.wrong, said{key: "nodes/" + n.Name + " " + name, err: fmt.Errorf("%w, and is overlooked", err)})
}

// labels are those of Calico, which are in an annotation, and those of the Node, which count.
func (n *annotated) labels() map[string]string {
	const name = annotations + "labels"
	all := map[string]string{}
	if text := n.Annotations[name]; text != "" {
		var own map[string]string
		if err := json.Unmarshal([]byte(text), &own); err != nil {
			n.overlook(name, fmt.Errorf("%.100q: %w", text, err))
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
		n.overlook("spec.podCIDR", fmt.Errorf("%.100q: must be a prefix", n.Spec.PodCIDR))
	}
	if err != nil || !p.Addr().Is4() {
		return ""
	}
	return p.Addr().Next().String()
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
