package resource

import (
	"crypto/sha1"
	"encoding/json"
	"net/netip"

	"github.com/vxswitch/vxswitch/calico/internal/selector"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/hostaddr"
)

// A Node is one of the cluster.
type Node struct {
	Labels  selector.Labels
	AS      uint32     // 0 = that of the cluster
	Cluster netip.Addr // of route reflectors that it is one of; none if it is no reflector
	IPv4    Ends
	IPv6    Ends
}

// Ends are where a node is, in one family.
type Ends struct {
	Network netip.Prefix // its address, and the network that it is on; not valid if it has none
	BGP     bool         // it is the one for BGP, and not only an address of the node
	IPIP    netip.Addr   // of its device for IP-in-IP
	VXLAN   netip.Addr   // of its VXLAN device; none if it has none
	MAC     frame.MAC    // of that device, zero for the one that its name gives
}

// Of returns the ends of one family.
func (n *Node) Of(is4 bool) *Ends {
	if is4 {
		return &n.IPv4
	}
	return &n.IPv6
}

type rawNode struct {
	Metadata rawMetadata `json:"metadata"`
	Spec     struct {
		BGP *struct {
			ASNumber                json.RawMessage `json:"asNumber"`
			IPv4Address             string          `json:"ipv4Address"`
			IPv6Address             string          `json:"ipv6Address"`
			IPv4IPIPTunnelAddr      string          `json:"ipv4IPIPTunnelAddr"`
			RouteReflectorClusterID string          `json:"routeReflectorClusterID"`
		} `json:"bgp"`
		IPv4VXLANTunnelAddr  string `json:"ipv4VXLANTunnelAddr"`
		IPv6VXLANTunnelAddr  string `json:"ipv6VXLANTunnelAddr"`
		VXLANTunnelMACAddr   string `json:"vxlanTunnelMACAddr"`
		VXLANTunnelMACAddrV6 string `json:"vxlanTunnelMACAddrV6"`
		Addresses            []struct {
			Address string `json:"address"`
			Type    string `json:"type"`
		} `json:"addresses"`
	} `json:"spec"`
}

func (r *rawNode) read() (n *Node, err error) {
	n = &Node{Labels: r.Metadata.Labels}
	keep := func(to *netip.Addr, field, text string, is4 bool) {
		if err == nil {
			*to, err = family(field, text, is4)
		}
	}
	s := &r.Spec
	if b := s.BGP; b != nil {
		err = readAS("spec.bgp.asNumber", b.ASNumber, &n.AS)
		keep(&n.Cluster, "spec.bgp.routeReflectorClusterID", b.RouteReflectorClusterID, true)
		keep(&n.IPv4.IPIP, "spec.bgp.ipv4IPIPTunnelAddr", b.IPv4IPIPTunnelAddr, true)
		if err == nil {
			n.IPv4.Network, err = place("spec.bgp.ipv4Address", b.IPv4Address, true)
		}
		if err == nil {
			n.IPv6.Network, err = place("spec.bgp.ipv6Address", b.IPv6Address, false)
		}
		n.IPv4.BGP, n.IPv6.BGP = n.IPv4.Network.IsValid(), n.IPv6.Network.IsValid()
	}
	keep(&n.IPv4.VXLAN, "spec.ipv4VXLANTunnelAddr", s.IPv4VXLANTunnelAddr, true)
	keep(&n.IPv6.VXLAN, "spec.ipv6VXLANTunnelAddr", s.IPv6VXLANTunnelAddr, false)
	if err == nil {
		n.IPv4.MAC, err = mac("spec.vxlanTunnelMACAddr", s.VXLANTunnelMACAddr)
	}
	if err == nil {
		n.IPv6.MAC, err = mac("spec.vxlanTunnelMACAddrV6", s.VXLANTunnelMACAddrV6)
	}
	if err != nil {
		return nil, err
	}
	if !n.IPv4.BGP && !n.IPv6.BGP {
		r.addresses(n)
	}
	return n, nil
}

// addresses takes the addresses of a node that has none for BGP, the internal ones first.
func (r *rawNode) addresses(n *Node) {
	for _, kind := range []string{"InternalIP", "ExternalIP"} {
		for _, a := range r.Spec.Addresses {
			for _, is4 := range []bool{true, false} {
				if e := n.Of(is4); a.Type == kind && !e.Network.IsValid() {
					e.Network, _ = place("spec.addresses", a.Address, is4)
				}
			}
		}
	}
}

// place reads an address with or without its network, none if there is no text.
func place(field, text string, is4 bool) (netip.Prefix, error) {
	if text == "" {
		return netip.Prefix{}, nil
	}
	p, ok := netOrAddr(text)
	if !ok || p.Addr().Is4() != is4 || p.Addr().IsLinkLocalUnicast() {
		return netip.Prefix{}, wrong(field, text, "must be an %s address, such as 192.0.2.11/24 or 2001:db8::11/64", familyName(is4))
	}
	if err := hostaddr.Neighbour(p.Addr()); err != nil {
		return netip.Prefix{}, wrong(field, text, "%v", err)
	}
	return p, nil
}

// MAC returns the one of the VXLAN device of a node. Without one in the datastore it is that of a hash of the node's name.
func (n *Node) MAC(name string, is4 bool) frame.MAC {
	e := n.Of(is4)
	if !e.MAC.IsZero() {
		return e.MAC
	}
	if !is4 {
		name += "-v6"
	}
	sum := sha1.Sum([]byte(name))
	return frame.MAC{'f', sum[0], sum[1], sum[2], sum[3], sum[4]}
}
