package file

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/flannel/daemon"
	"github.com/vxswitch/vxswitch/internal/lab/check"
)

const sample = `{
	// pods
	"segments": [{"vni": 200, "maxMACs": 100}, {"vni": 300, "gateway": {"vrf": "v", "mac": "02:00:00:00:00:01"}}],
	"vrfs": [{"name": "v"}],
	"flannel": {
		"pods": 200, "etcdEndpoints": ["http://10.0.0.1:2379"],
		"subnetLeaseRenewMargin": "90m",
	},
}`

func TestParse(t *testing.T) {
	c := check.Must(Parse([]byte(sample)))(t)
	if f := c.Flannel; f == nil || f.Mode != daemon.L3 || f.Pods != 200 || f.Endpoints[0] != "http://10.0.0.1:2379" || f.RenewMargin != 90*time.Minute || len(c.Segments) != 2 {
		t.Fatalf("%+v", c)
	}
	text, err := json.Marshal(c)
	check.OK(t, err)
	var again Config
	if err := json.Unmarshal(text, &again); err != nil || !reflect.DeepEqual(&again, c) {
		t.Errorf("%s: %v", text, err)
	}
	if c, err := Parse([]byte(`{"maxMACs": 5}`)); err != nil || c.Flannel != nil || c.MaxMACs != 5 {
		t.Errorf("%+v, %v", c, err)
	}
}

// ways has segments with and without tunnels in two VRFs.
const ways = `{"tunnels": [{"name": "t", "type": "ipip", "local": "10.0.0.1"}, {"name": "u", "local": "10.0.0.1"}], "vrfs": [{"name": "v"}, {"name": "w"}],
"segments": [{"vni": 1, "gateway": {"vrf": "w", "mac": "02:00:00:00:00:01"}}, {"vni": 2, "gateway": {"vrf": "v"}, "tunnels": [{"tunnel": "t"}]}, {"vni": 3, "gateway": {"vrf": "v", "mac": "02:00:00:00:00:01"}, "tunnels": [{"tunnel": "u"}]}],
`

// networks are two of nodes.
const networks = `{"vrfs": [{"name": "v"}], "segments": [{"vni": 1, "gateway": {"vrf": "v", "mac": "02:00:00:00:00:01", "addresses": ["10.1.0.1/24"]}}, {"vni": 2, "gateway": {"vrf": "v", "mac": "02:00:00:00:00:01", "addresses": ["10.2.0.1/24"]}}],
`

