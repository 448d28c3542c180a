package bgp

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// edit returns a configuration of BIRD with some of its text replaced, each of which is there.
func edit(t *testing.T, conf string, pairs ...string) string {
	t.Helper()
	for i := 0; i < len(pairs); i += 2 {
		if !strings.Contains(conf, pairs[i]) {
			t.Fatalf("%s\nhas no %q", conf, pairs[i])
		}
		conf = strings.ReplaceAll(conf, pairs[i], pairs[i+1])
	}
	return conf
}

const birdExport = "export filter { if net ~ [ 10.65.0.0/16+ ] && source = RTS_STATIC then accept; reject; };"

// has waits until BIRD's routes to a prefix have all of some text, or no route if there is none.
func (m *mesh) has(i int, what, prefix string, text ...string) {
	m.t.Helper()
	last := ""
	m.hosts[i].Until(what, func() bool {
		last = m.birds[i].Try("show", "route", prefix, "all")
		ok := strings.Contains(last, prefix) == (len(text) > 0)
		for _, s := range text {
			ok = ok && strings.Contains(last, s)
		}
		return ok
	})
}

// routes is want, of routes in any order.
func (m *member) routes(what string, want ...string) {
	m.t.Helper()
	slices.SortFunc(want, func(a, b string) int {
		p := func(s string) netip.Prefix { return prefix(strings.Fields(s)[0]) }
		return cmp.Or(p(a).Compare(p(b)), cmp.Compare(a, b))
	})
	m.want(what, want...)
}

// Routes of BIRD are filtered by prefix, community, priority and path, and what BIRD gets of ours has what filters have added. Filters
// change under way.
func TestMeshFilter(t *testing.T) {
	m := newMesh(t)
	more := `bgp_local_pref = 2147483647 - 1024;
    if net = 10.65.21.0/26 then bgp_community.add((65000, 100));
    if net = 10.65.22.0/26 then bgp_large_community.add((65000, 100, 1));
    if net = 10.65.23.0/26 then bgp_local_pref = 2147483647 - 512;
    if net = 10.65.24.0/26 then { bgp_path.prepend(65002); bgp_path.prepend(65001); }`
	conf := edit(t, birdConf(2, nothing, ""), birdExport, strings.Replace(birdExport, "if net", more+"\n    if net", 1),
		"route 10.65.2.0/26 blackhole;", "route 10.65.2.0/26 blackhole; route 10.65.21.0/26 blackhole; route 10.65.22.0/26 blackhole; route 10.65.23.0/26 blackhole; route 10.65.24.0/26 blackhole;")
	m.birds[2].Configure(conf)
	way := func(n int) string { return strings.ReplaceAll(way2, "10.65.2.0", fmt.Sprintf("10.65.%d.0", n)) }
	m.ours.routes("all", way2, way(21), way(22), way(23), way(24), way3)
	since := m.ours.peer("10.0.0.2").Since
	set := func(f Filter) {
		c := memberSettings()
		f.Name = "f"
		c.Announce = prefixes(block, "10.65.11.0/26", "10.65.12.0/26")
		c.Filters, c.Peers[0].Filters = []Filter{f}, []string{"f"}
		m.ours.set(c)
	}
	in := func(r ...FilterRule) Filter { return Filter{ImportV4: r} }
	set(in(FilterRule{Community: "65000:100", Action: Reject}))
	m.ours.routes("by community", way2, way(22), way(23), way(24), way3)
	set(in(FilterRule{Community: "65000:100:1", Action: Reject}))
	m.ours.routes("by large community", way2, way(21), way(23), way(24), way3)
	set(in(FilterRule{Priority: 512, Action: Reject}))
	m.ours.routes("by priority", way2, way(21), way(22), way(24), way3)
	set(in(FilterRule{Priority: 512}, FilterRule{Priority: 1024, Prefix: prefix("10.65.16.0/20"), Action: Reject}))
	m.ours.routes("by priority and prefix", way2, way(23), way3)
	set(in(FilterRule{ASPathPrefix: []uint32{65001, 65002}, Action: Reject}))
	m.ours.routes("by path", way2, way(21), way(22), way(23), way3)
	set(in(FilterRule{ASPathPrefix: []uint32{65001}}, FilterRule{Prefix: prefix("10.65.2.0/24")}, FilterRule{Action: Reject}))
	m.ours.routes("only some", way2, way(24), way3)
	check.Equal(t, "TTL", reach(m.ours.pod, pod2), 62)

	set(in(FilterRule{Community: "65000:100", Action: Reject}))
	m.ours.routes("by community again", way2, way(22), way(23), way(24), way3)
	m.birds[2].Configure(edit(t, conf, "net = 10.65.21.0/26", "net ~ [ 10.65.21.0/26, 10.65.23.0/26 ]"))
	m.ours.routes("a route gets a community", way2, way(22), way(24), way3)

	m.has(2, "no filter for exports", "10.65.11.0/26", "BGP.next_hop: 10.0.0.1\n")
	set(Filter{ExportV4: []FilterRule{
		{Prefix: prefix("10.65.11.0/26"), Operator: Equal, Action: Reject},
		{Prefix: prefix("10.65.12.0/24"), Operations: []Operation{{AddCommunity: "65000:7"}, {AddCommunity: "65000:7:8"}, {PrependASPath: []uint32{65001, 65002}}, {SetPriority: 512}}},
	}})
	m.has(2, "rejected", "10.65.11.0/26")
	m.has(2, "changed", "10.65.12.0/26", "BGP.community: (65000,7)\n", "BGP.large_community: (65000, 7, 8)\n", "BGP.as_path: 65001 65002\n", "BGP.local_pref: 2147483135\n", "BGP.next_hop: 10.0.0.1\n")
	m.has(2, "as it was", block, "BGP.as_path: \n", "BGP.local_pref: 100\n")
	m.has(3, "a peer without filters", "10.65.11.0/26", "BGP.next_hop: 10.0.0.1\n", "BGP.as_path: \n")
	set(Filter{})
	m.has(2, "nothing is filtered", "10.65.11.0/26", "BGP.next_hop: 10.0.0.1\n")
	m.has(2, "nothing is changed", "10.65.12.0/26", "BGP.as_path: \n", "BGP.local_pref: 100\n")
	check.Equal(t, "since", m.ours.peer("10.0.0.2").Since, since)
}

