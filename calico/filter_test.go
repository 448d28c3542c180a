package calico

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/calico/internal/model"
	"github.com/vxswitch/vxswitch/calico/internal/rules"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/node"
	"github.com/vxswitch/vxswitch/policy"
	"github.com/vxswitch/vxswitch/setting"
)

// A ported is a node of ports alone.
type ported struct {
	Node
	f   func(string, policy.Filter) policy.Filter
	has map[string]policy.Filter
}

func (n *ported) SetPortFilters(f func(string, policy.Filter) policy.Filter) error {
	n.f = f
	for port := range n.has {
		n.add(port)
	}
	return nil
}

func (n *ported) PortFilters() map[string]policy.Filter { return maps.Clone(n.has) }

func (n *ported) add(port string) {
	if n.has[port] = n.f(port, n.has[port]); n.has[port] == (policy.Filter{}) {
		delete(n.has, port)
	}
}

func newPorted(t testing.TB, n *ported) *Plane {
	p := check.Must(New(n, &Config{Node: "a", VRF: "v", Workloads: Workloads{Prefixes: []string{"cali"}, Ports: map[string]string{"vm": "x/a-k8s-vm-eth0"}}}))(t)
	p.store = new(model.Store)
	return p
}

// applyPolicies has the policies of a store applied.
func (p *Plane) applyPolicies() {
	p.policies.Store(true)
	p.routes.Store(false)
	p.apply()
}

// judge returns who passes to whom on ports of UDP, in both directions, as one text.
func judge(p *policy.Policy) string {
	var b strings.Builder
	for _, stage := range []*policy.Stage{p.Ingress(), p.Egress()} {
		for i := range 36 {
			for _, port := range []uint16{80, 81} {
				x := make([]byte, 54)
				x[12], x[14], x[17], x[22], x[23] = 8, 0x45, 40, 64, 17
				copy(x[26:], []byte{10, 65, 1, byte(i % 6), 10, 65, 1, byte(i / 6)})
				binary.BigEndian.PutUint16(x[34:], 1000)
				binary.BigEndian.PutUint16(x[36:], port)
				x[39] = 20
				f := frame.Make(x)
				f.VNI, f.From = 10, frame.NewDest(1, 0)
				if stage.Process(&f, frame.At{Tick: 10, Worker: 1}) == frame.Continue {
					fmt.Fprintf(&b, "%d>%d:%d ", i%6, i/6, port)
				}
			}
		}
		b.WriteString("| ")
	}
	return b.String()
}

// arps returns which of five hosts a port may send the ARP of.
func arps(t *testing.T, x policy.Filter) string {
	var list []int
	for i := range 6 {
		b := []byte{255, 255, 255, 255, 255, 255, 2, 0, 0, 0, 0, byte(i), 8, 6, 0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0, 0, byte(i), 10, 65, 1, byte(i), 0, 0, 0, 0, 0, 0, 10, 65, 1, 9}
		f := frame.Make(b)
		f.VNI, f.From = 10, frame.NewDest(1, 0)
		at := frame.At{Tick: 10, Worker: 1}
		if x.Guard.Process(&f, at) == frame.Continue && x.Policy.Ingress().Process(&f, at) == frame.Continue {
			list = append(list, i)
		}
	}
	return fmt.Sprint(list)
}

