package flannel

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"
)

// A NodeLease is a lease as a node of Kubernetes has it: its pod CIDRs are the subnet, and its annotations say the rest. The
// names are those of annotations behind their prefix, which is flannel.alpha.coreos.com/ by default.
//
//	kube-subnet-manager: "true"
//	backend-type: vxlan
//	backend-data: '{"VNI":1,"VtepMAC":"9e:e4:4c:09:b4:8b"}'
//	public-ip: 10.9.0.1
type NodeLease struct {
	PodCIDRs             string // one, or one of each family with a comma between them; "" = none yet
	Type                 string // backend-type; "" is udp
	PublicIP, PublicIPv6 string // public-ip, public-ipv6; "" = none
	Data, DataV6         string // backend-data, backend-v6-data; "" = none
}

// Node returns what a node writes, byte for byte as flannel does. There are no pod CIDRs in it: others assign them.
func (a *Attrs) Node() (n NodeLease) {
	if a.Type != "udp" {
		n.Type = a.Type
	}
	for _, x := range []struct {
		e        *End
		ip, data *string
	}{{&a.IPv4, &n.PublicIP, &n.Data}, {&a.IPv6, &n.PublicIPv6, &n.DataV6}} {
		if x.e.PublicIP.IsValid() {
			b, _ := json.Marshal(a.data(x.e))
			*x.ip, *x.data = x.e.PublicIP.String(), string(b)
		}
	}
	if a.Type != "vxlan" && n.PublicIP == "" {
		n.PublicIP, n.Data = netip.IPv4Unspecified().String(), "null"
	}
	return n
}

// Subnet returns the pod CIDRs. The error is a [*Refusal], with [NoSubnet] if there are none.
func (n *NodeLease) Subnet(name string) (s Subnet, err error) {
	if n.PodCIDRs == "" {
		return s, refusal(name, NoSubnet, "the node has no pod CIDR yet: that is what kube-controller-manager assigns with --allocate-node-cidrs")
	}
	for c := range strings.SplitSeq(n.PodCIDRs, ",") {
		p, err := netip.ParsePrefix(c)
		switch {
		case err != nil || p.Addr().Is4In6():
			return Subnet{}, refusal(name, BadKey, "pod CIDR %q: must be a prefix such as 10.244.1.0/24", c)
		case p.Addr().Is4() && !s.IPv4.IsValid():
			s.IPv4 = p
		case p.Addr().Is6() && !s.IPv6.IsValid():
			s.IPv6 = p
		default:
			return Subnet{}, refusal(name, BadKey, "pod CIDRs %s: must be at most one of each family", n.PodCIDRs)
		}
	}
	if s, err = ParseKey(s.Key()); err != nil {
		err.(*Refusal).Key = name
	}
	return s, err
}

// Lease reads the lease of the node with a name. A family with a pod CIDR and without a public address is left out of it,
// unless it is the only one. The error is a [*Refusal].
func (n *NodeLease) Lease(name string) (l Lease, err error) {
	if l.Subnet, err = n.Subnet(name); err != nil {
		return Lease{}, err
	}
	for _, s := range []string{n.Type, n.PublicIP, n.PublicIPv6, n.Data, n.DataV6} {
		if len(s) > maxValue {
			return Lease{}, refusal(name, Oversize, "an annotation of %d bytes: must be at most %d", len(s), maxValue)
		}
	}
	var ip [2]netip.Addr
	for i, s := range []string{n.PublicIP, n.PublicIPv6} {
		if ip[i], err = netip.ParseAddr(s); s != "" && (err != nil || ip[i].Zone() != "") {
			return Lease{}, refusal(name, BadPublicIP, "%s: %q: must be an address", [...]string{"PublicIP", "PublicIPv6"}[i], s)
		}
	}
	if l.Attrs, err = makeAttrs(name, n.Type, ip[0].Unmap(), ip[1], json.RawMessage(n.Data), json.RawMessage(n.DataV6)); err != nil {
		return Lease{}, err
	}
	switch four, six := l.IPv4.PublicIP.IsValid(), l.IPv6.PublicIP.IsValid(); {
	case !l.Subnet.IPv4.IsValid() || !l.Subnet.IPv6.IsValid() || four == six:
	case four:
		l.Subnet.IPv6 = netip.Prefix{}
	default:
		l.Subnet.IPv4 = netip.Prefix{}
	}
	if r := l.check(); r != nil {
		r.Key = name
		return Lease{}, r
	}
	return l, nil
}

// String returns what the node says, in one line.
func (n *NodeLease) String() string {
	return fmt.Sprintf("pod CIDRs %s, %s, %s, %s, %s, %s", n.PodCIDRs, n.Type, n.PublicIP, n.Data, n.PublicIPv6, n.DataV6)
}
