package policy

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// Members of sets come and go for long: what is compiled for those that are gone is not kept, and packets are judged as by a
// new policy with what is left.
func TestChurn(t *testing.T) {
	names := []string{"a", "b", "c", "d", "e", "f", "g", "h"}
	cfg := &Config{Stateless: true, Default: Deny, Sets: map[string][]netip.Prefix{}, PortSets: map[string][]Endpoint{}}
	for i, name := range names {
		cfg.Sets[name], cfg.PortSets[name] = nil, nil
		cfg.Rules = append(cfg.Rules,
			Rule{SrcSet: name, NotDstSets: []string{names[(i+1)%8]}, Protocol: 6},
			Rule{AllSrcSets: []string{name, names[(i+3)%8]}, DstPortSets: []string{name}})
	}
	for len(cfg.Rules) < 1000 {
		cfg.Rules = append(cfg.Rules, Rule{Src: prefixes(fmt.Sprintf("192.0.%d.%d/32", len(cfg.Rules)>>8, len(cfg.Rules)&255))})
	}
	l := newLab(t, cfg)
	r := rand.New(rand.NewPCG(1, 2))
	most := 0
	for n := range 6000 {
		name, x := names[r.IntN(8)], netip.PrefixFrom(ipOf(n%2 == 0, r.IntN(64)), []int{32, 128}[(n+1)%2])
		if r.IntN(20) == 0 {
			x = netip.PrefixFrom(x.Addr(), x.Bits()-r.IntN(6)).Masked()
		}
		e := Endpoint{x.Addr(), 6, uint16(r.IntN(1000))}
		if n/1000%2 == 0 {
			must(t, l.p.AddToSet(name, x))
			must(t, l.p.AddToPortSet(name, e))
		} else {
			must(t, l.p.DeleteFromSet(name, append(l.p.Set(name), x)...))
			must(t, l.p.DeleteFromPortSet(name, append(l.p.PortSet(name), e)...))
		}
		most = max(most, len(l.p.members.classes))
	}
	for _, name := range names {
		must(t, l.p.DeleteFromSet(name, l.p.Set(name)...))
		must(t, l.p.DeleteFromPortSet(name, l.p.PortSet(name)...))
	}
	if used := len(l.p.members.classes) - len(l.p.members.free); used != 1001-16 { // of the addresses of rules, and none
		t.Errorf("%d of %d classes are left", used, most)
	}
	if limit := (3*most + 1000) * 3 * (l.p.pool.words + 1); len(l.p.pool.array) > limit {
		t.Errorf("%d words of sets, with %d classes at most", len(l.p.pool.array), most)
	}
	for i := range 40 { // some again, against a new policy
		name, x := names[i%8], netip.PrefixFrom(ipOf(i%3 == 0, i%16), []int{30, 126}[b2i(i%3 == 0)]).Masked()
		e := Endpoint{ipOf(i%3 == 0, i%16), 6, 80}
		must(t, l.p.AddToSet(name, x))
		must(t, l.p.AddToPortSet(name, e))
		if !slices.Contains(cfg.Sets[name], x) {
			cfg.Sets[name] = append(cfg.Sets[name], x)
		}
		cfg.PortSets[name] = append(cfg.PortSets[name], e)
	}
	fresh := newLab(t, cfg)
	for src := range 20 {
		for dst := range 20 {
			for _, x := range []pkt{{kind: "tcp", src: src, dst: dst, dport: 80}, {kind: "tcp", v6: true, src: src, dst: dst, dport: 80}, {kind: "udp", src: src, dst: dst, dport: 80}} {
				check.Equal(t, fmt.Sprintf("%+v", x), l.send(l.p.Ingress(), x), fresh.send(fresh.p.Ingress(), x))
			}
		}
	}
	check.Equal(t, "counts", fmt.Sprint(l.p.Stats().Rules), fmt.Sprint(fresh.p.Stats().Rules))
}

