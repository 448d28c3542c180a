package bgp

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/bgp/internal/engine"
	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// filtered are settings whose first peer, one of our AS, and second, of another, have filter "f".
func filtered(f Filter) *Config {
	c := good()
	f.Name = "f"
	c.Filters = []Filter{f}
	c.Peers[0].Filters, c.Peers[1].Filters = []string{"f"}, []string{"f"}
	return c
}

func rule(r FilterRule) *Config { return filtered(Filter{ImportV4: []FilterRule{r}}) }

func export(r FilterRule) *Config { return filtered(Filter{ExportV4: []FilterRule{r}}) }

// What is wrong with a filter is named, and so is what cannot be had.
func TestFilterCheck(t *testing.T) {
	ten := prefix("10.0.0.0/8")
	check.OK(t, filtered(Filter{
		ImportV4: []FilterRule{{Prefix: ten, Operator: NotIn, Min: 16, Max: 24, Source: RemotePeers, Community: "65000:100", ASPathPrefix: []uint32{65000, 65001}, Action: Reject}},
		ExportV4: []FilterRule{{PeerType: Internal, Priority: 1, Operations: []Operation{{AddCommunity: "65000:100:1"}, {PrependASPath: []uint32{1, 2}}, {SetPriority: 2147483646}}}},
		ImportV6: []FilterRule{{Prefix: prefix("fd00::/8"), Operator: Equal}, {PeerType: Internal, Priority: 5}},
		ExportV6: []FilterRule{{Prefix: prefix("fd00::/8"), Operator: NotEqual, Operations: []Operation{{PrependASPath: []uint32{64512, 64512}}}}},
	}).Check())
	for want, c := range map[string]*Config{
		`Filters[0].Name: "": must be a name`:                                                                    {Filters: []Filter{{}}},
		`Filters[1].Name: "x": filters[0] has it already`:                                                        {Filters: []Filter{{Name: "x"}, {Name: "x"}}},
		`Filters[0].ImportV4[0].Prefix: 10.0.0.1/8: must be without host bits, as in 10.0.0.0/8`:                 rule(FilterRule{Prefix: prefix("10.0.0.1/8")}),
		`Filters[0].ImportV4[0].Prefix: fd00::/8: must be an IPv4 prefix`:                                        rule(FilterRule{Prefix: prefix("fd00::/8")}),
		`Filters[0].ExportV6[0].Prefix: 10.0.0.0/8: must be an IPv6 prefix`:                                      filtered(Filter{ExportV6: []FilterRule{{Prefix: ten}}}),
		`Filters[0].ImportV4[0].Prefix: required with an operator, min and max`:                                  rule(FilterRule{Operator: NotIn}),
		`Filters[0].ImportV4[0].Operator: invalid: must be "in", "not-in", "equal" or "not-equal"`:               rule(FilterRule{Prefix: ten, Operator: 4}),
		`Filters[0].ImportV4[0].Operator: equal: min and max are for "in" and "not-in"`:                          rule(FilterRule{Prefix: ten, Operator: Equal, Min: 9}),
		`Filters[0].ImportV4[0].Min: 7: must be 8 to 32`:                                                         rule(FilterRule{Prefix: ten, Min: 7}),
		`Filters[0].ImportV4[0].Max: 9: must be 10 to 32`:                                                        rule(FilterRule{Prefix: ten, Min: 10, Max: 9}),
		`Filters[0].ImportV4[0].Source: invalid: must be "any" or "remote-peers"`:                                rule(FilterRule{Source: 2}),
		`Filters[0].ImportV4[0].PeerType: invalid: must be "any", "ebgp" or "ibgp"`:                              rule(FilterRule{PeerType: 3}),
		`Filters[0].ImportV4[0].Community: "65536:1": must be as "65000:100" or "65000:100:1"`:                   rule(FilterRule{Community: "65536:1"}),
		`Filters[0].ImportV4[0].Community: "1:01": must be as`:                                                   rule(FilterRule{Community: "1:01"}),
		`Filters[0].ImportV4[0].Community: "1:.*": must be as`:                                                   rule(FilterRule{Community: "1:.*"}),
		`Filters[0].ImportV4[0].ASPathPrefix: [1 0]: must be numbers from 1 to 4294967295`:                       rule(FilterRule{ASPathPrefix: []uint32{1, 0}}),
		`Filters[0].ImportV4[0].ASPathPrefix: 11: must be at most 10 numbers`:                                    rule(FilterRule{ASPathPrefix: slices.Repeat([]uint32{1}, 11)}),
		`Filters[0].ImportV4[0].Priority: 2147483647: must be 1 to 2147483646`:                                   rule(FilterRule{Priority: 1<<31 - 1, PeerType: Internal}),
		`Filters[0].ImportV4[0].Interface: "*.calico": cannot be had: routes have segments here`:                 rule(FilterRule{Interface: "*.calico"}),
		`Filters[0].ImportV4[0].Action: invalid: must be "accept" or "reject"`:                                   rule(FilterRule{Action: 2}),
		`Filters[0].ImportV4[0].Operations: a route that is rejected is not changed`:                             rule(FilterRule{Action: Reject, Operations: []Operation{{AddCommunity: "1:1"}}}),
		`Filters[0].ImportV4[0].Operations: 11: must be at most 10`:                                              rule(FilterRule{Operations: slices.Repeat([]Operation{{AddCommunity: "1:1"}}, 11)}),
		`Filters[0].ImportV4[0].Operations[0]: one of addCommunity, prependASPath and setPriority`:               rule(FilterRule{Operations: []Operation{{AddCommunity: "1:1", SetPriority: 1}}}),
		`Filters[0].ImportV4[0].Operations[0].AddCommunity: "x": must be as`:                                     rule(FilterRule{Operations: []Operation{{AddCommunity: "x"}}}),
		`Filters[0].ImportV4[0].Operations[0].PrependASPath: [0]: must be numbers from 1`:                        rule(FilterRule{Operations: []Operation{{PrependASPath: []uint32{0}}}}),
		`Filters[0].ImportV4[0].Operations[0].SetPriority: 2147483647: must be 1 to 2147483646`:                  rule(FilterRule{Operations: []Operation{{SetPriority: 1<<31 - 1}}}),
		`Operations[1].PrependASPath: [1 2]: cannot be had with asPathPrefix unless all numbers`:                 rule(FilterRule{ASPathPrefix: []uint32{7}, Operations: []Operation{{PrependASPath: []uint32{1}}, {PrependASPath: []uint32{2}}}}),
		`Peers[1].Filters[0]: "importV4[0] of f": priority cannot be had in imports of another AS`:               rule(FilterRule{Priority: 5}),
		`Peers[1].Filters[0]: "exportV4[0] of f": prependASPath cannot be had in exports to another AS with`:     export(FilterRule{Operations: []Operation{{PrependASPath: []uint32{64512, 1}}}}),
		`Peers[0].Filters[0]: "exportV4[0] of f": community, asPathPrefix and priority cannot be had in exports`: many(export(FilterRule{Community: "1:1"})),
		`Peers[0].Filters[0]: "g": there is no such filter`:                                                      with("g"),
		`Peers[0].Filters[1]: "f": the peer has it already`:                                                      with("f", "f"),
		`Peers[1].AllPaths: true: client is required: others get no routes but ours`:                             all(1),
	} {
		if err := c.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v\nwant %s", err, want)
		}
	}
}