// externalConf is that of node 2 as a router of AS 65002, which announces routes of AS 65010 too.
func externalConf(t *testing.T) string {
	return edit(t, birdConf(2, nothing, ""), "as 64512; multihop;", "as 65002; multihop;", "protocol bgp mesh from calico { neighbor 10.0.0.3 as 64512; }", "",
		birdExport, strings.Replace(birdExport, "if net", "if net = 10.65.22.0/26 then bgp_path.prepend(65010);\n    if net", 1),
		"route 10.65.2.0/26 blackhole;", "route 10.65.2.0/26 blackhole; route 10.65.22.0/26 blackhole;")
}

// A router of another AS gets routes of our AS that a filter lets through, by our address; and of its own, paths that begin with some numbers
// are rejected.
func TestExternalFilter(t *testing.T) {
	m := newMesh(t)
	m.birds[2].Configure(externalConf(t))
	inside := edit(t, birdConf(3, ourOwn, ""), "protocol bgp mesh from calico { neighbor 10.0.0.2 as 64512; }", "protocol static far { ipv4; route 10.65.2.0/26 via 10.0.0.2; }",
		"net ~ [ 10.65.0.0/16+ ]", `proto = "own"`, "source != RTS_BGP ||", "source != RTS_BGP && proto != \"far\" ||",
		`if proto = "own"`, "if net = 10.65.33.0/26 then bgp_path.prepend(65020);\n    if proto = \"own\"", "route 10.65.3.0/26 blackhole;", "route 10.65.3.0/26 blackhole; route 10.65.33.0/26 blackhole;")
	m.birds[3].Configure(inside)
	c := memberSettings()
	c.Pools = c.Pools[:1]
	c.Peers[0].AS, c.Peers[0].Hops = 65002, 2
	m.ours.set(c)
	way22, direct3 := strings.ReplaceAll(way2, "10.65.2.0", "10.65.22.0"), strings.ReplaceAll(way3, "vni 100 vtep 10.0.0.3:0", "vni 200 ip 10.0.0.3")
	direct33 := strings.ReplaceAll(direct3, "10.65.3.0", "10.65.33.0")
	m.ours.routes("all", way2, way22, direct3, direct33)
	m.has(2, "our block", block, "BGP.as_path: 64512\n", "BGP.next_hop: 10.0.0.1\n")
	m.has(2, "nothing of our AS without a filter", "10.65.3.0/26")

	c.Filters = []Filter{
		{Name: "import", ImportV4: []FilterRule{{PeerType: External, ASPathPrefix: []uint32{65002, 65010}, Action: Reject}}},
		{Name: "export", ExportV4: []FilterRule{
			{Source: RemotePeers, Prefix: prefix("10.65.3.0/24"), Operations: []Operation{{PrependASPath: []uint32{64512, 64512}}, {AddCommunity: "64512:1"}}},
			{PeerType: Internal, Action: Reject},
		}},
	}
	c.Peers[0].Filters, c.Peers[1].Filters = []string{"import", "export"}, []string{"import"}
	m.ours.set(c)
	m.ours.routes("without a path", way2, direct3, direct33)
	m.has(2, "a route of our AS", "10.65.3.0/26", "BGP.as_path: 64512 64512 64512\n", "BGP.next_hop: 10.0.0.1\n", "BGP.community: (64512,1)\n")
	m.has(2, "our block still", block, "BGP.as_path: 64512\n")
	m.hosts[2].Until("BIRD's kernel has it", func() bool { return strings.Contains(m.hosts[2].IP("route", "show", "10.65.3.0/26"), "via 10.0.0.1") })
	reach(m.pods[2], pod3)

	c.Filters[1].ExportV4 = []FilterRule{{Source: RemotePeers, ASPathPrefix: []uint32{65020}}, {Prefix: prefix(block), Action: Reject}}
	m.ours.set(c)
	m.has(2, "our block is rejected", block)
	m.has(2, "one route of our AS has another path", "10.65.3.0/26")
	m.has(2, "one has the path", "10.65.33.0/26", "BGP.as_path: 64512 65020\n")
	m.birds[3].Configure(edit(t, inside, "65020", "65021"))
	m.has(2, "and no longer", "10.65.33.0/26")
}
