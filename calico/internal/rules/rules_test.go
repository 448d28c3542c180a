package rules

import (
	"fmt"
	"strings"
	"testing"
)

// base is three workloads of two namespaces on this node and another one, network sets, a host endpoint, and tiers as Calico makes them.
// The server is what the tests are about: its profiles allow what it sends.
var base = data{
	"tiers/default":    spec(`"order":1000000,"defaultAction":"Deny"`),
	"tiers/kube-admin": spec(`"order":1000,"defaultAction":"Pass"`),
	"workloadendpoints/prod/n-k8s-server-eth0": workload(`"app":"server"`, `"10.0.0.1/32","fd00::1/128"`,
		`"profiles":["kns.prod","ksa.prod.web"],"serviceAccountName":"web","ports":[{"name":"http","protocol":"TCP","port":8080},{"name":"dns","protocol":"UDP","port":5353}]`),
	"workloadendpoints/prod/m-k8s-client-eth0": `{"metadata":{"labels":{"app":"client","tier":"front","pcns.env":"lie"}},"spec":{"node":"m","ipNetworks":["10.0.0.2/32","fd00::2/128"],"profiles":["kns.prod"],"serviceAccountName":"user"}}`,
	"workloadendpoints/test/m-k8s-client-eth0": `{"metadata":{"labels":{"app":"client"}},"spec":{"node":"m","ipNetworks":["10.0.0.3/32","fd00::3/128"],"profiles":["kns.test"],"ports":[{"name":"http","protocol":"TCP","port":9000}]}}`,
	"profiles/kns.prod":                        spec(`"labelsToApply":{"pcns.env":"prod","projectcalico.org/name":"prod"},"egress":[{"action":"Allow"}]`),
	"profiles/kns.test":                        spec(`"labelsToApply":{"pcns.env":"test"},"ingress":[{"action":"Allow"}],"egress":[{"action":"Allow"}]`),
	"profiles/ksa.prod.web":                    spec(`"labelsToApply":{"pcsa.role":"web"}`),
	"globalnetworksets/office":                 `{"metadata":{"labels":{"app":"office"}},"spec":{"nets":["192.0.2.0/24","2001:db8::/32","junk"]}}`,
	"networksets/test/lab":                     `{"metadata":{"labels":{"app":"lab"}},"spec":{"nets":["198.51.100.7"]}}`,
	"hostendpoints/m":                          `{"metadata":{"labels":{"app":"host"}},"spec":{"node":"m","expectedIPs":["203.0.113.1"]}}`,
}

const server = "prod/n-k8s-server-eth0"

// Who sends to the server.
var from = map[string]string{
	"client":  "10.0.0.2:1000 > 10.0.0.1:80 tcp",
	"client6": "[fd00::2]:1000 > [fd00::1]:80 tcp",
	"test":    "10.0.0.3:1000 > 10.0.0.1:80 tcp",
	"office":  "192.0.2.9:1000 > 10.0.0.1:80 tcp",
	"office6": "[2001:db8::9]:1000 > [fd00::1]:80 tcp",
	"lab":     "198.51.100.7:1000 > 10.0.0.1:80 tcp",
	"host":    "203.0.113.1:1000 > 10.0.0.1:80 tcp",
	"nobody":  "203.0.113.9:1000 > 10.0.0.1:80 tcp",
	"udp":     "203.0.113.9:1000 > 10.0.0.1:80 udp",
	"http":    "203.0.113.9:1000 > 10.0.0.1:8080 tcp",
	"dns":     "203.0.113.9:1000 > 10.0.0.1:5353 udp",
	"ping":    "203.0.113.9 > 10.0.0.1 icmp 8/0",
	"port3":   "203.0.113.9 > 10.0.0.1 icmp 3/3",
	"net3":    "203.0.113.9 > 10.0.0.1 icmp 3/0",
	"ping6":   "2001:db9::1 > fd00::1 icmp6 128/0",
	"gre":     "203.0.113.9 > 10.0.0.1 gre",
}

