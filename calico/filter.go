package calico

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/vxswitch/vxswitch/calico/internal/model"
	"github.com/vxswitch/vxswitch/calico/internal/rules"
	"github.com/vxswitch/vxswitch/policy"
	"github.com/vxswitch/vxswitch/setting"
)

// closed is what a workload may do whose endpoint is not known: nothing, ARP and neighbour discovery included.
var closed = &policy.Config{Default: policy.Deny, Rules: []policy.Rule{{Name: "closed", Action: policy.Deny, EtherTypes: []uint16{0x0800, 0x0806, 0x86dd}}}}

// A filter gives ports of workloads the policies of their endpoints, and guards with their addresses. Each port has a policy.Policy and a
// policy.Guard of its own, which stay while the port does: flows outlast changes, and what one workload has opened is not open for others.
type filter struct {
	node Node
	wake func() // has sync called soon

	mu    sync.Mutex
	cfg   Workloads          // is replaced, and not changed
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
	policy.Filter
	cfg   *policy.Config      // in force; nil for what a Plane before this one has left
	guard *policy.GuardConfig // likewise
	err   error
	asked uint64 // the round in which the node has asked
}

func newFilter(n Node, cfg Workloads, wake func()) *filter {
	return &filter{node: n, cfg: cfg, wake: wake, ports: map[string]*guarded{}}
}

// configure changes which ports are workloads. One that is new is closed until the next set.
func (f *filter) configure(cfg Workloads) error {
	f.mu.Lock()
	f.cfg = setting.Clone(cfg)
	f.mu.Unlock()
	return f.node.SetPortFilters(f.of)
}

// has reports whether a port is one of a workload.
func (w *Workloads) has(port string) bool {
	_, ok := w.Ports[port]
	return ok || slices.ContainsFunc(w.Prefixes, func(p string) bool { return strings.HasPrefix(port, p) })
}

// Close closes the ports of workloads before a Plane runs or changes, so that a node opens them closed. A port that has a policy, which a
// Plane before has left, keeps it, and its guard; that of no workload until the Plane begins or changes. Without workloads the policies and
// guards that Planes have left end.
func (w *Workloads) Close(n Node) error {
	if w.none() {
		return n.SetPortFilters(nil)
	}
	is := setting.Clone(*w)
	return n.SetPortFilters(func(port string, has policy.Filter) policy.Filter {
		if has.Policy == nil && is.has(port) {
			return begin(closed, is.unguarded()).Filter
		}
		return has
	})
}

func (w *Workloads) none() bool { return len(w.Prefixes)+len(w.Ports) == 0 }

// of is for Node.SetPortFilters: a port that is new has at once what its endpoint may do, if that is known.
func (f *filter) of(port string, has policy.Filter) policy.Filter {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.cfg.has(port) {
		return policy.Filter{}
	}
	g := f.ports[port]
	switch {
	case has.Policy == nil:
		g = begin(f.wanted(port))
	case g == nil || g.Filter != has:
		g = &guarded{Filter: has}
		if g.Guard == nil {
			g.Guard, _ = policy.NewGuard(noTunnels)
		}
		if _, is := has.Policy.Stats().Rules["closed"]; is { // by Workloads.Close
			g.cfg = closed
		}
	}
	f.ports[port], g.asked = g, f.round
	f.wake()
	return g.Filter
}

// begin returns a port with configs, or closed.
func begin(cfg *policy.Config, guard *policy.GuardConfig) *guarded {
	x := &guarded{cfg: cfg, guard: guard}
	if x.Policy, x.err = policy.New(cfg); x.err == nil {
		if x.Guard, x.err = policy.NewGuard(guard); x.err == nil {
			return x
		}
	}
	x.Policy, _ = policy.New(closed)
	x.Guard, _ = policy.NewGuard(nil)
	return x
}

// unguarded is the guard of what is closed, or has another guard.
func (w *Workloads) unguarded() *policy.GuardConfig {
	if w.Unguarded {
		return anything
	}
	return noTunnels
}

var (
	anything  = &policy.GuardConfig{DHCPServer: true, RouterAdvertisements: true, Tunnels: true}
	noTunnels = &policy.GuardConfig{}
)

// wanted returns what a port is to have. f.mu is held.
func (f *filter) wanted(port string) (*policy.Config, *policy.GuardConfig) {
	t := f.by[port]
	switch {
	case t == nil || t.why != "":
		return closed, f.cfg.unguarded()
	case f.cfg.Unguarded:
		return t.Config, anything
	}
	return t.Config, t.Guard
}

// set takes over a plan. What of it is not done here is returned.
func (f *filter) set(plan *rules.Plan) (list []model.Problem) {
	f.mu.Lock()
	cfg := f.cfg
	f.mu.Unlock()
	by := map[string]*target{}
	ports := map[string][]string{} // of endpoints
	for port, name := range cfg.Ports {
		ports[name] = append(ports[name], port)
	}
	for i := range plan.Endpoints {
		e := &plan.Endpoints[i]
		of := ports[e.Name]
		if _, other := cfg.Ports[e.Interface]; len(of) == 0 && !other && cfg.has(e.Interface) {
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
	there := f.node.PortFilters()
	f.mu.Lock()
	maps.DeleteFunc(f.ports, func(port string, g *guarded) bool { return there[port] != g.Filter && g.asked < round })
	todo := map[*guarded]guarded{}
	if f.by != nil {
		for port, g := range f.ports {
			cfg, guard := f.wanted(port)
			if cfg != g.cfg || !reflect.DeepEqual(guard, g.guard) {
				todo[g] = guarded{cfg: cfg, guard: guard}
			}
		}
	}
	f.mu.Unlock()
	known := differences{}
	for g, to := range todo {
		err := g.change(to.cfg, to.guard, known)
		f.mu.Lock()
		g.cfg, g.guard, g.err = to.cfg, to.guard, err
		f.mu.Unlock()
	}
}

// change puts other configs into force: a guard before what is open behind it. If that fails, the port is closed.
func (g *guarded) change(cfg *policy.Config, guard *policy.GuardConfig, known differences) (err error) {
	if cfg == closed {
		err = g.Policy.Update(closed)
	}
	if err == nil && !reflect.DeepEqual(guard, g.guard) {
		err = g.Guard.Update(guard)
	}
	switch {
	case err != nil || cfg == closed || cfg == g.cfg && g.err == nil:
	case g.err != nil:
		err = g.Policy.Update(cfg)
	default:
		if d := known.of(g.cfg, cfg); d.members != nil {
			err = g.Policy.ChangeSets(d.members)
		} else {
			err = g.Policy.Update(d.config)
		}
	}
	if err != nil {
		g.Policy.Update(closed)
	}
	return err
}
