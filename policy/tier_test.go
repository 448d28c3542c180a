package policy

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// web is TCP to a port of host 2.
func web(port uint16) pkt {
	return pkt{kind: "tcp", src: 1, dst: 2, sport: 1000, dport: port, flags: "S"}
}

// In each tier the first rule decides, or passes on to the next tier; what none matches has the tier's default, in its direction.
func TestTiers(t *testing.T) {
	to := func(action Action, port uint16) Rule {
		return Rule{Action: action, Protocol: 6, DstPorts: []PortRange{Port(port)}}
	}
	cfg := &Config{
		Stateless: true,
		Default:   Deny,
		Tiers: []Tier{
			{Name: "first", Rules: []Rule{to(Deny, 1), to(Pass, 2), to(Deny, 2), to(Allow, 3), to(Pass, 4)}},
			{Name: "second", Default: new(Deny), Direction: Ingress, Rules: []Rule{to(Allow, 2), to(Pass, 4), to(Pass, 5), to(Pass, 6)}},
			{Name: "empty"},
			{Name: "last", Direction: Egress, Rules: []Rule{to(Deny, 7)}, Default: new(Allow)},
		},
		Rules: []Rule{to(Allow, 4), to(Pass, 5)},
	}
	l := newLab(t, cfg)
	for port, want := range map[uint16][2]bool{ // in, out
		1: {false, false}, // the first tier
		2: {true, true},   // passed to the second; out it has no rule against the default of the last, Allow
		3: {true, true},   // never seen by the second
		4: {true, true},   // through two tiers; out by the default of the last
		5: {false, true},  // through all; out by that default
		6: {false, true},
		7: {false, false}, // in by the default of the second, out by the rule of the last
		8: {false, true},
	} {
		x := web(port)
		l.in(want[0], x)
		l.out(want[1], x)
	}
	rules := map[string]uint64{}
	for name, n := range l.p.Stats().Rules {
		rules[name] = n.Packets
	}
	check.Equal(t, "counts", fmt.Sprint(rules),
		"map[#0:1 #1:1 first#0:2 first#1:2 first#2:0 first#3:2 first#4:2 last:5 last#0:1 second:2 second#0:1 second#1:1 second#2:1 second#3:1]")
	for _, x := range []pkt{{kind: "arp", src: 1, dst: 2}, {kind: "nd", v6: true, typ: 135, src: 1, dst: 2}} {
		l.in(true, x) // no default of a tier is for these
	}
}

// What a tier before says holds for a flow, until the rules change.
func TestTierOfFlow(t *testing.T) {
	cfg := &Config{Default: Deny, Tiers: []Tier{{Name: "a", Rules: []Rule{{Action: Pass, Protocol: 6}}}}, Rules: []Rule{{Name: "web", DstPorts: []PortRange{Port(80)}}}}
	l := newLab(t, cfg)
	x := web(80)
	l.in(true, x)
	l.in(true, x.answer())
	more := x
	more.flags = "A"
	l.in(true, more)
	if s := l.p.Stats(); s.Rules["web"].Packets != 2 || s.Rules["a#0"].Packets != 1 || s.Replies != 1 {
		t.Errorf("%+v", s)
	}
	shut := *cfg
	shut.Tiers = []Tier{{Name: "a", Rules: []Rule{{Action: Deny, Protocol: 6}}}}
	l.update(&shut)
	l.in(false, more)
	l.in(false, x.answer())
}