// What ports do is what a new policy with the resources does that there are, whatever has changed before: endpoints, labels, sets,
// policies, ports, and the Plane.
func TestPortsModel(t *testing.T) {
	names := []string{"cali1", "cali2", "cali3", "vm", "eth0"}
	for seed := range uint64(6) {
		r := rand.New(rand.NewPCG(seed, 1))
		n := &ported{has: map[string]policy.Filter{}}
		p := newPorted(t, n)
		change := func() {
			i := r.IntN(4) + 1
			label := fmt.Sprintf(`"app":"%c"`, 'a'+r.IntN(3))
			switch r.IntN(8) {
			case 0, 1:
				name := fmt.Sprint("w", 1+r.IntN(3))
				p.put("workloadendpoints/x/a-k8s-"+name+"-eth0", endpoint("x", name, label, i, `,"ports":[{"name":"http","protocol":"UDP","port":8`+fmt.Sprint(r.IntN(2))+`}]`))
			case 2:
				p.put("workloadendpoints/x/a-k8s-vm-eth0", endpoint("x", "vm", label, i, ""))
			case 3:
				p.store.Delete(v3 + fmt.Sprintf("workloadendpoints/x/a-k8s-%s-eth0", []string{"w1", "w2", "w3", "vm"}[r.IntN(4)]))
			case 4:
				p.put("globalnetworksets/s", fmt.Sprintf(`{"metadata":{"labels":{%s}},"spec":{"nets":["10.65.1.%d/%d"]}}`, label, i, 30+r.IntN(3)))
			case 5:
				p.put(fmt.Sprintf("networkpolicies/x/p%d", r.IntN(3)), fmt.Sprintf(`{"spec":{"order":%d,"selector":"app != '%c'","ingress":[{"action":%q,"protocol":"UDP","source":{"selector":"app == '%c'"},"destination":{"ports":[%s]}}],"egress":[{"action":"Allow"}]}}`,
					r.IntN(3), 'a'+r.IntN(3), []string{"Allow", "Deny", "Pass"}[r.IntN(3)], 'a'+r.IntN(3), []string{"80", `"http"`}[r.IntN(2)]))
			case 6:
				p.store.Delete(v3 + fmt.Sprintf("networkpolicies/x/p%d", r.IntN(3)))
			case 7:
				p.put("profiles/kns.x", []string{`{"spec":{"ingress":[{"action":"Allow"}],"egress":[{"action":"Allow"}]}}`, `{"spec":{}}`}[r.IntN(2)])
			}
		}
		want := map[string]string{}
		for step := range 100 {
			switch r.IntN(6) {
			case 0:
				name := names[r.IntN(len(names))]
				n.add(name)
				if name == "eth0" {
					check.True(t, n.has[name] == (policy.Filter{}), "eth0 has a policy")
				} else if was, ok := want[name]; ok {
					check.Equal(t, fmt.Sprintf("seed %d, step %d: %s at once", seed, step, name), judge(n.has[name].Policy), was)
				}
			case 1:
				delete(n.has, names[r.IntN(len(names))])
			case 2:
				if r.IntN(4) == 0 {
					store := p.store
					p = newPorted(t, n)
					p.store = store
				}
			}
			for range r.IntN(3) {
				change()
			}
			p.applyPolicies()
			by, guards := map[string][]*policy.Config{}, map[string]string{}
			for _, e := range rules.Compile("a", p.store).Endpoints {
				if e.Name == "x/a-k8s-vm-eth0" {
					e.Interface = "vm"
				}
				by[e.Interface] = append(by[e.Interface], e.Config)
				guards[e.Interface] = fmt.Sprint("[", e.Addrs[0].As4()[3], "]")
			}
			for _, name := range names[:4] {
				cfg, guard := closed, "[]"
				if len(by[name]) == 1 {
					cfg, guard = by[name][0], guards[name]
				}
				want[name] = judge(check.Must(policy.New(cfg))(t))
				if has := n.has[name]; has.Policy != nil {
					check.Equal(t, fmt.Sprintf("seed %d, step %d: %s", seed, step, name), judge(has.Policy), want[name])
					check.Equal(t, fmt.Sprintf("seed %d, step %d: ARP of %s", seed, step, name), arps(t, has), guard)
				}
			}
		}
		if len(p.filter.ports) > 4 {
			t.Errorf("%d ports are kept", len(p.filter.ports))
		}
	}
}

