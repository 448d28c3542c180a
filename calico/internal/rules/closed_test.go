package rules

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/calico/internal/model"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/policy"
)

// hasProblem reports whether one is of a resource, and has some words.
func hasProblem(plan *Plan, of, words string) bool {
	return slices.ContainsFunc(plan.Problems, func(p model.Problem) bool { return p.Resource == of && strings.Contains(p.Why, words) })
}

// A rule that cannot be had, before one that allows: it is named, and what it does is no more than Calico allows.
func TestWrongRules(t *testing.T) {
	const all = "client client6 office nobody udp ping"
	for rule, c := range map[string]struct{ allow, deny, why string }{ // who passes with the rule as Allow alone, and as Deny or Pass before another
		`"http":{"methods":["GET"]},"protocol":"TCP"`:                              {"", "udp ping", "http is not carried"},
		`"destination":{"services":{"name":"s"}},"source":{"nets":["10.0.0.0/8"]}`: {"", "client6 office nobody udp ping", "destination.services is not carried"},
		`"source":{"domains":["example.org"]},"protocol":"UDP"`:                    {"", "client client6 office nobody ping", `field "domains" is unknown`},
		`"source":{"nets":["10.0.0.0/8","junk"]},"protocol":"TCP"`:                 {"", "udp ping", `source.nets "junk": must be a network`},
		`"source":{"nets":"10.0.0.0/8"}`:                                           {"", "", "nets: a string: must be a list"},
		`"source":{"notNets":["x"]}`:                                               {"", "", `source.notNets "x"`},
		`"source":{"selector":"has("},"protocol":"ICMP"`:                           {"", "client client6 office nobody udp", "source.selector: selector"},
		`"source":{"notSelector":"a = b"}`:                                         {"", "", "source.notSelector: selector"},
		`"source":{"serviceAccounts":{"names":["a'b"]}}`:                           {"", "", "must be the name of a service account"},
		`"ipVersion":5`:                                       {"", "", `ipVersion "5": must be 4 or 6`},
		`"ipVersion":6,"protocol":"ICMP"`:                     {"", "client client6 office nobody udp", `ipVersion "6": must be 4 with ICMP`},
		`"protocol":"OSPF","destination":{"ports":[80]}`:      {"", "", `protocol "OSPF": must be 1 to 255`},
		`"protocol":"ICMP","destination":{"ports":[80]}`:      {"", "client client6 office nobody udp", `destination.ports "80": must be there only with protocol TCP, UDP or SCTP`},
		`"destination":{"ports":[80]}`:                        {"", "", "must be there only with protocol"},
		`"destination":{"notPorts":["http"]}`:                 {"", "", `destination.notPorts "http": must be there only with protocol`},
		`"protocol":"TCP","destination":{"ports":["90:80"]}`:  {"", "udp ping", "must be ports up to 65535, the least first"},
		`"protocol":"TCP","destination":{"ports":[80,70000]}`: {"", "udp ping", `"70000": must be 0 to 65535`},
		`"icmp":{"type":8}`:                                   {"", "", "icmp \"type 8\": must be there only with protocol ICMP or ICMPv6"},
		`"protocol":"ICMP","icmp":{"code":8}`:                 {"", "client client6 office nobody udp", "icmp.type \"\": is required with a code"},
		`"protocol":"ICMP","notICMP":{"type":255}`:            {"", "client client6 office nobody udp", `notICMP.type "255": must be 0 to 254`},
	} {
		p := func(action, rest string) data {
			return base.and(data{"globalnetworkpolicies/p": spec(`"types":["Ingress"],"ingress":[{"action":"` + action + `",` + rule + `}` + rest + `]`)})
		}
		const allow = `,{"action":"Allow"}`
		check.Equal(t, "Allow "+rule, passing(t, p("Allow", ""), all), c.allow)
		check.Equal(t, "Allow before "+rule, passing(t, p("Allow", allow), all), all)
		check.Equal(t, "Log before "+rule, passing(t, p("Log", allow), all), all)
		for _, action := range []string{"Deny", "Pass", "Redirect"} {
			check.Equal(t, action+" "+rule, passing(t, p(action, allow), all), c.deny)
		}
		plan := Compile("n", p("Allow", "").store())
		if !hasProblem(plan, "globalnetworkpolicies/p", "spec.ingress[0]: ") || !hasProblem(plan, "globalnetworkpolicies/p", c.why) || !hasProblem(plan, "globalnetworkpolicies/p", ": the rule is left out") {
			t.Errorf("%s: %v, want %s", rule, plan.Problems, c.why)
		}
		if plan := Compile("n", p("Deny", "").store()); !hasProblem(plan, "globalnetworkpolicies/p", "the rule denies all that the rest of it is about") {
			t.Errorf("%s: %v", rule, plan.Problems)
		}
	}
	for _, rule := range []string{`null`, `[]`, `{}`, `"Allow"`, `{"action":"allow"}`} {
		d := base.and(data{"globalnetworkpolicies/p": spec(`"ingress":[` + rule + `,{"action":"Allow"}]`)})
		check.Equal(t, rule, passing(t, d, all), "")
	}
}