// passing returns who of some may send to the server.
func passing(t *testing.T, d data, who string) string {
	t.Helper()
	plan := Compile("n", d.store())
	var list []packet
	names := strings.Fields(who)
	for _, name := range names {
		list = append(list, parse(t, from[name]))
	}
	var got []string
	for i, ok := range judge(t, of(t, plan, server).Config, true, list...) {
		if ok {
			got = append(got, names[i])
		}
	}
	return strings.Join(got, " ")
}

const everybody = "client client6 test office office6 lab host nobody udp http dns ping port3 net3 ping6 gre"

// without returns everybody but some.
func without(some string) string {
	var list []string
	for _, name := range strings.Fields(everybody) {
		if !strings.Contains(" "+some+" ", " "+name+" ") {
			list = append(list, name)
		}
	}
	return strings.Join(list, " ")
}

// One rule that allows what comes to the server, in a global policy and in one of its namespace: what it lets in.
func TestConditions(t *testing.T) {
	for rule, want := range map[string]struct{ global, namespaced string }{
		`{}`: {everybody, everybody},
		`{"source":{"selector":"app == 'client'"}}`:                                        {"client client6 test", "client client6"},
		`{"source":{"selector":"app != 'client'"}}`:                                        {"office office6 lab host", ""},
		`{"source":{"selector":"app in {'client','lab'}"}}`:                                {"client client6 test lab", "client client6"},
		`{"source":{"selector":"app not in {'client','lab'}"}}`:                            {"office office6 host", ""},
		`{"source":{"selector":"has(tier)"}}`:                                              {"client client6", "client client6"},
		`{"source":{"selector":"!has(tier)"}}`:                                             {"test office office6 lab host", ""},
		`{"source":{"selector":"app contains 'lie'"}}`:                                     {"client client6 test", "client client6"},
		`{"source":{"selector":"app starts with 'off'"}}`:                                  {"office office6", ""},
		`{"source":{"selector":"app ends with 'nt'"}}`:                                     {"client client6 test", "client client6"},
		`{"source":{"selector":"app == 'lab' || has(tier) && app == 'client'"}}`:           {"client client6 lab", "client client6"},
		`{"source":{"selector":"all()"}}`:                                                  {"client client6 test office office6 lab host", "client client6"},
		`{"source":{"notSelector":"app == 'client'"}}`:                                     {without("client client6 test"), ""},
		`{"source":{"selector":"all()","notSelector":"has(tier)"}}`:                        {"test office office6 lab host", ""},
		`{"source":{"namespaceSelector":"env == 'test'"}}`:                                 {"test lab", "test lab"},
		`{"source":{"namespaceSelector":"all()"}}`:                                         {"client client6 test lab", "client client6 test lab"},
		`{"source":{"namespaceSelector":"global()"}}`:                                      {"office office6 host", "office office6 host"},
		`{"source":{"namespaceSelector":"has(env)","selector":"app == 'client'"}}`:         {"client client6 test", "client client6 test"},
		`{"source":{"selector":"pcns.env == 'lie'"}}`:                                      {"", ""},
		`{"source":{"selector":"projectcalico.org/namespace == 'test'"}}`:                  {"test lab", ""},
		`{"source":{"serviceAccounts":{"names":["user","x"]}}}`:                            {"client client6", "client client6"},
		`{"source":{"serviceAccounts":{"selector":"role == 'web'"}}}`:                      {"", ""},
		`{"destination":{"serviceAccounts":{"names":["web"],"selector":"role == 'web'"}}}`: {everybody, everybody},
		`{"source":{"serviceAccounts":{}}}`:                                                {everybody, everybody},
		`{"source":{"nets":["192.0.2.0/25"]}}`:                                             {"office", "office"},
		`{"source":{"nets":["192.0.2.9"]}}`:                                                {"office", "office"},
		`{"source":{"nets":["192.0.2.0/24","2001:db8::/32"]}}`:                             {"office office6", "office office6"},
		`{"source":{"notNets":["203.0.113.0/24"]}}`:                                        {"client test office lab", "client test office lab"}, // IPv4 alone
		`{"source":{"nets":["203.0.113.0/24"],"notNets":["203.0.113.9/32"]}}`:              {"host", "host"},
		`{"source":{"notNets":["0.0.0.0/0"]}}`:                                             {"", ""},
		`{"source":{"nets":["10.0.0.0/8"],"selector":"has(tier)"}}`:                        {"client", "client"},
		`{"destination":{"nets":["fd00::1/128"]}}`:                                         {"client6 office6 ping6", "client6 office6 ping6"},
		`{"ipVersion":6}`:                  {"client6 office6 ping6", "client6 office6 ping6"},
		`{"ipVersion":4,"protocol":"TCP"}`: {"client test office lab host nobody http", "client test office lab host nobody http"},
		`{"protocol":"udp"}`:               {"udp dns", "udp dns"},
		`{"protocol":47}`:                  {"gre", "gre"},
		`{"notProtocol":"TCP"}`:            {"udp dns ping port3 net3 ping6 gre", "udp dns ping port3 net3 ping6 gre"},
		`{"protocol":"TCP","destination":{"ports":[80]},"source":{"selector":"has(tier)"}}`:       {"client client6", "client client6"},
		`{"protocol":"TCP","destination":{"ports":["8000:9000"]}}`:                                {"http", "http"},
		`{"protocol":"TCP","destination":{"notPorts":[80]}}`:                                      {"http", "http"},
		`{"protocol":"TCP","source":{"ports":["1:999"]}}`:                                         {"", ""},
		`{"protocol":"TCP","destination":{"ports":["http"]}}`:                                     {"http", "http"},
		`{"destination":{"ports":["http","dns"]}}`:                                                {"http dns", "http dns"},
		`{"protocol":"UDP","destination":{"ports":["http",5353]}}`:                                {"dns", "dns"},
		`{"protocol":"TCP","destination":{"notPorts":["http"]},"source":{"notSelector":"all()"}}`: {"nobody", ""},
		`{"protocol":"TCP","destination":{"ports":["http"],"selector":"app == 'client'"}}`:        {"", ""},
		`{"protocol":"ICMP"}`:                                                 {"ping port3 net3", "ping port3 net3"},
		`{"protocol":"ICMP","icmp":{"type":3}}`:                               {"port3 net3", "port3 net3"},
		`{"protocol":"ICMP","icmp":{"type":3,"code":3}}`:                      {"port3", "port3"},
		`{"protocol":"ICMP","notICMP":{"type":3,"code":3}}`:                   {"ping net3", "ping net3"},
		`{"protocol":"ICMP","icmp":{"type":3},"notICMP":{"type":3,"code":0}}`: {"port3", "port3"},
		`{"protocol":"ICMPv6","icmp":{"type":128}}`:                           {"ping6", "ping6"},
		`{"protocol":"ICMPv6","notICMP":{"type":1}}`:                          {"ping6", "ping6"},
		`{"metadata":{"annotations":{"a":"b"}},"protocol":"SCTP"}`:            {"", ""},
	} {
		rule = `{"action":"Allow",` + strings.TrimPrefix(rule, "{")
		rule = strings.Replace(rule, ",}", "}", 1)
		policy := spec(`"types":["Ingress"],"selector":"app == 'server'","ingress":[` + rule + `]`)
		if got := passing(t, base.and(data{"globalnetworkpolicies/p": policy}), everybody); got != want.global {
			t.Errorf("%s: %s, want %s", rule, got, want.global)
		}
		if got := passing(t, base.and(data{"networkpolicies/prod/p": policy}), everybody); got != want.namespaced {
			t.Errorf("%s in a namespace: %s, want %s", rule, got, want.namespaced)
		}
		if got := passing(t, base.and(data{"networkpolicies/test/p": policy}), everybody); got != "" {
			t.Errorf("%s in another namespace: %s", rule, got)
		}
	}
}

