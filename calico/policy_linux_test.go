package calico

import (
	"fmt"
	"testing"

	"github.com/vxswitch/vxswitch/internal/lab/check"
)

const allowAll = `{"ingress":[{"action":"Allow","source":{},"destination":{}}],"egress":[{"action":"Allow","source":{},"destination":{}}]`

// Policies of a cluster decide on TCP, UDP and ICMP of three workloads.
func TestPolicyFlows(t *testing.T) {
	c := newCluster(t)
	all := func(passes bool) map[string]bool {
		return map[string]bool{"client > web tcp 8080": passes, "web > db tcp 9090": passes, "db > client udp 5353": passes, "client > db icmp": passes}
	}
	c.want("before the datastore is read", all(false))
	c.run()
	c.wait("no endpoint", c.policies("web"), " [] no WorkloadEndpoint of the node is known")
	c.want("no endpoint is known", all(false))

	for _, namespace := range []string{"prod", "data"} {
		c.put("profiles/kns."+namespace, value("Profile", "kns."+namespace, allowAll+`,"labelsToApply":{"pcns.name":"`+namespace+`"}}`))
	}
	c.put("tiers/default", value("Tier", "default", `{"order":1000000,"defaultAction":"Deny"}`))
	c.workload("prod", "client", `"app":"client"`, "")
	c.workload("prod", "web", `"app":"web"`, `,"ports":[{"name":"http","protocol":"TCP","port":8080}]`)
	c.workload("data", "db", `"app":"db"`, "")
	c.wait("an endpoint", c.policies("web"), "prod/a-k8s-web-eth0 [profiles/kns.prod] ")
	c.want("profiles alone", all(true))

	c.put("networkpolicies/prod/default.deny", value("NetworkPolicy", "default.deny", `{"tier":"default","order":2000,"selector":"all()","types":["Ingress","Egress"]}`))
	c.want("a namespace that denies", map[string]bool{"client > web tcp 8080": false, "client > db icmp": false, "db > client udp 5353": false, "db > web icmp": false})

	c.put("networkpolicies/prod/default.web", value("NetworkPolicy", "default.web", `{"tier":"default","order":100,"selector":"app == 'web'","types":["Ingress"],`+
		`"ingress":[{"action":"Allow","protocol":"TCP","source":{"selector":"app == 'client'"},"destination":{"ports":["http"]}}]}`))
	c.put("networkpolicies/prod/default.client", value("NetworkPolicy", "default.client", `{"tier":"default","order":100,"selector":"app == 'client'","types":["Egress"],`+
		`"egress":[{"action":"Allow","destination":{"namespaceSelector":"has(name)"}}]}`))
	c.wait("policies in order", c.policies("web"), "prod/a-k8s-web-eth0 [networkpolicies/prod/default.web networkpolicies/prod/default.deny profiles/kns.prod] ")
	c.want("a named port", map[string]bool{"client > web tcp 8080": true, "client > web tcp 9090": false, "client > web icmp": false, "db > web tcp 8080": false, "web > db tcp 9090": false})

	c.workload("data", "db", `"app":"client"`, "")
	c.want("a label", map[string]bool{"db > web icmp": false, "db > web tcp 9090": false})
	c.put("networkpolicies/prod/default.web", value("NetworkPolicy", "default.web", `{"tier":"default","order":100,"selector":"app == 'web'","types":["Ingress"],`+
		`"ingress":[{"action":"Allow","protocol":"TCP","source":{"selector":"app == 'client'","namespaceSelector":"all()"},"destination":{"ports":["http",9090]}}]}`))
	c.want("a label of another namespace", map[string]bool{"db > web tcp 8080": true, "db > web tcp 9090": true, "client > web tcp 8080": true})
	c.workload("data", "db", `"app":"db"`, "")
	c.want("a label that is gone", map[string]bool{"db > web tcp 8080": false, "client > web tcp 8080": true})

	c.del("networkpolicies/prod/default.deny")
	c.want("a policy that is gone", map[string]bool{"web > db tcp 9090": true, "client > web icmp": false})
	c.del("networkpolicies/prod/default.web")
	c.del("networkpolicies/prod/default.client")
	c.want("no policy any more", all(true))
}