// Sets of ports are changed and kept as sets are.
func TestPortSets(t *testing.T) {
	one, two := Endpoint{ipOf(false, 2), 6, 80}, Endpoint{ipOf(true, 2), 17, 53}
	cfg := &Config{Stateless: true, Default: Deny, PortSets: map[string][]Endpoint{"p": {two, one, one}}, Rules: []Rule{{DstPortSets: []string{"p"}}}}
	l := newLab(t, cfg)
	dns := pkt{kind: "udp", v6: true, src: 1, dst: 2, dport: 53}
	l.in(true, web(80))
	l.in(true, dns)
	l.in(false, web(81))
	check.Slice(t, "members", l.p.PortSet("p"), []Endpoint{one, two})
	must(t, l.p.DeleteFromPortSet("p", one, one))
	l.in(false, web(80))
	l.in(true, dns)
	must(t, l.p.AddToPortSet("p", Endpoint{ipOf(false, 2), 6, 81}))
	l.in(true, web(81))
	kept := *cfg
	kept.PortSets = map[string][]Endpoint{"p": nil}
	kept.Rules = append(kept.Rules, Rule{Action: Deny, Src: prefixes("10.0.0.0/8")})
	l.update(&kept)
	l.in(true, web(81))
	l.in(true, dns)
	kept.PortSets["p"] = []Endpoint{}
	l.update(&kept)
	l.in(false, web(81))
	l.in(false, dns)
	check.Slice(t, "none", l.p.PortSet("q"), nil)
	check.ErrorHas(t, l.p.AddToPortSet("q", one), `policy: set of ports "q"`, "no such set")
	check.ErrorHas(t, l.p.AddToPortSet("p", Endpoint{ipOf(false, 2), 1, 80}), `policy: set of ports "p"`, "10.0.0.2,1:80")
}

// Changes of several sets are in force together, or not at all.
func TestChangeSets(t *testing.T) {
	e := Endpoint{ipOf(false, 2), 6, 81}
	all := map[string][]netip.Prefix{"a": {}, "b": prefixes("10.0.0.1/32")}
	cfg := &Config{Stateless: true, Default: Deny, Sets: all, PortSets: map[string][]Endpoint{"p": {}}, Rules: []Rule{{SrcSet: "a", DstPortSets: []string{"p"}}}}
	l := newLab(t, cfg)
	state := func() string {
		return fmt.Sprint(l.p.Set("a"), l.p.Set("b"), l.p.PortSet("p"), l.p.rules.Load().generation)
	}
	was, other := state(), Endpoint{ipOf(false, 3), 6, 81}
	for _, c := range []SetChanges{
		{Add: map[string][]netip.Prefix{"a": prefixes("10.0.0.1/32"), "c": nil}},
		{Add: map[string][]netip.Prefix{"a": prefixes("10.0.0.1/32")}, Delete: map[string][]netip.Prefix{"b": {{}}}},
		{Add: map[string][]netip.Prefix{"a": prefixes("10.0.0.1/32")}, AddPorts: map[string][]Endpoint{"q": {e}}},
		{Add: map[string][]netip.Prefix{"a": prefixes("10.0.0.1/32")}, DeletePorts: map[string][]Endpoint{"p": {{}}}},
	} {
		if l.p.ChangeSets(&c) == nil || state() != was {
			t.Errorf("%+v: %s, want an error and %s", c, state(), was)
		}
	}
	l.in(false, web(81))
	must(t, l.p.ChangeSets(&SetChanges{
		Add: map[string][]netip.Prefix{"a": prefixes("10.0.0.1/32", "10.0.0.9/32")}, Delete: map[string][]netip.Prefix{"a": prefixes("10.0.0.9/32"), "b": prefixes("10.0.0.1/32")},
		AddPorts: map[string][]Endpoint{"p": {e, other}}, DeletePorts: map[string][]Endpoint{"p": {other}},
	}))
	check.Equal(t, "sets", state(), "[10.0.0.1/32] [] [10.0.0.2,tcp:81] 1")
	l.in(true, web(81))
}

