package model

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/bgp"
	"github.com/vxswitch/vxswitch/calico/internal/resource"
	"github.com/vxswitch/vxswitch/internal/lab/check"
)

func addr(s string) netip.Addr     { return netip.MustParseAddr(s) }
func prefix(s string) netip.Prefix { return netip.MustParsePrefix(s) }

// settings are those of a node with all kinds of segments.
func settings(node string) *Settings {
	return &Settings{Node: node, VRF: "v", Segment: 200, IPIP: Tunnel{Segment: 100}, VXLAN: Tunnel{Segment: 4096, IPv6: "six"}, Distance: 20,
		Routers: []netip.Addr{addr("10.192.255.254")}}
}

// A golden is a directory of confd's tests: testdata/confd.json has the resources of confd/tests/mock_data/calicoctl of Calico v3.33, as
// calicoctl writes them to etcd, and what confd/tests/compiled_templates have for BIRD on the node kube-master: a line for each neighbour,
// and for each pool whether BIRD makes the routes of its blocks, by what peers say, or Felix, by the blocks.
type golden struct {
	Name      string
	Resources map[string]json.RawMessage
	Peers     []string
	Routes    map[string]string
}

func goldens(t testing.TB) (list []golden) {
	t.Helper()
	text := check.Must(os.ReadFile("testdata/confd.json"))(t)
	check.OK(t, json.Unmarshal(text, &list))
	return list
}

func (g *golden) store() *Store {
	s := new(Store)
	for key, value := range g.Resources {
		s.Put(key, value)
	}
	return s
}

// differs is what is not as confd has it, and is named as a problem: the peers that are left out, and words of the problem.
var differs = map[string]struct {
	without []string
	word    string
}{
	// package bgp tells peers apart by address: of two ports of one, the first BGPPeer counts
	"explicit_peering/global":          {[]string{"10.192.0.1 port 150"}, "bgppeers/bgppeer-3: is left out for 10.192.0.1, port 150: bgppeers/bgppeer-2 has"},
	"explicit_peering/global-external": {[]string{"10.192.0.4 as"}, "bgppeers/bgppeer-3: is left out for 10.192.0.4, port 179: bgppeers/bgppeer-2 has"},

	"explicit_peering/local-as":        {[]string{"10.192.0.4"}, "spec.localASNumber 65001 is not carried: our AS is 64512"},
	"explicit_peering/local-as-ipv6":   {[]string{"2001::101"}, "spec.localASNumber 65001 is not carried"},
	"explicit_peering/local-as-global": {[]string{"10.192.0.3", "10.192.0.1 port 150"}, "spec.localASNumber 64515 is not carried"},
	"ttl_security/global":              {[]string{"10.192.0.3", "10.192.0.4", "2001::102", "2001::104"}, "spec.ttlSecurity is not carried"},
	"ttl_security/peer_selector":       {[]string{"10.192.0.3", "10.192.0.4", "2001::102", "2001::104"}, "spec.ttlSecurity is not carried"},

	"next_hop_mode/global_peers":           {multicast, "spec.nextHopMode is not carried"},
	"next_hop_mode/route_reflectors":       {multicast, "spec.nextHopMode is not carried"},
	"reachable_by/global_peers":            {multicast, "spec.reachableBy is not carried"},
	"reachable_by/route_reflectors":        {multicast, "spec.reachableBy is not carried"},
	"explicit_peering/keepnexthop":         {nil, "spec.keepOriginalNextHop is not carried"},
	"explicit_peering/route_reflector":     {nil, "spec.bgp.routeReflectorClusterID 10.0.0.1 is not carried"},
	"mesh/ipip-always":                     {nil, "spec.natOutgoing is not carried"},
	"password/step1":                       {[]string{"10.24.0.2", "10.24.0.3", "10.24.10.10"}, "spec.password is a secret of Kubernetes"},
	"bgpfilter/import_only/global_peer":    {[]string{"10.192.0.3", "10.192.0.4", "2001::103", "2001::104"}, "spec.filters: "},
	"bgpfilter/multi_filter/explicit_peer": {[]string{"10.192.0.3", "10.192.0.4", "2001::103", "2001::104"}, "spec.filters: "},
}

// multicast are addresses of peers in Calico's tests that no router can have.
var multicast = []string{"ffee::10", "ffee::11"}

func TestConfd(t *testing.T) {
	for _, g := range goldens(t) {
		t.Run(g.Name, func(t *testing.T) {
			c, s := settings("kube-master"), g.store()
			if One[resource.Node](s, resource.KindNode, c.Node) == nil {
				c.Node = "node1"
			}
			plan := Compile(c, s)
			if plan.BGP == nil {
				t.Fatalf("no BGP: %v", plan.Problems)
			}
			check.OK(t, plan.BGP.Check())
			d := differs[g.Name]
			var want []string
			for _, w := range g.Peers {
				w = strings.Replace(w, " local-as "+fmt.Sprint(plan.BGP.AS), "", 1)
				if !slices.ContainsFunc(d.without, func(p string) bool {
					return strings.HasPrefix(w, p+" ") || w == p || strings.HasPrefix(w, p) && strings.HasSuffix(p, " as")
				}) {
					want = append(want, w)
				}
			}
			var got []string
			for _, p := range plan.BGP.Peers {
				got = append(got, describe(p))
			}
			slices.Sort(got)
			if !slices.Equal(got, want) {
				t.Errorf("peers\n%s\nwant\n%s\nproblems %v", strings.Join(got, "\n"), strings.Join(want, "\n"), plan.Problems)
			}
			if d.word != "" && !slices.ContainsFunc(plan.Problems, func(p Problem) bool { return strings.Contains(p.String(), d.word) }) {
				t.Errorf("no problem %q in %v", d.word, plan.Problems)
			}
			for pool, by := range g.Routes {
				is := slices.ContainsFunc(plan.BGP.Pools, func(p bgp.Pool) bool { return p.Prefix == prefix(pool) })
				if is != (by == "peers") {
					t.Errorf("pool %s: routes of peers are taken: %v, want those of %s", pool, is, by)
				}
			}
		})
	}
}

// describe says in one line what confd tells BIRD of a neighbour.
func describe(p bgp.Peer) string {
	s := p.Addr.String()
	if p.Port != 0 {
		s += fmt.Sprintf(" port %d", p.Port)
	}
	s += fmt.Sprintf(" as %d", p.AS)
	if p.Local.IsValid() {
		s += " from " + p.Local.String()
	}
	if p.Passive {
		s += " passive"
	}
	if p.Client {
		s += " client"
	}
	if p.OwnAS > 0 {
		s += fmt.Sprintf(" own %d", p.OwnAS)
	}
	return s
}

// The same resources in another order are the same plan.
func TestOrder(t *testing.T) {
	for _, g := range goldens(t) {
		s := new(Store)
		keys := slices.Sorted(maps.Keys(g.Resources))
		slices.Reverse(keys)
		for _, k := range keys {
			s.Put(k, g.Resources[k])
		}
		a, _ := json.Marshal(Compile(settings("kube-master"), g.store()))
		b, _ := json.Marshal(Compile(settings("kube-master"), s))
		if string(a) != string(b) {
			t.Errorf("%s:\n%s\n%s", g.Name, a, b)
		}
	}
}
