package model

import (
	"net/netip"
	"reflect"
	"slices"
	"testing"

	"github.com/vxswitch/vxswitch/bgp"
)

// BGPFilters are filters of the peers whose BGPPeer names them, each once; a peer that cannot have what its filters say is left out.
func TestFilters(t *testing.T) {
	plan := Compile(settings("a"), data{
		"bgpconfigurations/default": `{"asNumber":64512,"nodeToNodeMeshEnabled":false}`,
		"nodes/a":                   `{"bgp":{"ipv4Address":"10.0.0.1/24"}}`,
		"bgpfilters/in": `{"importV4":[{"cidr":"10.65.0.0/16","matchOperator":"In","prefixLength":{"min":24},"action":"Accept"},{"action":"Reject"}],
			"exportV6":[{"cidr":"fd65::/64","matchOperator":"NotEqual","source":"RemotePeers","peerType":"iBGP","action":"Reject"}]}`,
		"bgpfilters/out":   `{"exportV4":[{"communities":{"values":["64512:7"]},"asPathPrefix":[65001],"priority":100,"action":"Accept","operations":[{"addCommunity":{"value":"1:2:3"}},{"setPriority":{"value":5}}]}]}`,
		"bgpfilters/first": `{"importV4":[{"priority":100,"action":"Reject"}]}`,
		"bgpfilters/cards": `{"importV4":[{"interface":"eth0","action":"Reject"}]}`,
		"bgppeers/1":       `{"peerIP":"10.0.0.11","asNumber":64512,"filters":["in","out","in"]}`,
		"bgppeers/2":       `{"peerIP":"10.0.0.12","asNumber":65001,"filters":["in"]}`,
		"bgppeers/3":       `{"peerIP":"10.0.0.13","asNumber":65001,"filters":["first"]}`,
		"bgppeers/4":       `{"peerIP":"10.0.0.14","asNumber":64512,"filters":["cards"]}`,
		"bgppeers/5":       `{"peerIP":"10.0.0.15","asNumber":64512,"filters":["in","none"]}`,
		"bgppeers/6":       `{"peerIP":"10.0.0.16","asNumber":64512,"filters":["first"]}`,
	}.store("a"))
	peers := map[string][]string{}
	for _, p := range plan.BGP.Peers {
		peers[p.Addr.String()] = p.Filters
	}
	if want := map[string][]string{"10.0.0.11": {"in", "out"}, "10.0.0.12": {"in"}, "10.0.0.16": {"first"}}; !reflect.DeepEqual(peers, want) {
		t.Errorf("peers %v, want %v", peers, want)
	}
	want := []bgp.Filter{{
		Name:     "in",
		ImportV4: []bgp.FilterRule{{Prefix: prefix("10.65.0.0/16"), Min: 24, Max: 32}, {Action: bgp.Reject}},
		ExportV6: []bgp.FilterRule{{Prefix: prefix("fd65::/64"), Operator: bgp.NotEqual, Source: bgp.RemotePeers, PeerType: bgp.Internal, Action: bgp.Reject}},
	}, {
		Name: "out",
		ExportV4: []bgp.FilterRule{{Community: "64512:7", ASPathPrefix: []uint32{65001}, Priority: 100,
			Operations: []bgp.Operation{{AddCommunity: "1:2:3"}, {SetPriority: 5}}}},
	}, {
		Name: "first", ImportV4: []bgp.FilterRule{{Priority: 100, Action: bgp.Reject}},
	}}
	if !reflect.DeepEqual(plan.BGP.Filters, want) {
		t.Errorf("filters %+v, want %+v", plan.BGP.Filters, want)
	}
	var problems []string
	for _, p := range plan.Problems {
		problems = append(problems, p.String())
	}
	if want := []string{
		"bgppeers/3: is left out for 10.0.0.13: spec.filters: Peers[0].Filters[0]: \"importV4[0] of first\": priority cannot be had in imports of another AS, whose routes have none",
		"bgppeers/4: is left out: spec.filters: bgpfilters/cards has interface in a way that is not carried",
		"bgppeers/5: is left out: spec.filters: there is no bgpfilters/none that could be read",
	}; !slices.Equal(problems, want) {
		t.Errorf("problems %q", problems)
	}
	if err := plan.BGP.Check(); err != nil {
		t.Error(err)
	}
}

// Peers with addresses of this node, of which package bgp would refuse all settings, are left out and named: of BGPPeers and of the mesh.
// A BGPPeer that makes us the peer of another node is none of these.
func TestOwnAddress(t *testing.T) {
	c := settings("a")
	c.Listen, c.Local = []netip.Addr{netip.MustParseAddr("10.0.0.9")}, []netip.Addr{netip.MustParseAddr("10.0.0.8")}
	plan := Compile(c, data{
		"nodes/a":    `{"bgp":{"ipv4Address":"10.0.0.1/24"}}`,
		"nodes/b":    `{"bgp":{"ipv4Address":"10.0.0.1/24"}}`,
		"nodes/c":    `{"bgp":{"ipv4Address":"10.0.0.2/24"}}`,
		"nodes/d":    `{"bgp":{"ipv4Address":"10.0.0.9/24"}}`,
		"nodes/e":    `{"bgp":{"ipv4Address":"10.0.0.8/24"}}`,
		"bgppeers/1": `{"peerIP":"10.0.0.1","asNumber":64512,"node":"c"}`,
		"bgppeers/2": `{"peerIP":"10.0.0.1","asNumber":64512}`,
		"bgppeers/3": `{"peerIP":"10.0.0.1","asNumber":64512,"node":"a"}`,
		"bgppeers/4": `{"peerIP":"10.0.0.1","asNumber":65001}`,
		"bgppeers/5": `{"peerIP":"10.0.0.9","asNumber":64512}`,
		"bgppeers/6": `{"peerIP":"10.0.0.8","asNumber":64512}`,
		"bgppeers/7": `{"peerSelector":"all()"}`,
	}.store("a"))
	if err := plan.BGP.Check(); err != nil || len(plan.BGP.Peers) != 1 || plan.BGP.Peers[0].Addr != netip.MustParseAddr("10.0.0.2") {
		t.Errorf("%v, peers %+v", err, plan.BGP.Peers)
	}
	var got []string
	for _, p := range plan.Problems {
		got = append(got, p.String())
	}
	if want := []string{
		"nodes/b: 10.0.0.1 is our address",
		"bgppeers/4: is left out: 10.0.0.1 is an address of ours",
		"bgppeers/5: is left out: 10.0.0.9 is an address of ours",
		"bgppeers/6: is left out: 10.0.0.8 is an address of ours",
		"nodes/d: 10.0.0.9 is an address of ours: there is no session",
		"nodes/e: 10.0.0.8 is an address of ours: there is no session",
		"bgppeers/3: is left out: 10.0.0.1 is an address of ours",
	}; !slices.Equal(got, want) {
		t.Errorf("problems %q", got)
	}
}
