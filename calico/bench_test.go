package calico

import (
	"fmt"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/policy"
)

// BenchmarkPolicies is from a change of the datastore to all ports that do it: ten ports, each with 500 policies of 20 rules, over 1000 sets
// of 1000 addresses. "everything" is a list of all resources, for a node without policies; "policy" one whose action changes, which all
// ports compile; "member" an address more or less in a network set; "endpoint" a label of a workload elsewhere, which no rule asks for.
// Where package policy has what its part is: BenchmarkCompile and BenchmarkChange; what it costs a frame: BenchmarkFrame.
func BenchmarkPolicies(b *testing.B) {
	d := largeDatastore()
	start := func(ports int) (*ported, *Plane) {
		n := &ported{has: map[string]policy.Filter{}}
		p := newPorted(b, n)
		for i := range ports {
			n.add(fmt.Sprint("cali", i+1))
		}
		for key, text := range d {
			p.put(key, text)
		}
		return n, p
	}
	open := func(n *ported, p *Plane) {
		p.applyPolicies()
		for port, x := range n.has {
			check.Equal(b, port, len(x.Policy.Stats().Rules), 10_000+2)
		}
	}
	b.Run("everything/1", func(b *testing.B) {
		for b.Loop() {
			b.StopTimer()
			n, p := start(1)
			b.StartTimer()
			p.applyPolicies()
			b.StopTimer()
			open(n, p)
			b.StartTimer()
		}
	})
	n, p := start(10)
	open(n, p)
	for name, change := range map[string]func(i int){
		"policy": func(i int) { p.put("globalnetworkpolicies/p7", largePolicy(7, []string{"Deny", "Allow"}[i%2])) },
		"member": func(i int) { p.put("globalnetworksets/s7", largeSet(7, 999+i%2)) },
		"endpoint": func(i int) {
			p.put("workloadendpoints/x/b-k8s-w-eth0", strings.ReplaceAll(endpoint("x", "w", fmt.Sprintf(`"i":"%d"`, i%2), 9, ""), "a-k8s", "b-k8s"))
		},
	} {
		b.Run(name+"/10", func(b *testing.B) {
			for i := 0; b.Loop(); i++ {
				change(i)
				p.applyPolicies()
			}
		})
	}
}

// largeDatastore has the resources of BenchmarkPolicies.
func largeDatastore() map[string]string {
	d := map[string]string{"profiles/kns.x": `{"spec":{"egress":[{"action":"Allow"}]}}`}
	for i := range 9 {
		d[fmt.Sprintf("workloadendpoints/x/a-k8s-w%d-eth0", i+1)] = endpoint("x", fmt.Sprint("w", i+1), `"app":"a"`, i+1, "")
	}
	d["workloadendpoints/x/a-k8s-w10-eth0"] = strings.ReplaceAll(endpoint("x", "w10", `"app":"a"`, 10, ""), `02:00:00:00:00:010`, `02:00:00:00:00:10`)
	for i := range 1000 {
		d[fmt.Sprint("globalnetworksets/s", i)] = largeSet(i, 1000)
	}
	for i := range 500 {
		d[fmt.Sprint("globalnetworkpolicies/p", i)] = largePolicy(i, "Allow")
	}
	return d
}

func largeSet(i, size int) string {
	nets := make([]string, size)
	for k := range nets {
		nets[k] = fmt.Sprintf(`"11.%d.%d.%d"`, i/50, i%50*5+k/250, k%250)
	}
	return fmt.Sprintf(`{"metadata":{"labels":{"set":"s%d"}},"spec":{"nets":[%s]}}`, i, strings.Join(nets, ","))
}

func largePolicy(i int, action string) string {
	rules := make([]string, 20)
	for k := range rules {
		rules[k] = fmt.Sprintf(`{"action":%q,"protocol":"TCP","source":{"selector":"set == 's%d'"},"destination":{"ports":[%d]}}`, action, (i*20+k)%1000, i*20+k)
	}
	return fmt.Sprintf(`{"spec":{"order":%d,"selector":"app == 'a'","types":["Ingress"],"ingress":[%s]}}`, i, strings.Join(rules, ","))
}