// Which endpoints a policy is about: the server has no ingress without one, so one that allows everything shows it.
func TestSelectors(t *testing.T) {
	for text, want := range map[string]bool{
		``:                                true,
		`"selector":""`:                   true,
		`"selector":"all()"`:              true,
		`"selector":"app == 'client'"`:    false,
		`"selector":"pcns.env == 'prod'"`: true,
		`"selector":"projectcalico.org/name == 'prod'"`:               true,
		`"selector":"pcsa.role == 'web'"`:                             true,
		`"selector":"projectcalico.org/serviceaccount == 'web'"`:      true,
		`"namespaceSelector":"env == 'prod'"`:                         true,
		`"namespaceSelector":"env == 'test'"`:                         false,
		`"namespaceSelector":"all()"`:                                 true,
		`"selector":"app == 'client'","namespaceSelector":"all()"`:    false,
		`"serviceAccountSelector":"role == 'web'"`:                    true,
		`"serviceAccountSelector":"role == 'db'"`:                     false,
		`"serviceAccountSelector":"all()"`:                            true,
		`"selector":"has(app)","serviceAccountSelector":"has(role)"`:  true,
		`"selector":"!has(app)","serviceAccountSelector":"has(role)"`: false,
		`"types":["Egress"],"egress":[{"action":"Allow"}]`:            false,
		`"types":["Ingress","Egress"],"egress":[{"action":"Allow"}]`:  true,
		`"applyOnForward":true`:                                       true,
		`"applyOnForward":true,"doNotTrack":true`:                     false,
		`"applyOnForward":true,"preDNAT":true`:                        false,
		`"tier":"kube-admin"`:                                         true,
		`"tier":"nobody-made-it"`:                                     true,
	} {
		p := spec(strings.Trim(text+`,"ingress":[{"action":"Allow"}]`, ","))
		if got := passing(t, base.and(data{"globalnetworkpolicies/p": p}), "client") != ""; got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
}

func ofKubernetes(policy string) string { return `{"kind":"KubernetesNetworkPolicy",` + policy[1:] }

// Rules that decide, in the order of tiers and policies.
func TestOrder(t *testing.T) {
	// p is a policy of a tier, with an order and the actions of its rules.
	p := func(tier, order string, actions ...string) string {
		for i, a := range actions {
			actions[i] = fmt.Sprintf(`{"action":%q}`, a)
		}
		if order != "" {
			order = `,"order":` + order
		}
		return spec(fmt.Sprintf(`"types":["Ingress"],"tier":%q%s,"ingress":[%s]`, tier, order, strings.Join(actions, ",")))
	}
	three := data{"tiers/a": spec(`"order":1`), "tiers/b": spec(`"order":2,"defaultAction":"Pass"`), "tiers/c": spec(``), "profiles/kns.prod": spec(`"ingress":[{"action":"Allow"}]`)}
	for name, c := range map[string]struct {
		d    data
		want bool
	}{
		"no policy: the profile":          {data{}, true},
		"a policy without rules":          {data{"globalnetworkpolicies/p": p("default", "1")}, false},
		"the first rule":                  {data{"globalnetworkpolicies/p": p("default", "1", "Deny", "Allow")}, false},
		"log, and go on":                  {data{"globalnetworkpolicies/p": p("default", "1", "Log", "Allow", "Deny")}, true},
		"log alone":                       {data{"globalnetworkpolicies/p": p("default", "1", "Log")}, false},
		"pass from the last tier":         {data{"globalnetworkpolicies/p": p("default", "1", "Pass", "Deny")}, true},
		"order":                           {data{"globalnetworkpolicies/a": p("default", "2", "Deny"), "globalnetworkpolicies/z": p("default", "1.5", "Allow")}, true},
		"order below zero":                {data{"globalnetworkpolicies/a": p("default", "0", "Deny"), "globalnetworkpolicies/z": p("default", "-1", "Allow")}, true},
		"no order is last":                {data{"globalnetworkpolicies/a": p("default", "", "Deny"), "globalnetworkpolicies/z": p("default", "1e9", "Allow")}, true},
		"tie: by name":                    {data{"globalnetworkpolicies/b": p("default", "1", "Deny"), "globalnetworkpolicies/a": p("default", "1", "Allow")}, true},
		"tie: by name before kind":        {data{"globalnetworkpolicies/b": p("default", "1", "Deny"), "networkpolicies/prod/a": p("default", "1", "Allow")}, true},
		"tie: one name, global first":     {data{"globalnetworkpolicies/a": p("default", "", "Allow"), "networkpolicies/prod/a": p("default", "", "Deny")}, true},
		"tie: one of Kubernetes":          {data{"networkpolicies/prod/p": p("default", "1", "Deny"), "networkpolicies/prod/knp.default.web": ofKubernetes(p("default", "1", "Allow"))}, false},
		"tie: and before it":              {data{"networkpolicies/prod/p": p("default", "1", "Deny"), "networkpolicies/prod/knp.default.a": ofKubernetes(p("default", "1", "Allow"))}, true},
		"tie: one of Kubernetes in etcd":  {data{"networkpolicies/prod/p": p("default", "1", "Deny"), "networkpolicies/prod/knp.default.web": p("default", "1", "Allow")}, true},
		"pass skips the rest of the tier": {data{"globalnetworkpolicies/a": p("a", "1", "Pass"), "globalnetworkpolicies/b": p("a", "2", "Deny")}, true},
		"pass through three tiers": {data{"globalnetworkpolicies/a": p("a", "1", "Pass", "Deny"), "globalnetworkpolicies/b": p("b", "1", "Pass", "Deny"),
			"globalnetworkpolicies/c": p("c", "1", "Pass", "Deny")}, true},
		"passed, and denied by the third":  {data{"globalnetworkpolicies/a": p("a", "1", "Pass"), "globalnetworkpolicies/b": p("b", "1", "Pass"), "globalnetworkpolicies/c": p("c", "1", "Deny")}, false},
		"allowed before a later tier":      {data{"globalnetworkpolicies/a": p("a", "1", "Allow"), "globalnetworkpolicies/c": p("c", "1", "Deny")}, true},
		"the end of a tier that denies":    {data{"globalnetworkpolicies/a": p("a", "1"), "globalnetworkpolicies/c": p("c", "1", "Allow")}, false},
		"the end of one that passes":       {data{"globalnetworkpolicies/b": p("b", "1"), "globalnetworkpolicies/c": p("c", "1", "Allow")}, true},
		"a tier without order is last":     {data{"globalnetworkpolicies/x": p("default", "1", "Deny"), "globalnetworkpolicies/c": p("c", "1", "Allow")}, false},
		"a tier that nobody made is last":  {data{"globalnetworkpolicies/x": p("no", "1", "Allow"), "globalnetworkpolicies/c": p("c", "1", "Deny")}, false},
		"and denies":                       {data{"globalnetworkpolicies/x": p("no", "1")}, false},
		"of other endpoints":               {data{"networkpolicies/test/p": p("a", "1", "Deny")}, true},
		"staged":                           {data{"stagedglobalnetworkpolicies/p": p("a", "1", "Deny"), "stagednetworkpolicies/prod/p": p("a", "1")}, true},
		"a profile passes to the next":     {data{"profiles/kns.prod": spec(`"ingress":[{"action":"Pass"},{"action":"Deny"}]`), "profiles/ksa.prod.web": spec(`"ingress":[{"action":"Allow"}]`)}, true},
		"the first profile decides":        {data{"profiles/kns.prod": spec(`"ingress":[{"action":"Deny"}]`), "profiles/ksa.prod.web": spec(`"ingress":[{"action":"Allow"}]`)}, false},
		"profiles that say nothing":        {data{"profiles/kns.prod": spec(``)}, false},
		"a profile that cannot be read":    {data{"profiles/kns.prod": `[]`, "profiles/ksa.prod.web": spec(`"ingress":[{"action":"Allow"}]`)}, false},
		"a profile that all clusters have": {data{"workloadendpoints/" + server: workload(``, `"10.0.0.1"`, `"profiles":["projectcalico-default-allow","kns.prod"]`)}, true},
		"no profiles":                      {data{"workloadendpoints/" + server: workload(``, `"10.0.0.1"`, ``)}, false},
	} {
		if got := passing(t, base.and(three).and(c.d), "client") != ""; got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
