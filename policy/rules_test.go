package policy

import (
	"encoding/json"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/frame"
)

// Each rule alone, over a default of Deny: what it matches passes.
func TestRule(t *testing.T) {
	tcp := pkt{kind: "tcp", src: 1, dst: 2, sport: 1000, dport: 80, flags: "S"}
	tcp6, udp, ping, ping6 := tcp, tcp, tcp, tcp
	tcp6.v6, udp.kind, ping.kind, ping6.kind, ping6.v6 = true, "udp", "icmp", "icmp", true
	sctp, gre := tcp, tcp
	sctp.kind, gre.kind = "sctp", "gre"
	back := tcp.answer()
	tagged, twice, thrice, bare := tcp, tcp, tcp, tcp
	grouped := tcp
	grouped.group = 7
	tagged.vlans, twice.vlans, thrice.vlans, bare.bare = 1, 2, 3, true
	arp, nd, lldp := pkt{kind: "arp", src: 1, dst: 2}, pkt{kind: "nd", v6: true, typ: 135, src: 1, dst: 2}, pkt{kind: "lldp", src: 1, dst: 2}
	unreachable := pkt{kind: "icmp", src: 1, dst: 2, typ: 3, code: 4, about: &back}
	later := pkt{kind: "udp", src: 1, dst: 2, frag: "later", fragID: 9}
	link := []pkt{arp, nd}
	ip4 := []pkt{tcp, udp, ping, sctp, gre, tagged, twice, bare, back, unreachable, later}
	all := append([]pkt{tcp6, ping6, lldp, grouped}, append(link, ip4...)...)
	for name, c := range map[string]struct {
		rule Rule
		pass []pkt // beside ARP and ND
	}{
		"any":             {Rule{}, append([]pkt{tcp6, ping6, lldp}, ip4...)},
		"source":          {Rule{Src: prefixes("10.0.0.1/32")}, []pkt{tcp, udp, ping, sctp, gre, tagged, twice, bare, unreachable, later}},
		"destination":     {Rule{Dst: prefixes("10.0.0.1/32", "fd00::/16")}, []pkt{back, tcp6, ping6}},
		"set":             {Rule{SrcSet: "them"}, []pkt{back}},
		"empty set":       {Rule{SrcSet: "nobody"}, nil},
		"set or prefix":   {Rule{SrcSet: "them", Src: prefixes("fd00::1/128")}, []pkt{back, tcp6, ping6}},
		"both":            {Rule{Src: prefixes("10.0.0.0/8"), Dst: prefixes("10.0.0.2/31")}, []pkt{tcp, udp, ping, sctp, gre, tagged, twice, bare, unreachable, later}},
		"families":        {Rule{Src: prefixes("10.0.0.0/8"), Dst: prefixes("::/0")}, nil},
		"protocol":        {Rule{Protocol: 6}, []pkt{tcp, tcp6, tagged, twice, bare, back}},
		"gre":             {Rule{Protocol: 47}, []pkt{gre}},
		"ports":           {Rule{DstPorts: []PortRange{{79, 80}}}, []pkt{tcp, tcp6, udp, sctp, tagged, twice, bare}},
		"source port":     {Rule{SrcPorts: []PortRange{Port(80)}}, []pkt{back}},
		"two ranges":      {Rule{Protocol: 6, SrcPorts: []PortRange{Port(80), {500, 65535}}}, []pkt{tcp, tcp6, tagged, twice, bare, back}},
		"other ports":     {Rule{DstPorts: []PortRange{{0, 79}, {81, 999}, {1001, 65535}}}, nil},
		"icmp":            {Rule{Protocol: 1, ICMP: []ICMPType{{Type: 8}}}, []pkt{ping}},
		"icmpv6":          {Rule{Protocol: 58, ICMP: []ICMPType{{Type: 128}}}, []pkt{ping6}},
		"icmp code":       {Rule{Protocol: 1, ICMP: []ICMPType{{3, 4, true}}}, []pkt{unreachable}},
		"icmp other":      {Rule{Protocol: 1, ICMP: []ICMPType{{3, 3, true}, {Type: 4}}}, nil},
		"icmp all":        {Rule{Protocol: 1}, []pkt{ping, unreachable}},
		"source MAC":      {Rule{SrcMACs: []frame.MAC{macOf(2)}}, []pkt{back}},
		"destination MAC": {Rule{DstMACs: []frame.MAC{macOf(1), macOf(9)}}, []pkt{back}},
		"MAC of no IP":    {Rule{SrcMACs: []frame.MAC{macOf(1)}, Protocol: 47}, []pkt{gre}},
		"EtherType":       {Rule{EtherTypes: []uint16{0x88cc}}, []pkt{lldp}},
		"EtherType IPv6":  {Rule{EtherTypes: []uint16{0x86dd}}, []pkt{tcp6, ping6}},
		"EtherTypes":      {Rule{EtherTypes: []uint16{0x800, 0x88cc}}, append([]pkt{lldp}, ip4...)},
		"group":           {Rule{Groups: []uint16{7}}, []pkt{grouped}},
		"groups":          {Rule{Groups: []uint16{8, 7, 9}, Protocol: 6}, []pkt{grouped}},
		"another group":   {Rule{Groups: []uint16{8, 65535}}, nil},
		"no group":        {Rule{Groups: []uint16{0}, Protocol: 6}, []pkt{tcp, tcp6, tagged, twice, bare, back}},
	} {
		if c.rule.Groups == nil && slices.ContainsFunc(c.pass, func(x pkt) bool { return reflect.DeepEqual(x, tcp) }) {
			c.pass = append(slices.Clip(c.pass), grouped) // what does not ask for groups takes any
		}
		for _, stateless := range []bool{false, true} {
			sets := map[string][]netip.Prefix{"them": prefixes("10.0.0.2/32"), "nobody": {}}
			for _, x := range all {
				want := x.kind == "arp" || x.kind == "nd"
				for _, y := range c.pass {
					want = want || reflect.DeepEqual(x, y)
				}
				l := newLab(t, &Config{Rules: []Rule{c.rule}, Default: Deny, Sets: sets, Stateless: stateless})
				if got := l.send(l.p.Ingress(), x); got != want {
					t.Errorf("%s: %+v: passed %v, want %v", name, x, got, want)
				}
				// The other way round, what it matches is dropped.
				r := c.rule
				r.Action = Deny
				l = newLab(t, &Config{Rules: []Rule{r}, Sets: sets, Stateless: stateless})
				spared := (x.kind == "arp" || x.kind == "nd") && !r.linkOnly() && len(r.ICMP) == 0
				matched := false
				for _, y := range append(c.pass, matchedLink(c.rule, arp, nd)...) {
					matched = matched || reflect.DeepEqual(x, y)
				}
				if got := l.send(l.p.Egress(), x); got != (spared || !matched) {
					t.Errorf("%s: deny %+v: passed %v", name, x, got)
				}
				for _, s := range []*Stage{l.p.Ingress(), l.p.Egress()} {
					if l.send(s, thrice) {
						t.Error("a tag too many passes")
					}
				}
			}
		}
	}
}