// A label, a network and a port of an endpoint change members of sets, and nothing else is compiled again.
func TestMembersAlone(t *testing.T) {
	s := new(model.Store)
	put := func(key, v string) { s.Put(v3+key, []byte(v)) }
	put("profiles/kns.x", `{"spec":{}}`)
	put("workloadendpoints/x/a-k8s-w1-eth0", endpoint("x", "w1", `"app":"a"`, 1, ""))
	put("workloadendpoints/x/a-k8s-w2-eth0", endpoint("x", "w2", `"app":"b"`, 2, `,"ports":[{"name":"http","protocol":"TCP","port":80}]`))
	put("networkpolicies/x/p", `{"spec":{"selector":"app == 'a'","ingress":[{"action":"Allow","source":{"selector":"app == 'b'"}}],"egress":[{"action":"Allow","protocol":"TCP","destination":{"ports":["http"]}}]}}`)
	config := func() *policy.Config { return rules.Compile("a", s).Endpoints[0].Config }
	was := config()
	put("workloadendpoints/x/a-k8s-w2-eth0", endpoint("x", "w2", `"app":"c"`, 2, `,"ports":[{"name":"http","protocol":"TCP","port":81}]`))
	put("networksets/x/s", `{"metadata":{"labels":{"app":"b"}},"spec":{"nets":["192.0.2.0/24","10.0.0.0/8"]}}`)
	known := differences{}
	c := known.of(was, config()).members
	if c == nil {
		t.Fatal("rules are compiled again")
	}
	check.Equal(t, "changes", fmt.Sprint(slices.Collect(maps.Values(c.Add)), slices.Collect(maps.Values(c.Delete)), slices.Collect(maps.Values(c.AddPorts)), slices.Collect(maps.Values(c.DeletePorts))),
		"[[10.0.0.0/8 192.0.2.0/24]] [[10.65.1.2/32]] [[10.65.1.2,tcp:81]] [[10.65.1.2,tcp:80]]")
	put("networkpolicies/x/p", `{"spec":{"selector":"app == 'a'","ingress":[{"action":"Deny","source":{"selector":"app == 'b'"}}],"egress":[{"action":"Allow","protocol":"TCP","destination":{"ports":["http"]}}]}}`)
	check.True(t, known.of(was, config()).members == nil, "another action is a change of members")
	check.True(t, known.of(closed, &policy.Config{Default: policy.Deny}).members == nil, "what is closed opens by a change of members")
	d := known.of(nil, was)
	check.True(t, d.members == nil && d.config == was, "what nobody knows is changed")
}

// newConfigured returns a Plane that knows two workloads of a namespace where all is allowed, on a node without ports yet.
func newConfigured(t *testing.T) (*ported, *Plane) {
	n := &ported{has: map[string]policy.Filter{}}
	p := newPorted(t, n)
	p.put("profiles/kns.x", `{"spec":{"ingress":[{"action":"Allow"}],"egress":[{"action":"Allow"}]}}`)
	p.put("workloadendpoints/x/a-k8s-w1-eth0", endpoint("x", "w1", `"app":"a"`, 1, ""))
	p.put("workloadendpoints/x/a-k8s-vm-eth0", endpoint("x", "vm", `"app":"b"`, 5, ""))
	return n, p
}

// Workloads may change while a Plane runs: ports that are new are closed until their endpoint is known, and others have nothing any more.
func TestConfigureWorkloads(t *testing.T) {
	n, p := newConfigured(t)
	ports := func() string {
		for _, port := range []string{"cali1", "vm", "tap9"} { // the node asks for all of them
			n.add(port)
		}
		p.apply()
		var list []string
		for _, w := range p.Status().Workloads {
			list = append(list, fmt.Sprintf("%s %q %q", w.Port, w.Endpoint, w.Closed))
		}
		return strings.Join(list, ", ")
	}
	n.add("cali1")
	p.applyPolicies()
	check.Equal(t, "before", ports(), `cali1 "x/a-k8s-w1-eth0" "", vm "x/a-k8s-vm-eth0" ""`)
	was := n.has["cali1"]

	next := setting.Clone(p.cfg)
	next.Workloads.Ports = map[string]string{"tap9": "x/a-k8s-vm-eth0"}
	check.OK(t, p.Configure(&next))
	p.routes.Store(false)
	check.Equal(t, "another port of the endpoint", ports(), `cali1 "x/a-k8s-w1-eth0" "", tap9 "x/a-k8s-vm-eth0" ""`)
	check.Equal(t, "vm is no workload", n.has["vm"], policy.Filter{})
	check.Equal(t, "what stays", n.has["cali1"], was)
	check.True(t, judge(n.has["tap9"].Policy) != "| | ", "the port that is new is closed")

	next.Workloads = Workloads{Ports: map[string]string{"cali1": "x/a-k8s-gone-eth0"}, Unguarded: true}
	check.OK(t, p.Configure(&next))
	p.routes.Store(false)
	check.Equal(t, "another endpoint", ports(), `cali1 "" "no WorkloadEndpoint of the node is known"`)
	check.Equal(t, "it is closed", judge(n.has["cali1"].Policy), "| | ")

	next.Workloads = Workloads{}
	check.ErrorHas(t, p.Configure(&next), "calico: Config.Workloads: cannot change while the Plane runs")
}