// A rule is about all that it has, and the opposite of what it has not.
func TestNegations(t *testing.T) {
	sets := map[string][]netip.Prefix{"low": prefixes("10.0.0.0/30", "fd00::/126"), "odd": prefixes("10.0.0.1/32", "fd00::1/128", "10.0.0.9/32"), "none": {}}
	at := func(e ...string) (list []Endpoint) {
		for _, text := range e {
			var x Endpoint
			must(t, x.UnmarshalText([]byte(text)))
			list = append(list, x)
		}
		return list
	}
	ports := map[string][]Endpoint{"http": at("10.0.0.2,tcp:8080", "10.0.0.3,tcp:80", "fd00::2,tcp:8080"), "dns": at("10.0.0.2,udp:8080")}
	tcp := pkt{kind: "tcp", src: 1, dst: 2, sport: 1000, dport: 8080, flags: "S"}
	tcp6, udp, ping, far, later, lldp := tcp, tcp, tcp, tcp, tcp, pkt{kind: "lldp", src: 1, dst: 2}
	tcp6.v6, udp.kind, ping.kind, far.src, later.kind, later.frag = true, "udp", "icmp", 9, "udp", "later"
	pong := ping
	pong.typ = echoAnswer
	all := map[string]pkt{"tcp": tcp, "tcp6": tcp6, "udp": udp, "ping": ping, "pong": pong, "far": far, "later": later, "lldp": lldp}
	for name, c := range map[string]struct {
		rule Rule
		pass string
	}{
		"not source":           {Rule{NotSrc: prefixes("10.0.0.0/29")}, "far tcp6"},
		"not in sets":          {Rule{NotSrcSets: []string{"low", "none"}}, "far"},
		"not to":               {Rule{NotDst: prefixes("10.0.0.2/32")}, "tcp6"},
		"not to a set":         {Rule{NotDstSets: []string{"odd"}}, "far later ping pong tcp tcp6 udp"},
		"within, not in":       {Rule{Src: prefixes("10.0.0.0/8"), NotSrc: prefixes("10.0.0.1/32")}, "far"},
		"in and in":            {Rule{AllSrcSets: []string{"low", "odd"}}, "later ping pong tcp tcp6 udp"},
		"in and in an empty":   {Rule{AllSrcSets: []string{"low", "none"}}, ""},
		"prefix and in a set":  {Rule{Src: prefixes("10.0.0.8/29"), AllSrcSets: []string{"odd"}}, "far"},
		"set and in another":   {Rule{SrcSet: "odd", AllSrcSets: []string{"low"}, AllDstSets: []string{"low"}}, "later ping pong tcp tcp6 udp"},
		"not TCP":              {Rule{NotProtocol: 6}, "later ping pong udp"},
		"not TCP, with ports":  {Rule{NotProtocol: 6, DstPorts: []PortRange{{1, 65535}}}, "udp"},
		"not these ports":      {Rule{NotDstPorts: []PortRange{{1, 8079}, {8081, 65535}}}, "far tcp tcp6 udp"},
		"no port":              {Rule{Protocol: 6, NotDstPorts: []PortRange{{0, 65535}}}, ""},
		"a range but for some": {Rule{Protocol: 17, DstPorts: []PortRange{{8000, 9000}}, NotDstPorts: []PortRange{{8081, 9000}}}, "udp"},
		"not from a port":      {Rule{Protocol: 6, NotSrcPorts: []PortRange{Port(1000)}}, ""},
		"named port":           {Rule{DstPortSets: []string{"http"}}, "far tcp tcp6"},
		"several":              {Rule{DstPortSets: []string{"http", "dns"}}, "far tcp tcp6 udp"},
		"named or a number":    {Rule{Protocol: 17, DstPortSets: []string{"http"}, DstPorts: []PortRange{Port(8080)}}, "udp"},
		"not named":            {Rule{NotDstPortSets: []string{"http"}}, "udp"},
		"not named at all":     {Rule{NotDstPortSets: []string{"http", "dns"}}, ""},
		"named source port":    {Rule{SrcPortSets: []string{"http"}}, ""},
		"source not named":     {Rule{NotSrcPortSets: []string{"http"}}, "far tcp tcp6 udp"},
		"not this type":        {Rule{Protocol: 1, NotICMP: []ICMPType{{Type: 8}}}, "pong"},
		"not this code":        {Rule{Protocol: 1, NotICMP: []ICMPType{{8, 1, true}}}, "ping pong"},
	} {
		l := newLab(t, &Config{Rules: []Rule{c.rule}, Default: Deny, Sets: sets, PortSets: ports, Stateless: true})
		var got []string
		for name, x := range all {
			if l.send(l.p.Ingress(), x) {
				got = append(got, name)
			}
		}
		slices.Sort(got)
		check.Equal(t, name, strings.Join(got, " "), c.pass)
	}
}

// In a policy with more rules than a summary has words for, each decides, alone and behind a rule that logs.
func TestManyRules(t *testing.T) {
	for _, n := range []int{64, 4096, 4097, MaxRules - 1} {
		cfg := &Config{Default: Deny, Stateless: true}
		for i := range n {
			cfg.Rules = append(cfg.Rules, Rule{Dst: []netip.Prefix{netip.PrefixFrom(ipOf(i%2 == 0, i), ipOf(i%2 == 0, i).BitLen())}})
		}
		l := newLab(t, cfg)
		cfg.Rules = append([]Rule{{Action: Log}}, cfg.Rules...)
		behind := newLab(t, cfg)
		for _, i := range []int{0, 1, 62, 63, n / 2, n/2 + 1, n - 2, n - 1} {
			x := pkt{kind: "udp", src: 1, dst: i, v6: i%2 == 0}
			l.in(true, x)
			behind.in(true, x)
			if s := l.p.Stats(); s.Rules[nameOfRule(&Rule{}, i)].Packets == 0 {
				t.Errorf("%d: another rule than %d", n, i)
			}
			if s := behind.p.Stats(); s.Rules[nameOfRule(&Rule{}, i+1)].Packets == 0 {
				t.Errorf("%d behind: another rule than %d", n, i+1)
			}
		}
		l.in(false, pkt{kind: "udp", src: 1, dst: n})
	}
}