// matchedLink returns which of ARP and ND the rules of TestRule match.
func matchedLink(r Rule, arp, nd pkt) (list []pkt) {
	for _, m := range r.SrcMACs {
		if m == macOf(1) && r.Protocol == 0 {
			list = append(list, arp, nd)
		}
	}
	for _, x := range r.EtherTypes {
		if x == 0x86dd {
			list = append(list, nd)
		}
	}
	return list
}

// The first rule that matches decides, and in its direction only.
func TestOrder(t *testing.T) {
	web := pkt{kind: "tcp", src: 1, dst: 2, sport: 1000, dport: 80, flags: "A"}
	l := newLab(t, &Config{Rules: []Rule{
		{Name: "in", Direction: Ingress, Action: Deny, DstPorts: []PortRange{Port(81)}},
		{Name: "one", Dst: prefixes("10.0.0.2/32"), DstPorts: []PortRange{Port(80)}},
		{Name: "all", Action: Deny, Dst: prefixes("10.0.0.0/24")},
		{Name: "one", Dst: prefixes("10.0.0.3/32")},
		{DstPorts: []PortRange{{81, 82}}},
	}, Default: Deny})
	l.in(true, web)
	web.dst = 3
	l.in(false, web)
	web.dst, web.dport = 300, 81
	l.in(false, web)
	l.out(true, web)
	web.dport = 83
	l.out(false, web)
	st := l.p.Stats()
	n := uint64(len(web.bytes(t)))
	want := map[string]Count{"in": {1, n}, "one": {1, n}, "all": {1, n}, "#4": {1, n}}
	if !reflect.DeepEqual(st.Rules, want) || st.Default != (Count{1, n}) {
		t.Errorf("%+v, want %v", st, want)
	}
}