// What is not done is named, and closes what it has to.
func TestClosed(t *testing.T) {
	open := data{"globalnetworkpolicies/open": spec(`"ingress":[{"action":"Allow"}],"egress":[{"action":"Allow"}]`)}
	for name, c := range map[string]struct {
		d       data
		open    bool
		of, why string
	}{
		"nothing":                         {data{}, true, "globalnetworksets/office", `spec.nets "junk": must be a network, and is left out`},
		"a policy of all":                 {data{"globalnetworkpolicies/x": spec(`"selector":"has("`)}, false, "globalnetworkpolicies/x", "could not be read: no workload has traffic"},
		"JSON":                            {data{"globalnetworkpolicies/x": `{`}, false, "globalnetworkpolicies/x", "unexpected end of JSON"},
		"types":                           {data{"networkpolicies/prod/x": spec(`"types":["Both"]`)}, false, "networkpolicies/prod/x", `spec.types "Both": must be one of Ingress, Egress`},
		"a policy of another namespace":   {data{"networkpolicies/test/x": spec(`"order":"first"`)}, true, "networkpolicies/test/x", "no workload of the namespace has traffic"},
		"doNotTrack":                      {data{"globalnetworkpolicies/x": spec(`"doNotTrack":true,"applyOnForward":true,"ingress":[{"action":"Deny"}]`)}, true, "globalnetworkpolicies/x", "doNotTrack"},
		"preDNAT":                         {data{"globalnetworkpolicies/x": spec(`"preDNAT":true,"applyOnForward":true,"ingress":[{"action":"Deny"}]`)}, true, "globalnetworkpolicies/x", "preDNAT"},
		"applyOnForward":                  {data{"globalnetworkpolicies/x": spec(`"order":1,"applyOnForward":true,"ingress":[{"action":"Deny"}]`)}, false, "globalnetworkpolicies/x", "applyOnForward is not carried"},
		"staged":                          {data{"stagedglobalnetworkpolicies/x": `{`, "stagedkubernetesnetworkpolicies/prod/y": ``}, true, "stagedkubernetesnetworkpolicies/prod/y", "is staged: it does nothing"},
		"a host endpoint of the node":     {data{"hostendpoints/x": spec(`"node":"n"`)}, true, "hostendpoints/x", "is not carried"},
		"a tier that nobody made":         {data{"globalnetworkpolicies/x": spec(`"tier":"x","ingress":[{"action":"Deny"}]`)}, true, "globalnetworkpolicies/x", "there is no tiers/x"},
		"a profile that nobody made":      {data{"workloadendpoints/" + server: workload(``, `"10.0.0.1"`, `"profiles":["gone"]`)}, true, "profiles/gone", "it denies"},
		"a workload without its node":     {data{"workloadendpoints/prod/m-k8s-x-eth0": spec(`"node":"n"`)}, true, "workloadendpoints/prod/m-k8s-x-eth0", `spec.node "n": must be that of the key`},
		"a workload with a wrong address": {data{"workloadendpoints/prod/m-k8s-x-eth0": spec(`"node":"m","ipNetworks":["x"]`)}, true, "workloadendpoints/prod/m-k8s-x-eth0", `spec.ipNetworks "x"`},
		"a floating address":              {data{"workloadendpoints/" + server: workload(``, `"10.0.0.1"`, `"qosControls":{},"ipNATs":[{"internalIP":"10.0.0.1","externalIP":"192.0.2.1"}]`)}, true, "workloadendpoints/" + server, "spec.ipNATs is not carried"},
		"a limit of bandwidth":            {data{"workloadendpoints/" + server: workload(``, `"10.0.0.1"`, `"qosControls":{"ingressBandwidth":1000000},"ipNATs":[]`)}, true, "workloadendpoints/" + server, "spec.qosControls is not carried"},
		"addresses of others": {data{"workloadendpoints/" + server: workload(``, `"10.0.0.1"`, `"allowSpoofedSourcePrefixes":["192.0.2.0/24"]`)}, false,
			"workloadendpoints/" + server, "workloadSourceSpoofing: Any: it has no traffic"},
		"more rules than there can be": {data{"globalnetworkpolicies/x": spec(`"order":2,"ingress":[` + strings.Repeat(`{"action":"Log"},`, policy.MaxRules) + `{"action":"Allow"}]`)}, false,
			"workloadendpoints/" + server, "has more than the 16000 rules"},
	} {
		d := base.and(open).and(c.d)
		check.Equal(t, name, passing(t, d, "client") != "", c.open)
		if plan := Compile("n", d.store()); !hasProblem(plan, c.of, c.why) {
			t.Errorf("%s: %v, want %s: %s", name, plan.Problems, c.of, c.why)
		}
	}
	s := base.and(open).store()
	for i := range 1<<10 + 1 {
		s.Put(fmt.Sprintf("%stiers/x%d", prefixKey, i), []byte(spec("")))
	}
	plan := Compile("n", s)
	if !hasProblem(plan, "tiers", "no workload has traffic") || judge(t, of(t, plan, server).Config, true, parse(t, from["client"]))[0] {
		t.Errorf("more tiers than are read: %v", plan.Problems)
	}
}