func many(c *Config) *Config {
	c.Peers[0].AllPaths = true
	return c
}

func with(names ...string) *Config {
	c := filtered(Filter{})
	c.Peers[0].Filters = names
	return c
}

func all(peer int) *Config {
	c := good()
	c.Peers[peer].AllPaths = true
	return c
}

// Filters are written and read as JSON, with words.
func TestFilterJSON(t *testing.T) {
	c := filtered(Filter{ExportV4: []FilterRule{{Prefix: prefix("10.0.0.0/8"), Operator: NotEqual, Source: RemotePeers, PeerType: External, Action: Reject}}})
	text := string(check.Must(json.Marshal(c))(t))
	const want = `"exportV4":[{"prefix":"10.0.0.0/8","operator":"not-equal","source":"remote-peers","peerType":"ebgp","action":"reject"}]`
	if !strings.Contains(text, want) {
		t.Errorf("%s: no %s", text, want)
	}
	var back Config
	check.OK(t, json.Unmarshal([]byte(text), &back))
	check.Equal(t, "settings", string(check.Must(json.Marshal(&back))(t)), text)
	for _, bad := range []string{`{"operator":"x"}`, `{"source":"x"}`, `{"peerType":"x"}`} {
		if err := json.Unmarshal([]byte(bad), &FilterRule{}); err == nil || !strings.Contains(err.Error(), "must be one of") {
			t.Error(err)
		}
	}
}

// What the engine is told of a rule: lengths as Calico has them, priorities as LOCAL_PREF, numbers in the order of a path.
func TestFilterRules(t *testing.T) {
	c := filtered(Filter{
		ImportV4: []FilterRule{
			{Prefix: prefix("10.0.0.0/8")}, {Prefix: prefix("10.0.0.0/8"), Operator: NotIn, Min: 16, Max: 24}, {Prefix: prefix("10.0.0.0/8"), Operator: NotEqual},
			{PeerType: External, Action: Reject}, {PeerType: Internal, Priority: 1024},
		},
		ImportV6: []FilterRule{{Prefix: prefix("fd00::/8"), Max: 64}},
		ExportV4: []FilterRule{{Operations: []Operation{{PrependASPath: []uint32{1, 2}}, {AddCommunity: "1:1"}, {PrependASPath: []uint32{3}}, {SetPriority: 1}}}},
	})
	c.Filters = append(c.Filters, Filter{Name: "g", ImportV4: []FilterRule{{Source: RemotePeers}}})
	c.Peers[0].Filters = []string{"f", "g"}
	in, out := c.rules(&c.Peers[0], c.Addresses)
	ten, fd := prefix("10.0.0.0/8"), prefix("fd00::/8")
	check.Equal(t, "imports", fmt.Sprintf("%+v", in), fmt.Sprintf("%+v", []engine.Rule{
		{Prefix: ten, Least: 8, Most: 32}, {Prefix: ten, Least: 16, Most: 24, Not: true}, {Prefix: ten, Least: 8, Most: 8, Not: true},
		{Preference: 2147482623}, {IPv6: true, Prefix: fd, Least: 8, Most: 64}, {Remote: true},
	}))
	check.Equal(t, "exports", fmt.Sprintf("%+v", out), fmt.Sprintf("%+v", []engine.Rule{{Prepend: []uint32{3, 1, 2}, AddCommunities: []string{"1:1"}, SetPreference: 2147483646}}))
	in, out = c.rules(&c.Peers[1], c.Addresses)
	check.Equal(t, "imports of another AS", fmt.Sprint(len(in), in[3].Reject), "5 true")
	check.Equal(t, "next hop to another AS", out[0].NextHop, addr("10.0.0.1"))
}

