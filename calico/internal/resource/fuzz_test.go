package resource

import (
	"net/netip"
	"testing"

	"github.com/vxswitch/vxswitch/bgp"
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
		{resources + "tiers/t", `{"spec":{"order":1e308,"defaultAction":"Pass"}}`},
		{resources + "networkpolicies/n/p", `{"spec":{"tier":"t","order":-1,"selector":"has(a)","serviceAccountSelector":"all()","types":["egress"],"egress":[{"action":"Deny","protocol":6,"source":{"nets":["10.0.0.1"],"notSelector":"b == 'c'"},"destination":{"notPorts":["http","1:2",3]}},{"action":"Allow","domains":[]},7]}}`},
		{resources + "globalnetworkpolicies/p", `{"spec":{"namespaceSelector":"global()","ingress":[{"action":"Pass","protocol":"ICMP","icmp":{"type":3,"code":3},"ipVersion":4},{"action":"Log","destination":{"serviceAccounts":{"names":["a"],"selector":"has(b)"}}}]}}`},
		{resources + "profiles/kns.n", `{"spec":{"labelsToApply":{"pcns.a":"b"},"ingress":[{"action":"Allow"}]}}`},
		{resources + "networksets/n/s", `{"metadata":{"labels":{"a":"b"}},"spec":{"nets":["10.0.0.1/8","fd00::/8","x"]}}`},
		{resources + "workloadendpoints/n/a--b-k8s-p-eth0", `{"metadata":{"labels":{"pcns.a":"b"}},"spec":{"node":"a-b","ipNetworks":["10.0.0.1/32"],"ports":[{"name":"http","protocol":"TCP","port":80},{"protocol":255}]}}`},
		{resources + "felixconfigurations/default", `{"spec":{"allowIPIPPacketsFromWorkloads":true,"workloadSourceSpoofing":"Any","vxlanPort":4789}}`},
		{resources + "hostendpoints/h", `{"spec":{"node":"a","expectedIPs":["10.0.0.1",""],"ports":[{"name":"x","protocol":132,"port":1}]}}`},
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
			if v.Prefix != v.Prefix.Masked() || v.Prefix.Bits() == 0 || v.Encapsulation == bgp.Never && v.Mode != 0 {
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
			for is4, rules := range map[bool][]bgp.FilterRule{true: append(v.ImportV4, v.ExportV4...), false: append(v.ImportV6, v.ExportV6...)} {
				for _, r := range rules {
					if r.Min > r.Max || !r.Prefix.IsValid() && r.Operator != 0 || r.Prefix.IsValid() && r.Prefix.Addr().Is4() != is4 {
						t.Errorf("%+v", r)
					}
				}
			}
		case *Policy:
			if v.Selector == nil || v.Tier == "" {
				t.Errorf("%+v", v)
			}
			sane(t, v.Ingress)
			sane(t, v.Egress)
		case *Endpoint:
			if namespace, _ := k.Split(); namespace != "" && v.Labels[labelNamespace] != namespace {
				t.Errorf("%v has labels %v", k, v.Labels)
			}
			for _, p := range v.Ports {
				if p.Name == "" || !hasPorts(p.Protocol) {
					t.Errorf("port %+v", p)
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

// sane looks at what rules ask together.
func sane(t *testing.T, rules *Rules) {
	if rules == nil {
		return
	}
	for _, r := range *rules {
		known := r.Action == Allow || r.Action == Deny || r.Action == Pass || r.Action == Log
		numbers := len(r.Src.Ports) + len(r.Src.NotPorts) + len(r.Dst.Ports) + len(r.Dst.NotPorts)
		names := len(r.Src.Names) + len(r.Src.NotNames) + len(r.Dst.Names) + len(r.Dst.NotNames)
		if !known && len(r.Wrong) == 0 || numbers > 0 && !hasPorts(r.Protocol) || names > 0 && r.Protocol != 0 && !hasPorts(r.Protocol) ||
			len(r.ICMP)+len(r.NotICMP) > 0 && r.Protocol != protoICMP && r.Protocol != protoICMPv6 {
			t.Errorf("%+v", r)
		}
		for _, list := range [][]netip.Prefix{r.Src.Nets, r.Src.NotNets, r.Dst.Nets, r.Dst.NotNets} {
			for _, p := range list {
				if p != p.Masked() || p.Addr().Is4In6() {
					t.Errorf("network %v", p)
				}
			}
		}
	}
}