// Endpoints share what is the same, and a set is called by what it means.
func TestShared(t *testing.T) {
	d := base.and(data{
		"workloadendpoints/prod/n-k8s-two-eth0":  workload(`"app":"server"`, `"10.0.0.9"`, `"profiles":["kns.prod","ksa.prod.web"]`),
		"workloadendpoints/prod/n-k8s-bare-eth0": workload(``, ``, ``),
		"workloadendpoints/test/n-k8s-x-eth0":    workload(``, `"10.0.0.8"`, ``),
		"globalnetworkpolicies/p":                spec(`"ingress":[{"action":"Allow","source":{"selector":"app in {'lab','office'}"},"protocol":"TCP","destination":{"ports":["http"],"selector":"has(app)"}}]`),
		"networkpolicies/test/q":                 spec(`"egress":[{"action":"Allow","destination":{"notSelector":"(app in {\"office\", 'lab'})","namespaceSelector":"all()"}}]`),
		"networkpolicies/test/r":                 spec(`"egress":[{"action":"Allow","source":{"namespaceSelector":"global()","selector":"app in {  \"office\", 'lab'}"}},{"action":"Deny","source":{"selector":"a in {'` + strings.Repeat("x", 300) + `'}"}}]`),
	})
	plan := Compile("n", d.store())
	check.Equal(t, "endpoints", len(plan.Endpoints), 3)
	a, b, c := of(t, plan, server), of(t, plan, "prod/n-k8s-two-eth0"), of(t, plan, "test/n-k8s-x-eth0")
	check.True(t, a.Config == b.Config && a.Config != c.Config, "two endpoints with the same policies have two configs")
	check.Equal(t, "interface", a.Interface, "cali1")
	check.Equal(t, "sets", fmt.Sprint(a.Config.Sets), `map[app in {"lab", "office"}:[192.0.2.0/24 198.51.100.7/32 2001:db8::/32] has(app):[`+
		`10.0.0.1/32 10.0.0.2/32 10.0.0.3/32 10.0.0.9/32 192.0.2.0/24 198.51.100.7/32 203.0.113.1/32 2001:db8::/32 fd00::1/128 fd00::2/128 fd00::3/128]]`)
	check.Equal(t, "sets of ports", fmt.Sprint(a.Config.PortSets), `map[http, protocol 6, of has(app):[10.0.0.1,tcp:8080 10.0.0.3,tcp:9000 fd00::1,tcp:8080 fd00::3,tcp:9000]]`)
	check.Slice(t, "an empty set", c.Config.Sets[`has(projectcalico.org/namespace) && !app in {"lab", "office"}`], []netip.Prefix{
		netip.MustParsePrefix("10.0.0.1/32"), netip.MustParsePrefix("10.0.0.2/32"), netip.MustParsePrefix("10.0.0.3/32"), netip.MustParsePrefix("10.0.0.8/32"), netip.MustParsePrefix("10.0.0.9/32"),
		netip.MustParsePrefix("fd00::1/128"), netip.MustParsePrefix("fd00::2/128"), netip.MustParsePrefix("fd00::3/128")})
	for name, set := range c.Config.Sets {
		check.True(t, len(name) < 300 && set != nil, "set %s: %v", name, set)
	}
	var rules []string
	for r := range a.Config.AllRules() {
		rules = append(rules, r.Name)
	}
	check.Equal(t, "rules", fmt.Sprint(rules), "[globalnetworkpolicies/p spec.ingress[0] profiles/kns.prod spec.egress[0]]")
	for _, t2 := range a.Config.Tiers {
		check.True(t, strings.HasPrefix(t2.Name, map[policy.Direction]string{policy.Egress: "ingress ", policy.Ingress: "egress "}[t2.Direction]), "tier %s", t2.Name)
	}
}