// Ports of workloads may be closed for others while a Plane runs, and are its own again when it is configured, as it was, too: they keep
// their policies, but for one that has come meanwhile, of which nothing is that of the port before.
func TestConfigureClosed(t *testing.T) {
	n, p := newConfigured(t)
	p.put("workloadendpoints/x/a-k8s-w2-eth0", endpoint("x", "w2", `"app":"a"`, 2, ""))
	for _, port := range []string{"cali1", "cali2", "vm"} {
		n.add(port)
	}
	p.applyPolicies()
	was := maps.Clone(n.has)
	other := Workloads{Ports: map[string]string{"tap9": "x/a-k8s-vm-eth0"}}
	check.OK(t, other.Close(n))
	delete(n.has, "cali2")
	n.add("tap9")
	check.Equal(t, "what is closed", judge(n.has["tap9"].Policy), "| | ")
	check.OK(t, p.cfg.Workloads.Close(n))
	n.add("cali2")
	check.Equal(t, "what comes meanwhile", judge(n.has["cali2"].Policy), "| | ")
	same := setting.Clone(p.cfg)
	check.OK(t, p.Configure(&same))
	p.routes.Store(false)
	p.apply()
	check.Equal(t, "cali1", n.has["cali1"], was["cali1"])
	check.Equal(t, "vm", n.has["vm"], was["vm"])
	check.Equal(t, "tap9, which is no workload", n.has["tap9"], policy.Filter{})
	check.True(t, n.has["cali2"].Policy != was["cali2"].Policy, "cali2 has the flows of the port before")
	check.Equal(t, "cali2", judge(n.has["cali2"].Policy), judge(was["cali2"].Policy))
	delete(n.has, "cali2")
	n.add("cali2")
	check.Equal(t, "a port that comes later", judge(n.has["cali2"].Policy), judge(was["cali2"].Policy))
}