// ARP and ND are spared by what does not name them.
func TestNeighbours(t *testing.T) {
	arp, nd := pkt{kind: "arp", src: 1, dst: 2}, pkt{kind: "nd", v6: true, typ: 135, src: 1, dst: 2}
	redirect := pkt{kind: "nd", v6: true, typ: 137, src: 1, dst: 2}
	for name, c := range map[string]struct {
		rule    Rule
		arp, nd bool
	}{
		"all":      {Rule{Action: Deny}, true, true},
		"protocol": {Rule{Action: Deny, Protocol: 58}, true, true},
		"type":     {Rule{Action: Deny, Protocol: 58, ICMP: []ICMPType{{Type: 135}}}, true, false},
		"MAC":      {Rule{Action: Deny, SrcMACs: []frame.MAC{macOf(1)}}, false, false},
		"ARP":      {Rule{Action: Deny, EtherTypes: []uint16{0x806}}, false, true},
	} {
		l := newLab(t, &Config{Rules: []Rule{c.rule}, Default: Deny})
		l.in(c.arp, arp)
		l.in(c.nd, nd)
		l.in(false, redirect)
		if got := l.p.Stats().Neighbours.Packets; got != uint64(b2i(c.arp)+b2i(c.nd)) {
			t.Errorf("%s: %d", name, got)
		}
	}
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// Every mistake is told of at once, with its place.
func TestCheck(t *testing.T) {
	many := make([]Rule, MaxRules+1)
	_, err := New(&Config{
		Rules: append([]Rule{
			{Src: prefixes("10.0.0.1/24"), Dst: []netip.Prefix{{}}, SrcSet: "no", Action: 7},
			{Protocol: 1, DstPorts: []PortRange{Port(1), {9, 8}}, Direction: 9},
			{ICMP: []ICMPType{{Type: 1}}, DstSet: "neither"},
		}, many...),
		Default: 2, MaxFlows: -1, Stateless: true, Routed: true, PickUp: true,
		Sets:     map[string][]netip.Prefix{"": nil, "x": prefixes("::ffff:1.2.3.0/120")},
		Timeouts: Timeouts{UDP: time.Millisecond, TCP: -time.Second},
	})
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{
		"Config.Rules: 16004", "Rules[0].Src[0]: ", "Rules[0].Dst[0]: ", `Rules[0].SrcSet: "no"`, "Rules[0].Action: 7",
		"Rules[1].DstPorts[1]: 9-8", "Rules[1].DstPorts: protocol 1", "Rules[1].Direction: ", "Rules[2].Protocol: 0: must be 1 or 58", `Rules[2].DstSet: "neither"`,
		"Default: 2", "MaxFlows: -1", "Sets: a set", `Sets["x"][0]: `, "Timeouts.UDP: 1ms", "Timeouts.TCP: -1s",
		"Routed: the policy is stateless, and tracks no flows", "PickUp: the policy is stateless, and tracks no flows",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in\n%v", want, err)
		}
	}
	for line := range strings.Lines(err.Error()) {
		if !strings.HasPrefix(line, "policy: Config.") {
			t.Errorf("%q", line)
		}
	}
	l := newLab(t, &Config{Default: Deny})
	if err := l.p.Update(&Config{Rules: []Rule{{}, {ICMP: []ICMPType{{}}}}}); err == nil {
		t.Error("no error")
	}
	l.in(false, pkt{kind: "udp", src: 1, dst: 2}) // nothing of it is in force
}

func TestJSON(t *testing.T) {
	cfg := Config{
		Rules: []Rule{{
			Name: "web", Action: Deny, Direction: Egress, Src: prefixes("10.0.0.0/8"), DstSet: "x", Protocol: 6,
			SrcPorts: []PortRange{{1024, 65535}}, DstPorts: []PortRange{Port(80)}, SrcMACs: []frame.MAC{macOf(1)}, EtherTypes: []uint16{0x800}, Groups: []uint16{7},
		}, {Protocol: 1, ICMP: []ICMPType{{Type: 8}, {3, 4, true}}}},
		Tiers: []Tier{{Name: "first", Direction: Ingress, Default: new(Pass), Rules: []Rule{{
			Action: Log, NotSrc: prefixes("10.0.0.0/8"), NotDst: prefixes("fd00::/8"), AllSrcSets: []string{"x"}, AllDstSets: []string{"x"}, NotSrcSets: []string{"x"}, NotDstSets: []string{"x"},
			NotProtocol: 1, NotSrcPorts: []PortRange{Port(1)}, NotDstPorts: []PortRange{Port(2)}, SrcPortSets: []string{"p"}, DstPortSets: []string{"p"}, NotSrcPortSets: []string{"p"}, NotDstPortSets: []string{"p"},
		}, {Action: Pass, Protocol: 1, NotICMP: []ICMPType{{3, 4, true}}}}}},
		PortSets: map[string][]Endpoint{"p": {{ipOf(false, 1), 6, 80}}},
		Default:  Deny, Sets: map[string][]netip.Prefix{"x": prefixes("fd00::/64")}, MaxFlows: 9, Timeouts: Timeouts{UDP: time.Minute},
	}
	b, err := json.Marshal(cfg)
	must(t, err)
	var got Config
	if err := json.Unmarshal(b, &got); err != nil || !reflect.DeepEqual(got, cfg) {
		t.Errorf("%v, %+v\n%s", err, got, b)
	}
	for _, s := range []string{`"1024-65535"`, `"80"`, `"3/4"`, `"8"`, `"deny"`, `"egress"`, `"dstSet"`, `"02:00:00:00:00:01"`, `"10.0.0.1,tcp:80"`, `"pass"`, `"log"`, `"notICMP"`} {
		if !strings.Contains(string(b), s) {
			t.Errorf("no %s in %s", s, b)
		}
	}
	for _, s := range []string{
		`{"rules":[{"dstPorts":["80-70"]}]}`, `{"rules":[{"dstPorts":["x"]}]}`, `{"rules":[{"icmp":["256"]}]}`,
		`{"rules":[{"action":"drop"}]}`, `{"rules":[{"direction":"in"}]}`,
	} {
		if json.Unmarshal([]byte(s), new(Config)) == nil {
			t.Errorf("%s is read", s)
		}
	}
}