// An endpoint says which policies it has, what of them is not done, and why it is closed.
func TestRuling(t *testing.T) {
	d := base.and(data{
		"globalnetworkpolicies/first":  spec(`"order":1,"ingress":[` + strings.TrimSuffix(strings.Repeat(`{"action":"Deny","http":{"methods":["GET"]}},`, maxNotDone+1), ",") + `]`),
		"globalnetworkpolicies/second": spec(`"order":2,"types":["Egress"],"applyOnForward":true`),
		"globalnetworkpolicies/host":   spec(`"order":0,"doNotTrack":true`),
		"globalnetworkpolicies/other":  spec(`"order":3,"selector":"has(nothing)"`),
		"workloadendpoints/" + server:  workload(``, `"10.0.0.1"`, `"profiles":["gone"]`),
	})
	e := of(t, Compile("n", d.store()), server)
	check.Equal(t, "policies", fmt.Sprint(e.Policies), "[globalnetworkpolicies/first globalnetworkpolicies/second profiles/gone]")
	check.Equal(t, "problems", len(e.NotDone), maxNotDone+2)
	check.Equal(t, "the first", e.NotDone[0], "globalnetworkpolicies/first: spec.ingress[0]: http is not carried: the rule denies all that the rest of it is about")
	check.Slice(t, "the last", e.NotDone[maxNotDone:], []string{
		"globalnetworkpolicies/second: spec.applyOnForward is not carried: it is about host endpoints, and workloads have the policy",
		"profiles/gone: there is none that could be read: it denies",
	})
	check.Equal(t, "closed", e.Closed, "")
	e = of(t, Compile("n", d.and(data{"networkpolicies/prod/x": "{"}).store()), server)
	check.Equal(t, "closed", e.Closed, "networkpolicies/prod/x: could not be read")
	check.Equal(t, "policies of what is closed", len(e.Policies)+len(e.Config.Tiers), 0)
}

// A rule for everything is about IP, and nothing else passes but ARP.
func TestOtherFrames(t *testing.T) {
	d := base.and(data{"globalnetworkpolicies/p": spec(`"ingress":[{"action":"Log"},{"action":"Allow"}]`)})
	p := check.Must(policy.New(of(t, Compile("n", d.store()), server).Config))(t)
	for etherType, want := range map[uint16]bool{0x0806: true, 0x88cc: false, 0x8847: false} {
		b := append(make([]byte, 12), byte(etherType>>8), byte(etherType))
		f := frame.Make(append(b, 0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0, 0, 1, 10, 0, 0, 1, 0, 0, 0, 0, 0, 0, 10, 0, 0, 2))
		f.VNI, f.From = 100, frame.NewDest(1, 0)
		got := p.Egress().Process(&f, frame.At{Tick: 10, Worker: 1}) == frame.Continue
		check.Equal(t, fmt.Sprintf("frame of %#x", etherType), got, want)
	}
}
