package calico

import (
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/vxswitch/vxswitch/calico/internal/model"
	"github.com/vxswitch/vxswitch/calico/internal/rules"
	"github.com/vxswitch/vxswitch/policy"
	"github.com/vxswitch/vxswitch/setting"
)

// closed is what a workload may do whose endpoint is not known.
var closed = &policy.Config{Default: policy.Deny}

// A filter gives ports of workloads the policies of their endpoints. Each port has a policy.Policy of its own, which stays while the
// port does: flows outlast changes, and what one workload has opened is not open for others.
type filter struct {
	node Node
	cfg  Workloads
	wake func() // has sync called soon

	mu    sync.Mutex
	by    map[string]*target // by port; nil before the datastore is read
	ports map[string]*guarded
	round uint64 // of sync
}

// A target is what is known of a port.
type target struct {
	*rules.Endpoint
	why string // it is not this one alone
}

// A guarded is a port of the node.
type guarded struct {
	*policy.Policy
	cfg   *policy.Config // in force; nil for what a Plane before this one has left
	err   error
	asked uint64 // the round in which the node has asked
}

func newFilter(n Node, cfg Workloads, wake func()) *filter {
	return &filter{node: n, cfg: cfg, wake: wake, ports: map[string]*guarded{}}
}

// has reports whether a port is one of a workload.
func (w *Workloads) has(port string) bool {
	_, ok := w.Ports[port]
	return ok || slices.ContainsFunc(w.Prefixes, func(p string) bool { return strings.HasPrefix(port, p) })
}

// Close closes the ports of workloads before a Plane runs, so that a node opens them closed. A port that has a policy, which a Plane
// before has left, keeps it. Without workloads the policies that Planes have left end.
func (w *Workloads) Close(n Node) error {
	if w.none() {
		return n.SetPortPolicies(nil)
	}
	is := setting.Clone(*w)
	return n.SetPortPolicies(func(port string, has *policy.Policy) *policy.Policy {
		switch {
		case !is.has(port):
			return nil
		case has == nil:
			return begin(closed).Policy
		}
		return has
	})
}

func (w *Workloads) none() bool { return len(w.Prefixes)+len(w.Ports) == 0 }

// policy is for Node.SetPortPolicies: a port that is new has at once what its endpoint may do, if that is known.
func (f *filter) policy(port string, has *policy.Policy) *policy.Policy {
	if !f.cfg.has(port) {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	g := f.ports[port]
	switch {
	case has == nil:
		g = begin(f.config(port))
	case g == nil:
		g = &guarded{Policy: has}
		if len(has.Stats().Rules) == 0 { // by Workloads.Close
			g.cfg = closed
		}
	}
	f.ports[port], g.asked = g, f.round
	f.wake()
	return g.Policy
}

// begin returns a port with a config, or closed.
func begin(cfg *policy.Config) *guarded {
	p, err := policy.New(cfg)
	if err != nil {
		p, _ = policy.New(closed)
	}
	return &guarded{Policy: p, cfg: cfg, err: err}
}

// config returns that of a port. f.mu is held.
func (f *filter) config(port string) *policy.Config {
	if t := f.by[port]; t != nil && t.why == "" {
		return t.Config
	}
	return closed
}

// set takes over a plan. What of it is not done here is returned.
func (f *filter) set(plan *rules.Plan) (list []model.Problem) {
	by := map[string]*target{}
	ports := map[string][]string{} // of endpoints
	for port, name := range f.cfg.Ports {
		ports[name] = append(ports[name], port)
	}
	for i := range plan.Endpoints {
		e := &plan.Endpoints[i]
		of := ports[e.Name]
		if _, other := f.cfg.Ports[e.Interface]; len(of) == 0 && !other && f.cfg.has(e.Interface) {
			of = []string{e.Interface}
		}
		if len(of) == 0 {
			list = append(list, model.Problem{Resource: "workloadendpoints/" + e.Name, Why: "spec.interfaceName " + e.Interface + ": is no workload by Config.Workloads: nothing is filtered there"})
		}
		for _, port := range of {
			if t := by[port]; t != nil {
				t.why = "is the port of workloadendpoints/" + t.Name + " and of workloadendpoints/" + e.Name
				list = append(list, model.Problem{Resource: "workloadendpoints/" + e.Name, Why: "spec.interfaceName " + port + ": is that of workloadendpoints/" + t.Name + ", too: it has no traffic"})
				continue
			}
			by[port] = &target{Endpoint: e}
		}
	}
	f.mu.Lock()
	f.by = by
	f.mu.Unlock()
	return list
}

// sync has all ports do what is known of them. Only one goroutine calls it.
func (f *filter) sync() {
	f.mu.Lock()
	f.round++
	round := f.round
	f.mu.Unlock()
	there := f.node.PortPolicies()
	f.mu.Lock()
	maps.DeleteFunc(f.ports, func(port string, g *guarded) bool { return there[port] != g.Policy && g.asked < round })
	todo := map[*guarded]*policy.Config{}
	if f.by != nil {
		for port, g := range f.ports {
			if cfg := f.config(port); cfg != g.cfg {
				todo[g] = cfg
			}
		}
	}
	f.mu.Unlock()
	known := differences{}
	for g, cfg := range todo {
		err := g.change(cfg, known)
		f.mu.Lock()
		g.cfg, g.err = cfg, err
		f.mu.Unlock()
	}
}

// change puts another config into force. If that fails, the port is closed.
func (g *guarded) change(cfg *policy.Config, known differences) (err error) {
	if c := known.of(g.cfg, cfg); c != nil && g.err == nil {
		err = g.ChangeSets(c)
	} else {
		err = g.Update(cfg)
	}
	if err != nil {
		g.Update(closed)
	}
	return err
}