// Status says of each workload which policies it has, what of them is not done, and why it is closed.
func TestWorkloadStatus(t *testing.T) {
	n := &ported{has: map[string]policy.Filter{}}
	p := newPorted(t, n)
	for _, port := range []string{"cali1", "cali9", "eth0"} {
		n.f(port, policy.Filter{})
		n.add(port)
	}
	delete(n.has, "eth0")
	status := func() string {
		var list []string
		for _, w := range p.Status().Workloads {
			list = append(list, fmt.Sprintf("%s %v %q %v %v %v %q", w.Port, w.There, w.Endpoint, w.Addrs, w.Policies, w.NotDone, w.Closed))
		}
		return strings.Join(list, "\n")
	}
	check.Equal(t, "before", status(), `cali1 true "" [] [] [] "the datastore has not been read"`+"\n"+`cali9 true "" [] [] [] "the datastore has not been read"`)
	p.put("profiles/kns.x", `{"spec":{}}`)
	p.put("workloadendpoints/x/a-k8s-w1-eth0", endpoint("x", "w1", `"app":"a"`, 1, ""))
	p.put("workloadendpoints/x/a-k8s-w2-eth0", endpoint("x", "w2", `"app":"a"`, 2, ""))
	p.put("workloadendpoints/x/a-k8s-w3-eth0", endpoint("x", "w3", `"app":"a"`, 2, ""))
	p.put("workloadendpoints/x/a-k8s-w4-eth0", strings.ReplaceAll(endpoint("x", "w4", `"app":"a"`, 4, ""), "cali4", "tap4"))
	p.put("workloadendpoints/x/a-k8s-vm-eth0", endpoint("x", "vm", `"app":"b"`, 5, ""))
	p.put("workloadendpoints/x/a-k8s-w6-eth0", strings.ReplaceAll(endpoint("x", "w6", `"app":"a"`, 6, ""), `"10.65.1.6/32"`, ""))
	p.put("globalnetworkpolicies/late", `{"spec":{"tier":"gone","ingress":[{"action":"Allow"}]}}`)
	p.put("networkpolicies/x/p", `{"spec":{"tier":"gone","order":1,"selector":"app == 'a'","ingress":[{"action":"Allow","http":{"methods":["GET"]}}]}}`)
	p.put("globalnetworkpolicies/usual", `{"spec":{"tier":"default","selector":"app == 'c'"}}`)
	p.applyPolicies()
	const gone = "spec.tier: there is no tiers/gone that could be read: the tier is behind all others, and denies what its policies do not decide"
	check.Equal(t, "after", status(), strings.Join([]string{
		`cali1 true "x/a-k8s-w1-eth0" [10.65.1.1] [networkpolicies/x/p globalnetworkpolicies/late profiles/kns.x] [networkpolicies/x/p: ` + gone + ` networkpolicies/x/p: spec.ingress[0]: http is not carried: the rule is left out globalnetworkpolicies/late: ` + gone + `] ""`,
		`cali2 false "" [] [] [] "is the port of workloadendpoints/x/a-k8s-w2-eth0 and of workloadendpoints/x/a-k8s-w3-eth0"`,
		`cali9 true "" [] [] [] "no WorkloadEndpoint of the node is known"`,
		`vm false "x/a-k8s-vm-eth0" [10.65.1.5] [globalnetworkpolicies/late profiles/kns.x] [globalnetworkpolicies/late: ` + gone + `] ""`,
	}, "\n"))
	problems := fmt.Sprint(p.Status().Problems)
	check.True(t, !strings.Contains(problems, "tiers/default"), "problems %s: nobody misses the tier default", problems)
	for _, want := range []string{
		"workloadendpoints/x/a-k8s-w3-eth0: spec.interfaceName cali2: is that of workloadendpoints/x/a-k8s-w2-eth0, too: it has no traffic",
		"workloadendpoints/x/a-k8s-w4-eth0: spec.interfaceName tap4: is no workload by Config.Workloads: nothing is filtered there",
		"networkpolicies/x/p: spec.ingress[0]: http is not carried",
		"workloadendpoints/x/a-k8s-w6-eth0: spec.ipNetworks is empty: it has no traffic",
	} {
		check.True(t, strings.Contains(problems, want), "problems %s, want %s", problems, want)
	}
	p.put("networkpolicies/x/q", "junk")
	p.applyPolicies()
	check.True(t, strings.HasSuffix(strings.Split(status(), "\n")[0], `"networkpolicies/x/q: could not be read"`), "status %s", status())
	check.Equal(t, "an endpoint of a closed namespace passes", judge(n.has["cali1"].Policy), "| | ")
	check.Equal(t, "resources", p.Status().Resources["workloadendpoints"], 6)
}

// However many endpoints are those of no port, and say so, problems have a limit.
func TestManyProblems(t *testing.T) {
	p := newPorted(t, &ported{has: map[string]policy.Filter{}})
	const more = 7
	for i := range model.MaxProblems + more {
		name := fmt.Sprint("w", i)
		p.put("workloadendpoints/x/a-k8s-"+name+"-eth0", strings.ReplaceAll(endpoint("x", name, `"app":"a"`, 1, ""), "cali1", "tap1"))
	}
	p.put("profiles/kns.x", `{"spec":{}}`)
	p.applyPolicies()
	st := p.Status()
	check.Equal(t, "problems", len(st.Problems), model.MaxProblems)
	check.Equal(t, "more", st.More, more)
}

// A workload that no policy and no profile is about sends and gets nothing, but has ARP, whether its port or its endpoint was there first.
func TestNoPolicies(t *testing.T) {
	n := &ported{has: map[string]policy.Filter{}}
	p := newPorted(t, n)
	n.add("cali1")
	p.put("workloadendpoints/x/a-k8s-w1-eth0", strings.ReplaceAll(endpoint("x", "w1", `"app":"a"`, 1, ""), `"kns.x"`, ""))
	p.applyPolicies()
	check.Equal(t, "the port first", arps(t, n.has["cali1"]), "[1]")
	delete(n.has, "cali1")
	n.add("cali1")
	check.Equal(t, "the endpoint first", arps(t, n.has["cali1"]), "[1]")
	check.Equal(t, "what passes", judge(n.has["cali1"].Policy), "| | ")
}