// Errors in the node's part and in sections are in one list, with their places; one in a section that refers to the node's part, too.
func TestErrors(t *testing.T) {
	for text, want := range map[string]string{
		"{\"colour\": 1,\n \"flannel\": {\"pods\": 200, \"ttl\": 1, \"generation\": 4}, \"tunnels\": [{\"name\": \"a\"}]}": "1:2: colour: unknown key; allowed are bgp, calico, capture, control, datapath, discovery, events, evpn, flannel, gateway, injected, maxMACs, ovsdb, policies, ports, segments, tooBig, tunnels, vrfs\n" +
			"2:22: flannel.pods: 200: no such segment: add {\"vni\": 200} to segments\n" +
			"2:27: flannel.ttl: unknown key; allowed are dev, direct, etcdCAFile, etcdCertFile, etcdEndpoints, etcdKeyFile, etcdPasswordFile, etcdPrefix, etcdUsername, gateway, gateway6, generation, iface, ifaceCanReach, ifaceRegex, ipMasq, ipMasqFullyRandomDisable, mode, pods, publicIP, publicIPv6, subnetFile, subnetLeaseRenewMargin, vrf\n" +
			"2:51: flannel.generation: 4: must be 1 to 3, or 0 for 3\n" +
			"2:67: tunnels[0].local: an address of this host is required",
		`{"flannel": {}}`:               `1:13: flannel.pods: 0: must be the VNI of a segment for the pods, 1 to 16777215, with mode l3`,
		`{"flannel": {"mode": "host"}}`: `1:13: flannel.pods: 0: must be the VNI of a segment for the pods, 1 to 16777215, with mode l3` + "\n" + `1:22: flannel.mode: "host": must be one of l3, tap`,
		`{"segments": [{"vni": 1}], "flannel": {"pods": 1, "direct": 2}}`: `1:61: flannel.direct: 2: no such segment; it has a gateway in the VRF of the pods, with the public address`,
		`{"flannel": []}`:   `1:13: flannel: a list: must be an object`,
		`{"flannel": null}`: `1:13: flannel: null: leave the key out instead`,
		`{"flannel": {"mode": "tap", "etcdEndpoints": ["http://a:1", "b"]}}`:                                                               `1:46: flannel.etcdEndpoints: "b": must be URLs such as http://127.0.0.1:2379, with a port, and without a user or a path`,
		`{"segments": [{"vni": 1, "gateway": {"vrf": "v", "mac": "02:00:00:00:00:01"}}], "vrfs": [{"name": "v"}], "flannel": {"pods": 1}}`: `1:126: flannel.pods: 1: segments[0] has a gateway: leave it out, the section makes that of the pods`,
		`{"tunnels": [{"name": "t", "local": "10.0.0.1"}, {"name": "g", "type": "gpe", "local": "10.0.0.2"}], "vrfs": [{"name": "v"}, {"name": "w"}], "segments": [
{"vni": 1, "tunnel": "t", "gateway": {"vrf": "v", "mac": "02:00:00:00:00:01"}}, {"vni": 2, "tunnel": "t", "gateway": {"vrf": "w", "mac": "02:00:00:00:00:01"}},
{"vni": 3, "gateway": {"vrf": "v", "mac": "02:00:00:00:00:01"}}, {"vni": 4, "tunnel": "g", "gateway": {"vrf": "v", "mac": "02:00:00:00:00:01"}},
{"vni": 5, "tunnels": [{"tunnel": "t"}], "gateway": {"vrf": "v", "mac": "02:00:00:00:00:01"}}, {"vni": 6, "tunnels": [{"tunnel": "g", "vni": 60}, {"tunnel": "t", "vni": 61}]}],
"evpn": {"as": 1, "routerID": "10.0.0.1"}}`: `4:53: segments[4].gateway: without addresses it is the L3VNI of the VRF "v" for the section evpn, which is that of segments[0] already: one is allowed
4:170: segments[5].tunnels[1].vni: 61: the section evpn requires the VNI of the segment, 6, which is what peers are told`,
		`{"evpn": {}}`: "1:10: evpn.as: 0: must be 1 to 4294967295\n1:10: evpn.routerID: an IPv4 address is required",
		`{"segments": [{"vni": 1}], "evpn": {"as": 1, "routerID": "10.0.0.1", "listen": ["10.0.0.1"], "segments": [{"vni": 2}, {"vni": 1, "import": ["x"]}], "vrfs": [{"name": "v"}],
"peers": [{"address": "10.0.0.2", "as": 1, "holdTime": "2s"}, {"address": "10.0.0.2", "as": 2, "password": "x"}]}}`: "1:81: evpn.listen[0]: \"10.0.0.1\": must be an IP address with a port, such as 10.0.0.1:179\n" +
			"1:115: evpn.segments[0].vni: 2: no such segment\n" +
			"1:141: evpn.segments[1].import[0]: \"x\": must be a route target such as 65000:100 or 192.0.2.1:100, with a number up to 65535 behind an address or an AS above 65535, else up to 4294967295\n" +
			"1:167: evpn.vrfs[0].name: \"v\": no such VRF\n" +
			"2:56: evpn.peers[0].holdTime: 2s: must be full seconds from 3s to 65535s, or 0 for 90s\n" +
			"2:75: evpn.peers[1].address: 10.0.0.2: peers[0] has this address already\n" +
			"2:96: evpn.peers[1].password: unknown key; allowed are address, as, bfd, holdTime, hops, interface, limitResets, local, maxRoutes, maxStale, ownAS, passive, passwordFile, port, retry",
		`{"evpn": {"as": 1, "routerID": "10.0.0.1", "peers": [{"as": 1}]}}`: "1:54: evpn.peers[0].address: the address of the peer is required, or an interface",
		`{"evpn": {"as": 1, "routerID": "10.0.0.1", "peers": [{"interface": "eth0", "as": "external", "bfd": {}}, {"interface": "eth0", "as": "other"}, {"interface": "a/b", "as": 0},
{"interface": "eth1", "address": "fe80::1%eth1", "as": 5000000000, "local": "fe80::2"}, {"address": "fe80::1%eth0", "as": "internal"}]}}`: `1:101: evpn.peers[0].bfd: needs an address in place of an interface
1:120: evpn.peers[1].interface: "eth0": peers[0] has this interface already
1:134: evpn.peers[1].as: "other": must be 1 to 4294967295, "external" or "internal"
1:158: evpn.peers[2].interface: "a/b": must be the name of an interface, such as eth0
1:171: evpn.peers[2].as: 0: must be 1 to 4294967295, "external" or "internal"
2:34: evpn.peers[3].address: fe80::1%eth1: the peer has an interface already
2:56: evpn.peers[3].as: 5000000000: must be 1 to 4294967295, "external" or "internal"
2:77: evpn.peers[3].local: fe80::2: the source address of a peer with an interface is that of the interface
2:101: evpn.peers[4].address: fe80::1%eth0: peers[0] is the neighbour on this interface`,
		`{"bgp": {}}`: "1:9: bgp.as: 0: must be 1 to 4294967295\n1:9: bgp.routerID: an IPv4 address is required\n1:9: bgp.vrf: \"\": must be the name of a VRF",
		`{"tunnels": [{"name": "t", "type": "ipip", "local": "10.0.0.1"}], "vrfs": [{"name": "v"}, {"name": "w"}], "segments": [{"vni": 1, "gateway": {"vrf": "w", "mac": "02:00:00:00:00:01"}}, {"vni": 2, "gateway": {"vrf": "v"}, "tunnels": [{"tunnel": "t"}]}],
"bgp": {"as": 1, "routerID": "10.0.0.1", "vrf": "x", "segment": 9}}`: `2:49: bgp.vrf: "x": no such VRF
2:65: bgp.segment: 9: no such segment`,
		`{"vrfs": [{"name": "v"}], "segments": [{"vni": 1, "gateway": {"vrf": "v", "mac": "02:00:00:00:00:01"}}],
"bgp": {"as": 1, "routerID": "10.0.0.1", "vrf": "v", "routers": ["10.0.0.9"], "links": [{"segment": 1, "addresses": ["10.0.0.1"]}, {"segment": 9}, {"addresses": [], "ipip": 9, "vxlan": 1}],
"peers": [{"address": "10.0.0.2", "as": 1, "segment": 7, "nextHopSelf": true}]}}`: `2:88: bgp.links: each has a segment, addresses and routers of its own: leave out those beside them
2:118: bgp.links[0].addresses[0]: 10.0.0.1: must be an address of a gateway in the VRF "v", or the local of a tunnel: others send packets there
2:144: bgp.links[1].segment: 9: no such segment
2:148: bgp.links[2].segment: required
2:174: bgp.links[2].ipip: 9: no such segment
2:186: bgp.links[2].vxlan: 1: the encapsulation is vxlan: a tunnel of type "vxlan" or "gpe" is required there
3:11: bgp.peers[0].local: an address of the node is required with nextHopSelf
3:55: bgp.peers[0].segment: 7: must be the segment of a link`,
		`{"tunnels": [{"name": "t", "type": "ipip", "local": "10.0.0.1"}], "vrfs": [{"name": "v"}, {"name": "w"}], "segments": [{"vni": 1, "gateway": {"vrf": "w", "mac": "02:00:00:00:00:01"}}, {"vni": 2, "gateway": {"vrf": "v"}, "tunnels": [{"tunnel": "t"}]}],
"bgp": {"as": 1, "routerID": "10.0.0.1", "vrf": "v", "segment": 1, "pools": [{"prefix": "10.1.0.0/16", "encapsulation": "ipip", "segment": 1},
{"prefix": "10.2.0.0/16", "encapsulation": "vxlan", "segment": 2}, {"prefix": "10.3.0.0/16", "encapsulation": "ipip", "segment": 2, "tunnel": "u"}, {"prefix": "10.4.0.0/16", "encapsulation": "gre", "segment": 7},
{"prefix": "10.5.0.0/16", "encapsulation": "ipip", "segment": 2, "tunnel": "t"}, {"prefix": "10.7.0.0/16", "encapsulation": "vxlan", "segment": 2, "tunnel": "t"}, {"prefix": "10.6.0.1/16"}],
"peers": [{"address": "10.0.0.2", "as": 1}, {"address": "10.0.0.3", "as": 0, "holdTime": "2s"}, {"address": "10.0.0.2", "as": 2, "password": "x"}],
"import": [{"prefix": "10.0.0.0/8", "max": 40, "action": "maybe"}], "maxPaths": 65}}`: `2:65: bgp.segment: 1: segments[0] has no gateway in the VRF "v"
2:140: bgp.pools[0].segment: 1: segments[0] has no gateway in the VRF "v"
3:64: bgp.pools[1].segment: 2: the encapsulation is vxlan: a tunnel of type "vxlan" or "gpe" is required there
3:143: bgp.pools[2].tunnel: "u": must be a tunnel of the segment
3:192: bgp.pools[3].encapsulation: "gre": must be one of never, ipip, vxlan
4:145: bgp.pools[5].segment: 2: the encapsulation is vxlan: a tunnel of type "vxlan" or "gpe" is required there
4:175: bgp.pools[6].prefix: 10.6.0.1/16: must be without host bits, as in 10.6.0.0/16
5:75: bgp.peers[1].as: 0: must be 1 to 4294967295
5:90: bgp.peers[1].holdTime: 2s: must be full seconds from 3s to 65535s, or 0 for 90s
5:97: bgp.peers[2]: "10.0.0.2": peers[0] is the same
5:130: bgp.peers[2].password: unknown key; allowed are address, allPaths, as, bfd, client, filters, gracefulRestart, holdTime, hops, local, maxRoutes, nextHopSelf, ownAS, passive, passwordFile, port, prefix, retry, segment
6:44: bgp.import[0].max: 40: must be 8 to 32
6:58: bgp.import[0].action: "maybe": must be one of accept, reject
6:81: bgp.maxPaths: 65: must be 1 to 64, or 0 for 16`,
		`{"calico": {}}`: "1:12: calico.node: \"\": must be the name of a Node resource\n1:12: calico.vrf: \"\": must be the name of a VRF",
		ways + `"calico": {"node": "a/b", "vrf": "x", "segment": 9, "etcd": {"endpoints": ["here"], "username": 1, "timeout": "1ms", "password": "x"}, "colour": 1, "workloads": {"prefixes": [""], "ports": {"p": "x"}}}}`: `3:20: calico.node: "a/b": must be the name of a Node resource
3:34: calico.vrf: "x": no such VRF
3:50: calico.segment: 9: no such segment
3:75: calico.etcd.endpoints: "here": must be URLs such as http://127.0.0.1:2379, with a port, and without a user or a path
3:97: calico.etcd.username: 1: must be a string
3:111: calico.etcd.timeout: 1ms: must be 100ms or longer, or 0 for the default
3:118: calico.etcd.password: unknown key; allowed are caFile, certFile, endpoints, keepAlive, keyFile, passwordFile, timeout, username
3:136: calico.colour: unknown key; allowed are distance, etcd, gracefulRestart, ipip, listen, local, noBGP, node, routerID, routers, segment, vrf, vxlan, workloads
3:176: calico.workloads.prefixes[0]: "": must be the beginning of names of ports
3:196: calico.workloads.ports.p: "x": must be a WorkloadEndpoint of a port, as NAMESPACE/NAME`,
		ways + `"bgp": {"as": 1, "routerID": "10.0.0.1", "vrf": "v"},
"calico": {"node": "a", "vrf": "v", "segment": 1, "ipip": {"segment": 3, "ipv4": "t"}, "vxlan": {"segment": 2}}}`: `4:11: calico.noBGP: false: must be true with the section bgp: a node speaks BGP once
4:48: calico.segment: 1: segments[0] has no gateway in the VRF "v"
4:82: calico.ipip.ipv4: "t": must be a tunnel of the segment
4:109: calico.vxlan.segment: 2: the encapsulation is vxlan: a tunnel of type "vxlan" or "gpe" is required there`,
		ways + `"bgp": {"as": 1, "routerID": "10.0.0.1", "vrf": "v"},
"calico": {"node": "a", "vrf": "v", "noBGP": true, "ipip": {"segment": 2, "ipv4": "t", "ipv6": "u"}, "vxlan": {"segment": 3, "ipv6": "t"}, "routers": ["10.0.0.9"], "local": ["10.0.0.8", "10.0.0.9"], "listen": ["224.0.0.1"], "routerID": "::1", "distance": 256}}`: `4:96: calico.ipip.ipv6: "u": must be a tunnel of the segment
4:134: calico.vxlan.ipv6: "t": must be a tunnel of the segment
4:151: calico.routers: 10.0.0.9: requires segment
4:174: calico.local: [10.0.0.8 10.0.0.9]: is of sessions, and noBGP says that there are none
4:187: calico.local[1]: 10.0.0.9: there is another address of the family; must be at most one
4:210: calico.listen: [224.0.0.1]: is of sessions, and noBGP says that there are none
4:211: calico.listen[0]: 224.0.0.1: must be an address of the host, or 0.0.0.0 or :: for all
4:237: calico.routerID: ::1: must be an IPv4 address other than 0.0.0.0
4:256: calico.distance: 256: must be 0 to 255`,
		ways + `"bgp": {"as": 1, "routerID": "10.0.0.1", "vrf": "v", "segment": 2, "routers": ["10.0.0.9"]}}`:                `3:65: bgp.segment: 2: has a tunnel or a port for IP; must be the segment of a port on the network of the nodes`,
		networks + `"bgp": {"as": 1, "routerID": "10.0.0.1", "vrf": "v", "segment": 1, "routers": ["10.1.0.1", "fd00::1"]}}`: `2:80: bgp.routers[0]: 10.1.0.1: is an address of the interface itself; must be the address of another host`,
		networks + `"bgp": {"as": 1, "routerID": "10.0.0.1", "vrf": "v", "links": [{"segment": 1, "routers": ["10.1.0.255"]}, {"segment": 2, "routers": ["10.1.0.9"]}]},
"calico": {"node": "a", "vrf": "v", "noBGP": true, "segment": 1, "routers": ["10.2.0.9"]}}`: `2:91: bgp.links[0].routers[0]: 10.1.0.255: is the broadcast address of its network; must be the address of one host
2:134: bgp.links[1].routers[0]: 10.1.0.9: is in none of the networks of the interface; must be in one of [10.2.0.1/24]
3:78: calico.routers[0]: 10.2.0.9: is in none of the networks of the interface; must be in one of [10.1.0.1/24]`,
		`{"ovsdb": {}}`: "1:11: ovsdb.target: unix:PATH, tcp:IP[:PORT] or ssl:IP[:PORT] is required, or in its place listen or database\n1:11: ovsdb.name: the name of the Physical_Switch is required\n1:11: ovsdb.tunnel: the name of a tunnel is required",
		`{"ovsdb": {"target": "tcp:10.0.0.9:6640", "name": "us", "tunnel": "vx", "ports": ["a", "a"], "keyFile": "k"}}`:                   "1:67: ovsdb.tunnel: \"vx\": no such tunnel\n1:88: ovsdb.ports[1]: \"a\": ports[0] is this port already\n1:105: ovsdb.keyFile: \"k\": is for ssl and pssl only; managers with ssl need all three files",
		`{"tunnels": [{"name": "vx", "type": "gpe", "local": "10.0.0.1"}], "ovsdb": {"target": "unix:/s", "name": "us", "tunnel": "vx"}}`: "1:122: ovsdb.tunnel: \"vx\": tunnels[0] must have the type vxlan",
		`{"discovery": {"tunnel": "vx", "local": "10.0.0.1", "servers": ["x"], "neighbours": ["10.0.0.1"]}}`: "1:15: discovery.keyFile: \"\": must be the path of a file with keys\n" +
			"1:26: discovery.tunnel: \"vx\": no such tunnel\n" +
			"1:65: discovery.servers[0]: \"x\": must be an IP address such as 10.0.0.1\n" +
			"1:86: discovery.neighbours[0]: 10.0.0.1: is local, the node itself",
		`{"tunnels": [{"name": "vx", "type": "fou", "local": "10.0.0.1", "port": 4797}], "discovery": {"tunnel": "vx", "local": "10.0.0.9", "keyFile": "k"}}`: "1:94: discovery.servers: servers, neighbours or etcd are required, else the node finds nobody\n" +
			"1:94: discovery.port: 4797: is that of tunnels[0] already\n" +
			"1:105: discovery.tunnel: \"vx\": tunnels[0] must carry Ethernet, as those of type vxlan and gpe do\n" +
			"1:120: discovery.local: 10.0.0.9: must be an address of tunnels[0], such as 10.0.0.1",
		`{"tunnels": [{"name": "vx", "local": "10.0.0.1"}], "discovery": {"tunnel": "vx", "local": "10.0.0.1", "keyFile": "k", "etcd": {"endpoints": ["x"], "ttl": "1s"}}}`: "1:141: discovery.etcd.endpoints: \"x\": must be URLs such as http://127.0.0.1:2379, with a port, and without a user or a path\n" +
			"1:155: discovery.etcd.ttl: 1s: must be full seconds from 2s to 1h",
		`{"flannel": {"pods": 1},}}`: `1:26: invalid character '}' after top-level value`,
	} {
		if _, err := Parse([]byte(text)); err == nil || err.Error() != want {
			t.Errorf("%s\n%v\nwant\n%s", text, err, want)
		}
	}
	c, err := Parse([]byte(sample))
	if err != nil || c.Check() != nil {
		t.Fatal(err, c.Check())
	}
	c.Segments = c.Segments[1:]
	if err := c.Check(); err == nil || err.Error() != `flannel.pods: 200: no such segment: add {"vni": 200} to segments` {
		t.Error(err)
	}
}
