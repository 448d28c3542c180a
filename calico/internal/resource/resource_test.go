package resource

import (
	"fmt"
	"net/netip"
	"reflect"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/bgp"
	"github.com/vxswitch/vxswitch/calico/internal/selector"
	"github.com/vxswitch/vxswitch/frame"
)

func TestKeys(t *testing.T) {
	for text, want := range map[string]Key{
		"/calico/resources/v3/projectcalico.org/ippools/default-ipv4-ippool":            {KindPool, "default-ipv4-ippool"},
		"/calico/resources/v3/projectcalico.org/nodes/a.example.org":                    {KindNode, "a.example.org"},
		"/calico/resources/v3/projectcalico.org/bgpconfigurations/node.a":               {KindConfiguration, "node.a"},
		"/calico/resources/v3/projectcalico.org/bgppeers/tor":                           {KindPeer, "tor"},
		"/calico/resources/v3/projectcalico.org/bgpfilters/f":                           {KindFilter, "f"},
		"/calico/ipam/v2/assignment/ipv4/block/10.65.1.0-26":                            {KindBlock, "10.65.1.0/26"},
		"/calico/ipam/v2/assignment/ipv6/block/fd65::1:0-122":                           {KindBlock, "fd65::1:0/122"},
		"/calico/ipam/v2/host/a.example.org/ipv4/block/10.65.1.0-26":                    {KindAffinity, "10.65.1.0/26"},
		"/calico/ipam/v2/host/a-b/ipv6/block/fd65::-122":                                {KindAffinity, "fd65::/122"},
		"/calico/resources/v3/projectcalico.org/tiers/default":                          {KindTier, "default"},
		"/calico/resources/v3/projectcalico.org/globalnetworkpolicies/g":                {KindGlobalPolicy, "g"},
		"/calico/resources/v3/projectcalico.org/networkpolicies/ns/p":                   {KindPolicy, "ns/p"},
		"/calico/resources/v3/projectcalico.org/profiles/kns.ns":                        {KindProfile, "kns.ns"},
		"/calico/resources/v3/projectcalico.org/globalnetworksets/g":                    {KindGlobalSet, "g"},
		"/calico/resources/v3/projectcalico.org/networksets/ns/s":                       {KindSet, "ns/s"},
		"/calico/resources/v3/projectcalico.org/hostendpoints/h":                        {KindHost, "h"},
		"/calico/resources/v3/projectcalico.org/stagednetworkpolicies/ns/p":             {KindStagedPolicy, "ns/p"},
		"/calico/resources/v3/projectcalico.org/workloadendpoints/ns/a--b-k8s-pod-eth0": {KindWorkload, "ns/a--b-k8s-pod-eth0"},
	} {
		if k, err := ParseKey(text); err != nil || k != want {
			t.Errorf("%s: %v, %v, want %v", text, k, err, want)
		}
	}
	for _, text := range []string{
		"", "/calico/resources/v3/projectcalico.org/ippools/", "/calico/resources/v3/projectcalico.org/ippools/a/b", "/calico/resources/v3/projectcalico.org/ippools/" + strings.Repeat("x", 400),
		"/calico/resources/v3/projectcalico.org/secrets/p", "/calico/resources/v3/projectcalico.org/networkpolicies/p", "/calico/resources/v3/projectcalico.org/networkpolicies//p",
		"/calico/resources/v3/projectcalico.org/networkpolicies/a'b/p", "/calico/resources/v3/projectcalico.org/networksets/a/b/c", "/calico/resources/v3/projectcalico.org/tiers/a/b",
		"/calico/ipam/v2/assignment/ipv4/block/10.65.1.1-26", "/calico/ipam/v2/assignment/ipv6/block/10.65.1.0-26",
		"/calico/ipam/v2/assignment/ipv4/block/10.65.1.0", "/calico/ipam/v2/assignment/ipv4/10.65.1.0-26", "/calico/ipam/v2/assignment/ipv6/block/::ffff:10.65.1.0-122",
		"/calico/ipam/v2/host/a", "/calico/ipam/v2/handle/x",
	} {
		if k, err := ParseKey(text); err == nil {
			t.Errorf("%s: %v, want an error", text, k)
		} else if len(err.Error()) > 400 {
			t.Errorf("%.30s: an error of %d bytes", text, len(err.Error()))
		}
	}
}

