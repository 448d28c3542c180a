package rules

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/vxswitch/vxswitch/calico/internal/model"
	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// Whatever comes, changes and goes, in batches and with mistakes among it: what a Compiler makes of the changes is what is made of everything.
func TestChanges(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 3))
		var worlds []data
		keys := map[string]bool{}
		for range 3 {
			b := make([]byte, 1200)
			for i := range b {
				b[i] = byte(r.Uint32())
			}
			worlds = append(worlds, newWorld(b).data())
			for key := range worlds[len(worlds)-1] {
				keys[key] = true
			}
		}
		all, is := slices.Sorted(maps.Keys(keys)), data{}
		s, c := new(model.Store), new(Compiler)
		for step := range 60 {
			n := r.IntN(6)
			if step == 0 {
				n = 3 * len(all)
			}
			for range n {
				key := all[r.IntN(len(all))]
				value, ok := worlds[r.IntN(len(worlds))][key]
				if r.IntN(20) == 0 {
					value, ok = "junk", true
				}
				if ok {
					is[key] = value
					s.Put(prefixKey+key, []byte(value))
				} else {
					delete(is, key)
					s.Delete(prefixKey + key)
				}
			}
			plan := c.Compile("n", s)
			check.Equal(t, fmt.Sprintf("seed %d, step %d", seed, step), text(plan), text(Compile("n", s)))
			again := c.Compile("n", s)
			for i := range plan.Endpoints {
				check.True(t, plan.Endpoints[i].Ruling == again.Endpoints[i].Ruling, "seed %d, step %d: what stays as it is is made again", seed, step)
			}
			if r.IntN(20) == 0 { // as after a list of everything
				s = is.store()
			}
		}
	}
}

// A large is a datastore of ten workloads of the node and 490 of others, with labels of 50 kinds, and 100 policies of 20 rules with
// selectors, of which each workload of the node has ten.
func large() (data, *model.Store) {
	d := data{"profiles/kns.prod": spec(`"labelsToApply":{"pcns.env":"prod"},"egress":[{"action":"Allow"}]`), "profiles/kns.test": spec(`"egress":[{"action":"Allow"}]`)}
	for i := range 500 {
		node, namespace := "m", []string{"prod", "test"}[i%2]
		if i < 10 {
			node = "n"
		}
		d[fmt.Sprintf("workloadendpoints/%s/%s-k8s-w%d-eth0", namespace, node, i)] = member(node, i, i%50)
	}
	for i := range 100 {
		d[fmt.Sprintf("globalnetworkpolicies/p%d", i)] = twenty(i, "Allow")
	}
	return d, d.store()
}

func member(node string, i, label int) string {
	return fmt.Sprintf(`{"metadata":{"labels":{"app":"a%d","on":"%d"}},"spec":{"node":%q,"ipNetworks":["10.0.%d.%d"],"profiles":["kns.%s"],"ports":[{"name":"http","protocol":"TCP","port":80}]}}`,
		label, i, node, i/250, i%250, []string{"prod", "test"}[i%2])
}

func twenty(i int, action string) string {
	rules := ""
	for k := range 20 {
		rules += fmt.Sprintf(`{"action":%q,"protocol":"TCP","source":{"selector":"app == 'a%d'"},"destination":{"ports":["http"]}},`, action, (i+k)%50)
	}
	return spec(fmt.Sprintf(`"order":%d,"selector":"on == '%d'","types":["Ingress"],"ingress":[%s]`, i, i%10, rules[:len(rules)-1]))
}

// What a change costs, in counts: rules that are read, endpoints that have others, and selectors that are asked.
func TestWorkOfChanges(t *testing.T) {
	d, s := large()
	c := new(Compiler)
	plan := c.Compile("n", s)
	check.Equal(t, "everything", fmt.Sprintf("%+v", c.Work), "{Selected:26500 Rules:2002 Rulings:10}") // 100 policies of 10 endpoints, 50 sets of 500 addresses, one of ports
	sets := 50 + 1
	for _, x := range []struct {
		what, key, value string
		want             Work
		others           int // endpoints whose config is another one
	}{
		{"nothing", "tiers/x", "", Work{}, 0},
		{"a member with another label", "workloadendpoints/test/m-k8s-w101-eth0", member("m", 101, 7), Work{Selected: 2 * sets}, 10},
		{"a member that is gone", "workloadendpoints/test/m-k8s-w103-eth0", "", Work{Selected: sets}, 10},
		{"a member as it was", "workloadendpoints/test/m-k8s-w105-eth0", d["workloadendpoints/test/m-k8s-w105-eth0"], Work{}, 0},
		{"a network set that nobody chooses", "globalnetworksets/x", `{"metadata":{"labels":{"app":"x"}},"spec":{"nets":["192.0.2.0/24"]}}`, Work{Selected: sets - 1}, 0},
		{"one policy", "globalnetworkpolicies/p3", twenty(3, "Deny"), Work{Selected: 10, Rules: 20, Rulings: 1}, 1},
		{"the policy is gone", "globalnetworkpolicies/p3", "", Work{Rulings: 1}, 1},
		{"another tier", "tiers/x", spec(`"order":1`), Work{}, 0},
		{"rules of a profile", "profiles/kns.test", spec(`"ingress":[{"action":"Allow"}],"egress":[{"action":"Allow"}]`), Work{Rules: 2, Rulings: 5}, 5},
		{"a FelixConfiguration", "felixconfigurations/default", spec(`"vxlanPort":4444`), Work{}, 0},
		{"labels of an endpoint of the node", "workloadendpoints/test/n-k8s-w1-eth0", member("n", 1, 8), Work{Selected: 2*sets + 100 - 1}, 10},
	} {
		was := c.Work
		if x.value == "" {
			s.Delete(prefixKey + x.key)
		} else {
			s.Put(prefixKey+x.key, []byte(x.value))
		}
		next := c.Compile("n", s)
		got := Work{c.Work.Selected - was.Selected, c.Work.Rules - was.Rules, c.Work.Rulings - was.Rulings}
		check.Equal(t, x.what, fmt.Sprintf("%+v", got), fmt.Sprintf("%+v", x.want))
		others := 0
		for i := range next.Endpoints {
			if next.Endpoints[i].Config != plan.Endpoints[i].Config {
				others++
			}
		}
		check.Equal(t, x.what+": others", others, x.others)
		check.Equal(t, x.what, text(next), text(Compile("n", s)))
		plan = next
	}
}