// Mistakes of tiers, and of what rules name.
func TestCheckTiers(t *testing.T) {
	_, err := New(&Config{
		Sets: map[string][]netip.Prefix{"s": nil}, PortSets: map[string][]Endpoint{"": nil, "p": {{netip.MustParseAddr("10.0.0.1"), 1, 80}, {}}},
		Tiers: []Tier{
			{Rules: []Rule{{Action: 4}, {AllSrcSets: []string{"s", "p"}, NotDstSets: []string{"no"}}}},
			{Name: "a", Default: new(Log), Direction: 3},
			{Name: "a", Rules: []Rule{{DstPortSets: []string{"p", "s"}}, {Protocol: 1, NotDstPortSets: []string{"p"}, NotSrcPorts: []PortRange{{9, 8}}}, {NotICMP: []ICMPType{{}}, NotSrc: prefixes("10.0.0.1/8")}}},
		},
		Default: Log,
	})
	for _, want := range []string{
		"PortSets: a set needs a name", `PortSets["p"][0]: 10.0.0.1,1:80: must be an address`, `PortSets["p"][1]: `, "Default: 3: must be Allow or Deny",
		"Tiers[0].Name: ", "Tiers[0].Rules[0].Action: 4", `Tiers[0].Rules[1].AllSrcSets[1]: "p"`, `Tiers[0].Rules[1].NotDstSets[0]: "no"`,
		"Tiers[1].Default: 3: must be Allow, Deny or Pass", "Tiers[1].Direction: 3", `Tiers[2].Name: "a"`, `Tiers[2].Rules[0].DstPortSets[1]: "s"`,
		"Tiers[2].Rules[1].NotSrcPorts[0]: 9-8", "Tiers[2].Rules[1].NotSrcPorts: protocol 1", "Tiers[2].Rules[1].NotDstPortSets: protocol 1",
		"Tiers[2].Rules[2].Protocol: 0: must be 1 or 58", "Tiers[2].Rules[2].NotSrc[0]: ",
	} {
		check.ErrorHas(t, err, "policy: Config.", want)
	}
	no, bad := []string{"no"}, []PortRange{{2, 1}}
	all := Rule{
		Protocol: 1, SrcSet: "no", DstSet: "no", AllSrcSets: no, AllDstSets: no, NotSrcSets: no, NotDstSets: no, SrcPortSets: no, DstPortSets: no, NotSrcPortSets: no, NotDstPortSets: no,
		Src: []netip.Prefix{{}}, Dst: []netip.Prefix{{}}, NotSrc: []netip.Prefix{{}}, NotDst: []netip.Prefix{{}}, SrcPorts: bad, DstPorts: bad, NotSrcPorts: bad, NotDstPorts: bad,
	}
	_, err = New(&Config{Rules: []Rule{all}})
	for _, field := range strings.Fields("SrcSet: AllSrcSets[0]: NotSrcSets[0]: Src[0]: NotSrc[0]: SrcPorts[0]: NotSrcPorts[0]: SrcPortSets[0]: NotSrcPortSets[0]: SrcPorts: NotSrcPorts: SrcPortSets: NotSrcPortSets:") {
		check.ErrorHas(t, err, "policy: Config.", "Config.Rules[0]."+field, "Config.Rules[0]."+strings.ReplaceAll(field, "Src", "Dst"))
	}
	both := Rule{DstPorts: []PortRange{Port(1)}, DstPortSets: []string{"p"}, SrcPorts: []PortRange{Port(1)}, SrcPortSets: []string{"p"}}
	cfg := &Config{PortSets: map[string][]Endpoint{"p": nil}, Tiers: []Tier{{Name: "a", Rules: slices.Repeat([]Rule{both}, MaxRules/4)}}}
	must(t, cfg.Check())
	cfg.Tiers[0].Default = new(Deny)
	check.ErrorHas(t, cfg.Check(), "policy: Config.Rules: 16001 rules, at most 16000")
}