func TestPrefixes(t *testing.T) {
	list := fmt.Sprint(Prefixes("a"))
	for _, want := range []string{"projectcalico.org/ippools/ ", "projectcalico.org/bgpfilters/ ", "/calico/ipam/v2/assignment/ ", "/calico/ipam/v2/host/a/ ", "projectcalico.org/felixconfigurations/]"} {
		if !strings.Contains(list, want) {
			t.Errorf("%s: no %s", list, want)
		}
	}
}

func ip(s string) netip.Addr        { return netip.MustParseAddr(s) }
func network(s string) netip.Prefix { return netip.MustParsePrefix(s) }

// Values as calicoctl and calico/node of v3.33 write them.
func TestValues(t *testing.T) {
	for _, c := range []struct {
		key   Key
		value string
		want  any
	}{
		{Key{KindPool, "p"}, `{"kind":"IPPool","apiVersion":"projectcalico.org/v3","metadata":{"name":"p","uid":"5e9d","creationTimestamp":"2026-01-01T00:00:00Z"},"spec":{"cidr":"192.168.0.0/16","vxlanMode":"Never","ipipMode":"CrossSubnet","natOutgoing":true,"blockSize":26,"nodeSelector":"all()","allowedUses":["Workload","Tunnel"],"assignmentMode":"Automatic"}}`,
			&Pool{Prefix: network("192.168.0.0/16"), Encapsulation: bgp.IPIP, Mode: bgp.CrossSubnet, NAT: true}},
		{Key{KindPool, "p"}, `{"spec":{"cidr":"fd00::/48","vxlanMode":"Always","disableBGPExport":true,"allowedUses":["LoadBalancer"]}}`,
			&Pool{Prefix: network("fd00::/48"), Encapsulation: bgp.VXLAN, NoExport: true, Services: true}},
		{Key{KindNode, "n"}, `{"kind":"Node","metadata":{"name":"n","labels":{"rack":"a"}},"spec":{"bgp":{"asNumber":65001,"ipv4Address":"192.0.2.1/24","ipv6Address":"2001:db8::1","ipv4IPIPTunnelAddr":"192.168.0.1","routeReflectorClusterID":"1.0.0.1"},"ipv4VXLANTunnelAddr":"192.168.0.2","vxlanTunnelMACAddr":"66:00:00:00:00:01","addresses":[{"address":"203.0.113.1","type":"InternalIP"}],"wireguard":{}},"status":{}}`,
			&Node{Labels: selector.Labels{"rack": "a"}, AS: 65001, Cluster: ip("1.0.0.1"),
				IPv4: Ends{Network: network("192.0.2.1/24"), BGP: true, IPIP: ip("192.168.0.1"), VXLAN: ip("192.168.0.2"), MAC: frame.MAC{0x66, 5: 1}},
				IPv6: Ends{Network: network("2001:db8::1/128"), BGP: true}}},
		{Key{KindNode, "n"}, `{"spec":{"addresses":[{"address":"junk","type":"InternalIP"},{"address":"198.51.100.1","type":"ExternalIP"},{"address":"203.0.113.1/24","type":"InternalIP"},{"address":"2001:db8::1","type":"ExternalIP"},{"address":"n.example.org","type":"Hostname"}]}}`,
			&Node{IPv4: Ends{Network: network("203.0.113.1/24")}, IPv6: Ends{Network: network("2001:db8::1/128")}}},
		{Key{KindConfiguration, "default"}, `{"spec":{}}`, &Configuration{Direct: true}},
		{Key{KindConfiguration, "default"}, `{"spec":{"logSeverityScreen":"Info","nodeToNodeMeshEnabled":false,"asNumber":"1.10","listenPort":178,"nodeMeshPassword":{"secretKeyRef":{"name":"s","key":"k"}},"programClusterRoutes":"EnabledIPIPOnly","serviceClusterIPs":[{"cidr":"10.96.0.0/12"}]}}`,
			&Configuration{NoMesh: true, AS: 1<<16 | 10, Port: 178, Password: true, IPIP: true, NotCarried: []string{"spec.serviceClusterIPs"}}},
		{Key{KindConfiguration, "default"}, `{"spec":{"asNumber":64513,"nodeToNodeMeshEnabled":false,"programClusterRoutes":"EnabledLater"}}`,
			&Configuration{AS: 64513, NoMesh: true, Direct: true, NotCarried: []string{`spec.programClusterRoutes "EnabledLater"`}}},
		{Key{KindPeer, "p"}, `{"spec":{"peerIP":"[2001:db8::9]:1790","asNumber":65002,"node":"n","numAllowedLocalASNumbers":2,"sourceAddress":"None","maxRestartTime":"60s","keepaliveTime":"20s","reversePeering":"Manual","filters":["f"]}}`,
			&Peer{Node: "n", HasSelection: true, IP: ip("2001:db8::9"), Port: 1790, AS: 65002, OwnAS: 2, NoSource: true, Manual: true, Filters: []string{"f"}, NotCarried: []string{"spec.keepaliveTime"}}},
		{Key{KindPeer, "p"}, `{"spec":{"localWorkloadSelector":"all()","asNumber":1,"password":{"secretKeyRef":{}},"ttlSecurity":1,"localASNumber":5}}`,
			&Peer{AS: 1, Workloads: true, Password: true, TTLSecurity: true, LocalAS: 5}},
		{Key{KindFilter, "f"}, `{"spec":{"importV4":[{"cidr":"10.0.0.0/8","matchOperator":"In","prefixLength":{"min":24,"max":30},"action":"Accept"},{"action":"Reject"}],"exportV6":[{"cidr":"fd00::/8","matchOperator":"NotEqual","source":"RemotePeers","interface":"*.calico","peerType":"eBGP","communities":{"values":["1:2"]},"priority":100,"asPathPrefix":[1,"1.2"],"action":"Reject"},{"operations":[{"addCommunity":{"value":"1:2:3"}},{"prependASPath":{"prefix":[7,"8"]}},{"setPriority":{"value":9}}],"action":"Accept"}]}}`,
			&Filter{bgp.Filter{ImportV4: []bgp.FilterRule{{Prefix: network("10.0.0.0/8"), Min: 24, Max: 30}, {Action: bgp.Reject}},
				ExportV6: []bgp.FilterRule{{Prefix: network("fd00::/8"), Operator: bgp.NotEqual, Source: bgp.RemotePeers, PeerType: bgp.External, Community: "1:2", ASPathPrefix: []uint32{1, 1<<16 | 2}, Priority: 100, Action: bgp.Reject},
					{Operations: []bgp.Operation{{AddCommunity: "1:2:3"}, {PrependASPath: []uint32{7, 8}}, {SetPriority: 9}}}}}, "interface"}},
		{Key{KindFilter, "f"}, `{"spec":{"importV4":[{"cidr":"10.0.0.0/8","matchOperator":"In","prefixLength":{"max":24},"action":"Accept"},{"cidr":"10.0.0.0/8","matchOperator":"NotIn","prefixLength":{"min":0},"action":"Reject"}]}}`,
			&Filter{bgp.Filter{ImportV4: []bgp.FilterRule{{Prefix: network("10.0.0.0/8"), Max: 24}, {Prefix: network("10.0.0.0/8"), Operator: bgp.NotIn, Max: 32, Action: bgp.Reject}}}, ""}},
		{Key{KindFilter, "f"}, `{"spec":{"importV4":[{"cidr":"10.0.0.0/8","matchOperator":"In","prefixLength":{"min":1,"max":24},"action":"Accept"},{"cidr":"10.0.0.0/8","matchOperator":"In","prefixLength":{"max":7},"action":"Reject"}]}}`,
			&Filter{bgp.Filter{ImportV4: []bgp.FilterRule{{Prefix: network("10.0.0.0/8"), Max: 24}, {Prefix: network("10.0.0.0/8"), Max: 7, Action: bgp.Reject}}}, "prefixLength"}},
		{Key{KindBlock, "10.0.0.0/30"}, `{"cidr":"10.0.0.0/30","affinity":"host:n","affinity_claim_time":null,"allocations":[0,1,null,2],"unallocated":[2],"attributes":[{"handle_id":"h","secondary":{"node":"n"}},{"secondary":{"node":"m"}},{}],"sequenceNumber":4,"sequenceNumberForAllocation":{"0":1},"deleted":false}`,
			&Block{Prefix: network("10.0.0.0/30"), Node: "n", Borrowed: []Address{{ip("10.0.0.1"), "m"}}}},
		{Key{KindBlock, "10.0.0.0/30"}, `{"cidr":"10.0.0.0/30","affinity":"virtual:load-balancer","allocations":[7,-1]}`, &Block{Prefix: network("10.0.0.0/30")}},
		{Key{KindAffinity, "10.0.0.0/30"}, `{"state":"confirmed","deleted":false}`, &Affinity{"confirmed"}},
		{Key{KindAffinity, "10.0.0.0/30"}, ``, &Affinity{}},
	} {
		got, err := Parse(c.key, []byte(c.value))
		if err != nil {
			t.Errorf("%v: %v", c.key, err)
		} else if !reflect.DeepEqual(got, c.want) {
			t.Errorf("%v: %+v, want %+v", c.key, got, c.want)
		}
	}
	got, err := Parse(Key{KindPeer, "p"}, []byte(`{"spec":{"nodeSelector":"has(a)","peerSelector":"b == 'c'"}}`))
	if p, _ := got.(*Peer); err != nil || p.Nodes.String() != "has(a)" || p.Peers.String() != `b == "c"` || !p.HasSelection {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestWrongValues(t *testing.T) {
	for _, c := range []struct {
		kind        Kind
		value, want string
	}{
		{KindPool, `{`, "unexpected end of JSON"},
		{KindPool, `null`, "spec.cidr"},
		{KindPool, `[]`, "an array: must be an object"},
		{KindPool, `{"spec":{"cidr":"10.0.0.1/8"}}`, `spec.cidr "10.0.0.1/8": must be a prefix`},
		{KindPool, `{"spec":{"cidr":"::ffff:10.0.0.0/104"}}`, "spec.cidr"},
		{KindPool, `{"spec":{"cidr":"0.0.0.0/0"}}`, "must not be all there is"},
		{KindPool, `{"spec":{"cidr":"224.0.0.0/8"}}`, "not routed"},
		{KindPool, `{"spec":{"cidr":"10.0.0.0/8","ipipMode":"always"}}`, `spec.ipipMode "always": must be one of Never, Always, CrossSubnet`},
		{KindPool, `{"spec":{"cidr":"10.0.0.0/8","ipipMode":"Always","vxlanMode":"Always"}}`, "must be Never with vxlanMode Always"},
		{KindPool, `{"spec":{"cidr":"fd00::/8","ipipMode":"Always"}}`, "must be Never in an IPv6 pool"},
		{KindPool, strings.Repeat(" ", 1<<17), "must be at most 65536"},
		{KindNode, `{"spec":{"bgp":{"ipv4Address":"2001:db8::1/64"}}}`, "spec.bgp.ipv4Address"},
		{KindNode, `{"spec":{"bgp":{"ipv4Address":"127.0.0.1/8"}}}`, "must be the address of one host"},
		{KindNode, `{"spec":{"bgp":{"ipv6Address":"fe80::1%eth0/64"}}}`, "spec.bgp.ipv6Address"},
		{KindNode, `{"spec":{"bgp":{"asNumber":4294967296}}}`, `spec.bgp.asNumber "4294967296": must be 1 to 4294967295`},
		{KindNode, `{"spec":{"bgp":{"routeReflectorClusterID":"x"}}}`, "spec.bgp.routeReflectorClusterID"},
		{KindNode, `{"spec":{"vxlanTunnelMACAddr":"01:00:00:00:00:00"}}`, "must be the MAC of one host"},
		{KindNode, `{"spec":{"ipv4VXLANTunnelAddr":"fd00::1"}}`, "must be an IPv4 address"},
		{KindConfiguration, `{"spec":{"listenPort":70000}}`, "spec.listenPort: a number 70000: must be a whole number, 0 to 65535"},
		{KindNode, `{"spec":{"bgp":{"asNumber":1.10}}}`, `spec.bgp.asNumber "1.10": must be 1 to 4294967295`},
		{KindConfiguration, `{"spec":{"asNumber":"1.x"}}`, `spec.asNumber "1.x": must be two numbers up to 65535`},
		{KindPeer, `{"spec":{"peerIP":"192.0.2.1","asNumber":"abc"}}`, `spec.asNumber "abc": must be 1 to 4294967295`},
		{KindPeer, `{"spec":{"peerIP":"192.0.2.1","asNumber":1,"localASNumber":{}}}`, `spec.localASNumber "{}": must be`},
		{KindPeer, `{"spec":{}}`, "spec.peerIP"},
		{KindPeer, `{"spec":{"peerIP":"192.0.2.1:0"}}`, "the port must be 1 to 65535"},
		{KindPeer, `{"spec":{"peerIP":"ff02::1"}}`, "must be the address of a host"},
		{KindPeer, `{"spec":{"peerIP":"192.0.2.1","nodeSelector":"has("}}`, "spec.nodeSelector: selector"},
		{KindPeer, `{"spec":{"peerSelector":"a = b"}}`, "spec.peerSelector: selector"},
		{KindPeer, `{"spec":{"peerIP":"192.0.2.1","numAllowedLocalASNumbers":11}}`, "must be 0 to 10"},
		{KindPeer, `{"spec":{"peerIP":"192.0.2.1","sourceAddress":"Auto","reversePeering":"Auto"}}`, "spec.sourceAddress"},
		{KindPeer, `{"spec":{"peerIP":"192.0.2.1","nextHopMode":"None"}}`, "spec.nextHopMode"},
		{KindFilter, `{"spec":{"importV4":[{"action":"accept"}]}}`, `spec.importV4[0].action "accept": must be one of Accept, Reject`},
		{KindFilter, `{"spec":{"importV4":[{"action":"Accept"},{"action":"Accept","cidr":"10.0.0.0/8"}]}}`, "spec.importV4[1].matchOperator"},
		{KindFilter, `{"spec":{"exportV4":[{"action":"Accept","matchOperator":"In"}]}}`, "must be there with cidr"},
		{KindFilter, `{"spec":{"exportV6":[{"action":"Accept","matchOperator":"In","cidr":"10.0.0.0/8"}]}}`, "must be an IPv6 prefix"},
		{KindFilter, `{"spec":{"exportV4":[{"action":"Accept","matchOperator":"Within","cidr":"10.0.0.0/8"}]}}`, "must be one of Equal, NotEqual, In, NotIn"},
		{KindFilter, `{"spec":{"exportV4":[{"action":"Accept","matchOperator":"In","cidr":"10.0.0.0/8","prefixLength":{"min":28,"max":24}}]}}`, "28 to 24"},
		{KindFilter, `{"spec":{"exportV4":[{"action":"Accept","matchOperator":"In","cidr":"10.0.0.0/8","prefixLength":{"max":33}}]}}`, "must be in 0 to 32"},
		{KindFilter, `{"spec":{"exportV4":[{"action":"Accept","prefixLength":{"max":30}}]}}`, "must be there only with cidr"},
		{KindFilter, `{"spec":{"exportV4":[{"action":"Accept","source":"All"}]}}`, "source"},
		{KindFilter, `{"spec":{"exportV4":[{"action":"Accept","peerType":"all"}]}}`, "peerType"},
		{KindFilter, `{"spec":{"exportV4":[{"action":"Accept","communities":{"values":["1:1","1:2"]}}]}}`, "must have one value, not 2"},
		{KindFilter, `{"spec":{"exportV4":[{"action":"Accept","operations":[{"setPriority":{"value":1}},{}]}]}}`, "spec.exportV4[0].operations[1].addCommunity, prependASPath, setPriority \"\": one is required, not 0"},
		{KindFilter, `{"spec":{"importV6":[{"action":"Accept","priority":0}]}}`, "spec.importV6[0].priority"},
		{KindFilter, `{"spec":{"exportV4":[{"action":"Accept","operations":[{"setPriority":{"value":2147483647}}]}]}}`, "must be 1 to 2147483646"},
		{KindBlock, `{"cidr":"10.0.0.0/26"}`, "must be that of the key"},
		{KindBlock, `{"cidr":"10.0.0.0/30","allocations":[0,0,0,0,0]}`, "must be at most 4"},
	} {
		k := Key{c.kind, "x"}
		if c.kind == KindBlock {
			k.Name = "10.0.0.0/30"
		}
		wantWrong(t, k, c.value, c.want)
	}
	if _, err := Parse(Key{KindBlock, "10.0.0.0/16"}, []byte(`{"cidr":"10.0.0.0/16"}`)); err == nil {
		t.Error("a block of 65536 addresses is read")
	}
}

// A key has the path that it is read from.
func TestPath(t *testing.T) {
	for _, path := range []string{
		"/calico/resources/v3/projectcalico.org/ippools/default", "/calico/resources/v3/projectcalico.org/networkpolicies/default/web",
		"/calico/ipam/v2/assignment/ipv4/block/10.65.1.0-26", "/calico/ipam/v2/assignment/ipv6/block/fd00::-122", "/calico/ipam/v2/host/a/ipv4/block/10.65.1.0-26",
	} {
		k, err := ParseKey(path)
		if got := k.Path("a"); err != nil || got != path {
			t.Errorf("%s: %v, %s", path, err, got)
		}
	}
}