// Labels of the node choose the FelixConfiguration that says what workloads may be: a change of them changes that.
func TestGuardByLabels(t *testing.T) {
	n := &ported{has: map[string]policy.Filter{}}
	p := newPorted(t, n)
	n.add("cali1")
	r := &reader{p: p}
	tell := func(list ...string) {
		for i := 0; i < len(list); i += 2 {
			r.Put(v3+list[i], []byte(list[i+1]))
		}
		check.OK(t, r.Done(t.Context()))
		p.routes.Store(false)
		p.apply()
	}
	r.Reset()
	tell("workloadendpoints/x/a-k8s-w1-eth0", endpoint("x", "w1", `"app":"a"`, 1, ""), "nodes/a", `{"metadata":{"labels":{"rack":"r1"}}}`,
		"felixconfigurations/r2", `{"spec":{"nodeSelector":"rack == 'r2'","allowIPIPPacketsFromWorkloads":true}}`)
	check.Equal(t, "in rack 1", p.Status().Workloads[0].Guard.IPIP, false)
	tell("nodes/a", `{"metadata":{"labels":{"rack":"r2"}}}`)
	check.Equal(t, "in rack 2", p.Status().Workloads[0].Guard.IPIP, true)
}

func TestWorkloadsCheck(t *testing.T) {
	none := Config{Node: "a", VRF: "v", Workloads: Workloads{Unguarded: true}}
	check.ErrorHas(t, none.Check(), "calico: Config.Workloads.Unguarded: true: requires prefixes or ports")
	c := Config{Node: "a", VRF: "v", Workloads: Workloads{Prefixes: []string{"cali", ""}, Ports: map[string]string{"a": "x/y", "b": "x", "c": "x/y/z", "": "x/y", "d": "/y"}}}
	check.ErrorHas(t, c.Check(), `calico: Config.Workloads.Prefixes[1]`, `Workloads.Ports[""]`, `Workloads.Ports["b"]: "x": must be a WorkloadEndpoint of a port`, `Workloads.Ports["c"]`, `Workloads.Ports["d"]`)
	c.Workloads = Workloads{Prefixes: []string{"cali"}, Ports: map[string]string{"a": "x/y"}}
	check.OK(t, c.Check())
	n := check.Must(node.New(nil))(t)
	n.Close()
	if _, err := New(n, &c); !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
}

// A guard is there from the first frame on, also if what a Plane takes over has none, and a port that is unguarded has another.
func TestGuardFirst(t *testing.T) {
	n := &ported{has: map[string]policy.Filter{"cali2": {Policy: check.Must(policy.New(nil))(t)}}}
	p := newPorted(t, n)
	n.add("cali1")
	check.Equal(t, "a port whose endpoint is not known", arps(t, n.has["cali1"]), "[]")
	check.Equal(t, "what another has left", arps(t, n.has["cali2"]), "[0 1 2 3 4 5]")
	for i := range 2 {
		p.put(fmt.Sprintf("workloadendpoints/x/a-k8s-w%d-eth0", i+1), endpoint("x", fmt.Sprint("w", i+1), `"app":"a"`, i+1, ""))
	}
	p.applyPolicies()
	check.Equal(t, "a known endpoint", arps(t, n.has["cali1"]), "[1]")
	check.Equal(t, "and another", arps(t, n.has["cali2"]), "[2]")
	delete(n.has, "cali1")
	n.add("cali1")
	check.Equal(t, "a port that is back", arps(t, n.has["cali1"]), "[1]")
	check.Equal(t, "status", fmt.Sprint(p.Status().Workloads[0].Guard.Addrs, p.Status().Workloads[0].Dropped), "[10.65.1.1/32] {0 5 0 0 0 0 0 0}")

	n = &ported{has: map[string]policy.Filter{}}
	p = check.Must(New(n, &Config{Node: "a", VRF: "v", Workloads: Workloads{Prefixes: []string{"cali"}, Unguarded: true}}))(t)
	p.store = new(model.Store)
	n.add("cali1")
	check.Equal(t, "unguarded and not known", arps(t, n.has["cali1"]), "[]")
	p.put("workloadendpoints/x/a-k8s-w1-eth0", endpoint("x", "w1", `"app":"a"`, 1, ""))
	p.applyPolicies()
	check.Equal(t, "unguarded", arps(t, n.has["cali1"]), "[0 1 2 3 4 5]")
}