// Each operator with its lengths, with routes of a peer; settings change under way, and the session stays.
func TestPairFilter(t *testing.T) {
	all := []string{"10.65.2.0/24", "10.65.2.0/26", "10.65.2.16/28", "10.65.2.17/32", "10.65.22.0/26", "fd65:2::/64", "fd65:2::/122"}
	p := newPair(t, func(a, b *Config) { b.Announce = prefixes(all...) })
	has := func() (list []string) {
		for _, row := range p.aNode() {
			list = append(list, strings.Fields(row)[0])
		}
		return list
	}
	until(t, "all without a filter", func() bool { return len(has()) == len(all) })
	since := p.a.Status().Peers[0].Since
	reject := func(r FilterRule) Filter {
		r.Action = Reject
		if r.Prefix.IsValid() && r.Prefix.Addr().Is6() {
			return Filter{ImportV6: []FilterRule{r}}
		}
		return Filter{ImportV4: []FilterRule{r}}
	}
	block, wide := prefix("10.65.2.0/26"), prefix("fd65::/16")
	for _, c := range []struct {
		what string
		f    Filter
		gone []int // of all
	}{
		{"in", reject(FilterRule{Prefix: block}), []int{1, 2, 3}},
		{"in, from 28", reject(FilterRule{Prefix: block, Min: 28}), []int{2, 3}},
		{"in, to 28", reject(FilterRule{Prefix: block, Max: 28}), []int{1, 2}},
		{"in, 28", reject(FilterRule{Prefix: block, Min: 28, Max: 28}), []int{2}},
		{"not in", reject(FilterRule{Prefix: block, Operator: NotIn}), []int{0, 4}},
		{"not in, from 28", reject(FilterRule{Prefix: block, Operator: NotIn, Min: 28}), []int{0, 1, 4}},
		{"equal", reject(FilterRule{Prefix: block, Operator: Equal}), []int{1}},
		{"not equal", reject(FilterRule{Prefix: block, Operator: NotEqual}), []int{0, 2, 3, 4}},
		{"all of IPv4", reject(FilterRule{}), []int{0, 1, 2, 3, 4}},
		{"IPv6, in", reject(FilterRule{Prefix: wide, Max: 64}), []int{5}},
		{"IPv6, not in", reject(FilterRule{Prefix: wide, Max: 64, Operator: NotIn}), []int{6}},
		{"the first counts", Filter{ImportV4: []FilterRule{{Prefix: block, Operator: Equal}, {Prefix: block, Action: Reject}, {}, {Action: Reject}}}, []int{2, 3}},
		{"of peers", reject(FilterRule{Prefix: block, Source: RemotePeers}), []int{1, 2, 3}},
		{"for another AS", reject(FilterRule{PeerType: External}), nil},
		{"for ours", reject(FilterRule{PeerType: Internal}), []int{0, 1, 2, 3, 4}},
		{"no community", reject(FilterRule{Community: "65000:100"}), nil},
		{"no path", reject(FilterRule{ASPathPrefix: []uint32{64513}}), nil},
		{"priority", reject(FilterRule{Priority: 2147483547}), []int{0, 1, 2, 3, 4}}, // LOCAL_PREF 100
		{"exports are others", Filter{ExportV4: []FilterRule{{Action: Reject}}}, nil},
	} {
		conf := *p.aConf
		c.f.Name = "f"
		conf.Filters, conf.Peers = []Filter{c.f}, slices.Clone(conf.Peers)
		conf.Peers[0].Filters = []string{"f"}
		check.OK(t, p.a.Configure(&conf))
		var want []string
		for i, s := range all {
			if !slices.Contains(c.gone, i) {
				want = append(want, s)
			}
		}
		slices.Sort(want)
		until(t, c.what, func() bool { h := has(); slices.Sort(h); return slices.Equal(h, want) })
		st := p.a.Status()
		check.Equal(t, c.what+": rejected", fmt.Sprint(st.Peers[0].Refused[PeerFiltered], st.Refused[PeerFiltered]), fmt.Sprint(len(c.gone), len(c.gone)))
	}
	check.OK(t, p.a.Configure(p.aConf))
	until(t, "all again", func() bool { return len(has()) == len(all) })
	check.Equal(t, "since", p.a.Status().Peers[0].Since, since)
}
