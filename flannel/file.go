package flannel

import (
	"fmt"
	"net/netip"
	"strings"
)

// A SubnetFile is what CNI plugins read of a node, in /run/flannel/subnet.env: lines that a shell can read. The subnets are written
// with their first usable address, which is the pods' gateway.
//
//	FLANNEL_NETWORK=10.230.0.0/16
//	FLANNEL_SUBNET=10.230.33.1/24
//	FLANNEL_IPV6_NETWORK=fd00:230::/48
//	FLANNEL_IPV6_SUBNET=fd00:230:0:33::1/64
//	FLANNEL_MTU=1450
//	FLANNEL_IPMASQ=true
type SubnetFile struct {
	Network Subnet // the networks
	Subnet  Subnet // the node's part of them
	MTU     int    // of pods
	IPMasq  bool   // somebody masquerades what leaves the network, and the CNI plugin must not
}

// Format returns the file as flanneld writes it.
func (f *SubnetFile) Format() []byte {
	var b []byte
	for _, x := range []struct {
		name            string
		network, subnet netip.Prefix
	}{{"FLANNEL_", f.Network.IPv4, f.Subnet.IPv4}, {"FLANNEL_IPV6_", f.Network.IPv6, f.Subnet.IPv6}} {
		if x.subnet.IsValid() {
			b = fmt.Appendf(b, "%[1]sNETWORK=%[2]v\n%[1]sSUBNET=%[3]v\n", x.name, x.network, netip.PrefixFrom(x.subnet.Addr().Next(), x.subnet.Bits()))
		}
	}
	return fmt.Appendf(b, "FLANNEL_MTU=%d\nFLANNEL_IPMASQ=%v\n", f.MTU, f.IPMasq)
}

// PreviousSubnet returns the subnet in a file that [SubnetFile.Format] or flanneld has written, for PlaneConfig.Previous. A family whose
// line is not one prefix of the family is left out.
func PreviousSubnet(file []byte) (s Subnet) {
	for line := range strings.Lines(string(file)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		p, err := netip.ParsePrefix(strings.Trim(value, `"'`))
		if err != nil {
			continue
		}
		switch p = p.Masked(); name {
		case "FLANNEL_SUBNET":
			if ipv4.is(p.Addr()) {
				s.IPv4 = p
			}
		case "FLANNEL_IPV6_SUBNET":
			if ipv6.is(p.Addr()) {
				s.IPv6 = p
			}
		}
	}
	return s
}
