package resource

import (
	"net/netip"
	"testing"
)

// Any key with any value: what is read is a resource that others can rely on.
func FuzzResource(f *testing.F) {
	for _, s := range [][2]string{
		{resources + "ippools/p", `{"spec":{"cidr":"10.0.0.0/8","ipipMode":"Always"}}`},
		{resources + "nodes/n", `{"spec":{"bgp":{"ipv4Address":"192.0.2.1/24","asNumber":"1.2"},"vxlanTunnelMACAddr":"02:00:00:00:00:01","addresses":[{"address":"fe80::1%eth0/64","type":"InternalIP"}]}}`},
		{resources + "bgpconfigurations/default", `{"spec":{"asNumber":1,"programClusterRoutes":"Enabled"}}`},
		{resources + "bgppeers/b", `{"spec":{"peerIP":"[2001:db8::1]:179","nodeSelector":"has(a)","filters":["f"]}}`},
		{resources + "bgpfilters/f", `{"spec":{"importV4":[{"cidr":"10.0.0.0/8","matchOperator":"In","prefixLength":{"min":9},"action":"Accept"}]}}`},
		{ipam + "assignment/ipv4/block/10.0.0.0-30", `{"cidr":"10.0.0.0/30","affinity":"host:n","allocations":[0,1,null,2],"attributes":[{"secondary":{"node":"m"}},{}]}`},
		{ipam + "host/n/ipv6/block/fd00::-122", `{"state":"pending"}`},
	} {
		f.Add(s[0], []byte(s[1]))
	}
	f.Fuzz(func(t *testing.T, key string, value []byte) {
		k, err := ParseKey(key)
		if err != nil {
			return
		}
		v, err := Parse(k, value)
		if err != nil {
			return
		}
		host := func(p netip.Prefix, is4 bool) {
			if a := p.Addr(); p.IsValid() && (a.Is4() != is4 || a.IsLoopback() || a.IsMulticast() || a.IsUnspecified() || a.Zone() != "") {
				t.Errorf("node at %v", p)
			}
		}
		switch v := v.(type) {
		case *Pool:
			if v.Prefix != v.Prefix.Masked() || v.Prefix.Bits() == 0 || v.IPIP != Never && v.VXLAN != Never {
				t.Errorf("%+v", v)
			}
		case *Node:
			host(v.IPv4.Network, true)
			host(v.IPv6.Network, false)
			if m := v.MAC(k.Name, true); m.IsZero() || m.IsGroup() {
				t.Errorf("MAC %v", m)
			}
		case *Peer:
			if v.Peers == nil && !v.Workloads {
				host(netip.PrefixFrom(v.IP, 0), v.IP.Is4())
			}
		case *Filter:
			for _, r := range append(v.Import, v.Export...) {
				if r.Min > r.Max || r.Prefix.IsValid() != (r.Operator != "") || r.Prefix.IsValid() && r.Prefix.Addr().Is4() == r.IPv6 {
					t.Errorf("%+v", r)
				}
			}
		case *Block:
			if v.Prefix.String() != k.Name {
				t.Errorf("%v has %v", k, v.Prefix)
			}
			for _, a := range v.Borrowed {
				if !v.Prefix.Contains(a.IP) || a.Node == v.Node || a.Node == "" {
					t.Errorf("%v: %v", k, a)
				}
			}
		}
	})
}