// What tiers pass on, the next one decides, and behind the last the profiles.
func TestPolicyTiers(t *testing.T) {
	c := newCluster(t)
	c.three()
	c.put("globalnetworksets/office", `{"kind":"GlobalNetworkSet","apiVersion":"projectcalico.org/v3","metadata":{"name":"office","labels":{"from":"office"}},"spec":{"nets":["10.65.1.1/32","192.0.2.0/24"]}}`)
	c.put("tiers/admin", value("Tier", "admin", `{"order":10,"defaultAction":"Pass"}`))
	c.put("tiers/team", value("Tier", "team", `{"order":20}`))
	c.put("tiers/default", value("Tier", "default", `{"order":1000000}`))
	c.put("globalnetworkpolicies/admin.ping", value("GlobalNetworkPolicy", "admin.ping", `{"tier":"admin","order":1,"selector":"app == 'web'","types":["Ingress"],`+
		`"ingress":[{"action":"Deny","protocol":"ICMP","icmp":{"type":8}},{"action":"Pass","source":{"selector":"from == 'office'"}}]}`))
	c.put("globalnetworkpolicies/team.web", value("GlobalNetworkPolicy", "team.web", `{"tier":"team","order":1,"selector":"app == 'web'","types":["Ingress"],`+
		`"ingress":[{"action":"Allow","protocol":"TCP","destination":{"ports":[9090]}},{"action":"Pass","protocol":"UDP"},{"action":"Pass","protocol":"TCP","source":{"selector":"from == 'office'"}}]}`))
	c.put("globalnetworkpolicies/default.web", value("GlobalNetworkPolicy", "default.web", `{"tier":"default","order":1,"selector":"app == 'web'","types":["Ingress"],`+
		`"ingress":[{"action":"Log","protocol":"TCP"},{"action":"Pass","protocol":"TCP","destination":{"ports":["8000:8100"]}},{"action":"Allow","protocol":"UDP","source":{"notSelector":"from == 'office'"}}]}`))
	c.run()
	c.wait("policies in order", c.policies("web"), "prod/a-k8s-web-eth0 [globalnetworkpolicies/admin.ping globalnetworkpolicies/team.web globalnetworkpolicies/default.web profiles/kns.prod] ")
	c.want("three tiers", map[string]bool{
		"client > web icmp": false, "client > web tcp 8080": true, "client > web tcp 9090": true, "client > web udp 5353": false,
		"db > web icmp": false, "db > web tcp 8080": false, "db > web tcp 9090": true, "db > web udp 5353": true, "web > db icmp": true,
	})
}

// A connection outlasts the datastore, the Plane, and another one; a port that goes and comes back has its policy, and that of an endpoint
// that is gone is closed.
func TestPolicyStays(t *testing.T) {
	c := newCluster(t)
	c.three()
	c.put("networkpolicies/prod/default.web", value("NetworkPolicy", "default.web",
		`{"tier":"default","selector":"app == 'web'","types":["Ingress"],"ingress":[{"action":"Allow","source":{"selector":"app == 'client'"},"destination":{"nets":["0.0.0.0/0"]}}]}`))
	as := map[string]bool{"client > web tcp 9090": true, "db > web tcp 9090": false, "client > db udp 5353": true}
	stop := c.run()
	c.want("from the start", as)
	conn := c.open("client", "web")

	c.proxy.Cut()
	c.wait("stale", c.stale, "true")
	c.want("the datastore is away", as)
	conn.alive("the datastore is away")
	c.seg.Remove(c.taps["web"])
	c.wait("no port", func() string { w := c.of("web"); return fmt.Sprint(w.Port, " ", w.There) }, "cali2 false")
	c.plug("web")
	c.want("a port that is back", as)
	conn = c.open("client", "web")

	stop()
	c.want("no Plane", as)
	c.plane = check.Must(New(c.node, c.config(Workloads{Prefixes: []string{"cali"}})))(t)
	c.want("another Plane", as)
	conn.alive("another Plane")
	c.run()
	c.wait("stale", c.stale, "true")
	c.proxy.Heal()
	c.wait("policies", c.policies("web"), "prod/a-k8s-web-eth0 [networkpolicies/prod/default.web profiles/kns.prod] ")
	c.want("it has read the datastore", as)
	conn.alive("it has read the datastore")
	c.del("workloadendpoints/data/a-k8s-db-eth0")
	c.want("an endpoint is gone", map[string]bool{"client > web tcp 9090": true, "client > db udp 5353": false, "db > client icmp": false})
	c.workload("data", "db", `"app":"client"`, "")
	c.want("another one", map[string]bool{"client > db udp 5353": true, "db > client icmp": true})
	conn.alive("other endpoints have changed")
}