// An Update that keeps sets has the members that a new policy has, whatever comes and goes beside them: other sets, and prefixes of rules
// inside and around members. Numbers of lists that are gone do not add up.
func TestKeptMembers(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	some := func(n int) []netip.Prefix {
		list := make([]netip.Prefix, n)
		for i := range list {
			x := ipOf(r.IntN(3) == 0, r.IntN(100))
			list[i] = netip.PrefixFrom(x, x.BitLen()-r.IntN(9)).Masked()
		}
		return list
	}
	config := func() *Config {
		cfg := &Config{Sets: map[string][]netip.Prefix{}, PortSets: map[string][]Endpoint{}}
		for i := range r.IntN(5) {
			cfg.Sets[fmt.Sprint(i)] = some(r.IntN(100))
			cfg.PortSets[fmt.Sprint(i)] = []Endpoint{{ipOf(false, r.IntN(100)), 6, uint16(r.IntN(3))}}
		}
		for range r.IntN(3) {
			cfg.Rules = append(cfg.Rules, Rule{Src: some(2), NotDst: some(1)})
		}
		return cfg
	}
	text := func(p *Policy) string {
		names, list := map[uint32]string{}, []string{}
		for x, n := range p.lists.literal {
			names[n] = x.String()
		}
		for name, n := range p.lists.sets {
			names[n] = "set " + name
		}
		for name, n := range p.lists.ports {
			names[n] = "ports " + name
		}
		for x, e := range p.members.table.All() {
			var labels []string
			for _, l := range p.members.classes[e.all].labels {
				labels = append(labels, fmt.Sprint(names[l.list()], " ", l.service()))
			}
			slices.Sort(labels)
			list = append(list, fmt.Sprint(x, labels))
		}
		slices.Sort(list)
		return strings.Join(list, "\n")
	}
	cfg := config()
	p := check.Must(New(cfg))(t)
	kept := 0
	for step := range 300 {
		next, told := config(), new(Config)
		*told = *next
		told.Sets, told.PortSets = maps.Clone(next.Sets), maps.Clone(next.PortSets)
		for name := range next.Sets {
			if is, ok := cfg.Sets[name]; ok && r.IntN(8) != 0 {
				next.Sets[name], told.Sets[name] = is, nil
			}
			if is, ok := cfg.PortSets[name]; ok && r.IntN(8) != 0 {
				next.PortSets[name], told.PortSets[name] = is, nil
			}
		}
		was := p.lists.n
		must(t, p.Update(told))
		cfg = next
		kept += b2i(p.lists.n > was)
		check.Equal(t, fmt.Sprint("step ", step), text(p), text(check.Must(New(cfg))(t)))
		if p.lists.n > 200 {
			t.Fatalf("%d lists", p.lists.n)
		}
	}
	if kept < 30 || kept > 270 {
		t.Errorf("%d of 300 changes were made in place", kept)
	}
}

func TestEndpointText(t *testing.T) {
	for text, want := range map[string]string{
		"10.0.0.1,tcp:80": "10.0.0.1,tcp:80", "fd00::1,17:53": "fd00::1,udp:53", "10.0.0.1,136:9": "10.0.0.1,136:9", "fd00::1,sctp:65535": "fd00::1,sctp:65535",
		"10.0.0.1": "", "10.0.0.1,tcp": "", "10.0.0.1,icmp:8": "", "10.0.0.1,1:8": "", "10.0.0.1,tcp:65536": "", "fe80::1%eth0,tcp:1": "", "::ffff:10.0.0.1,tcp:1": "", "10.0.0.1:80": "", "": "",
	} {
		var e Endpoint
		err := e.UnmarshalText([]byte(text))
		if want == "" {
			check.ErrorHas(t, err, fmt.Sprintf("%q: must be an address", text))
		} else {
			must(t, err)
			check.Equal(t, text, e.String(), want)
		}
	}
}
