// Package rules says what the policies of Calico mean for the workloads of one node: a policy.Config for each of its workload endpoints.
// It knows no etcd, no clock and no port: a model.Store has resources, and [Compile] makes a [Plan] of them.
//
//	tiers, by order        policies in each, by order     behind all tiers
//	kube-admin  1000  -->  deny-telnet  10           -->  profiles of the endpoint --> denied
//	default     10^6       allow-web    100
//	                       none decides: the tier denies, or passes on
//
// What a rule asks of who has an address is a set of addresses: of workload and host endpoints of all nodes, and of network sets. A
// named port is a set of ports. The name of a set says what it means, and nothing else: endpoints share sets.
//
// # What it does not do
//
// Nothing here lets through more than Calico does, but for rules without a protocol that name a port of an endpoint whose protocol is written as
// a number: such a port counts here. A rule with http, services, a field that nobody knows, or a mistake is named as a
// [model.Problem]; if it allows or logs it is left out, and if it denies, passes on, or does something unknown, it denies all that the
// rest of it is about. An endpoint that might have a policy which could not be read has no traffic, and neither has any endpoint if
// there are more resources than are read.
//
// Policies with doNotTrack or preDNAT are about host endpoints alone, and so is applyOnForward: these are named. Staged policies do
// nothing, as in Calico. Frames other than IP, ARP and neighbour discovery do not pass. A rule with an ICMPv6 type of neighbour discovery
// is about that of the workload, too, which in Calico no policy is about.
//
// The policy.GuardConfig of an endpoint has its MAC and addresses, and says which tunnels the FelixConfigurations let it make.
package rules

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/vxswitch/vxswitch/calico/internal/model"
	"github.com/vxswitch/vxswitch/calico/internal/resource"
	"github.com/vxswitch/vxswitch/calico/internal/selector"
	"github.com/vxswitch/vxswitch/policy"
)

// A Plan is what the workloads of a node may do.
type Plan struct {
	Endpoints []Endpoint // of the node, by name; whoever is not among them may do nothing

	Problems []model.Problem
	More     int // problems
}

// An Endpoint is a workload endpoint.
type Endpoint struct {
	Name      string // NAMESPACE/NAME
	Interface string
	Addrs     []netip.Addr
	Guard     *policy.GuardConfig
	*Ruling
}

// A Ruling is what endpoints with the same policies and profiles have in common. It must not be changed.
type Ruling struct {
	// Config is what they may do, with all sets that the rules name. Its slot Ingress is what the workload sends, which is egress in
	// Calico.
	Config *policy.Config

	Policies []string // and profiles behind them, in order, such as globalnetworkpolicies/deny-telnet
	NotDone  []string // what of them is not done, the first 100 of each
	Closed   string   // why nothing passes, whatever they say; "" if they decide
}

// A compiler makes a Plan.
type compiler struct {
	s        *model.Store
	plan     *Plan
	tiers    []*tier
	profiles map[string]*ruled
	sets     sets
	felix    resource.Felix     // without nil
	rulings  map[string]*Ruling // by what they are made of
	shut     string             // why nobody has traffic
	unread   map[string]string  // namespaces with a policy that could not be read, "" for all, and which
}

// Compile says what the workloads of a node may do. It says the same for the same resources.
func Compile(node string, s *model.Store) *Plan {
	x := &compiler{s: s, plan: &Plan{}, profiles: map[string]*ruled{}, rulings: map[string]*Ruling{}, unread: map[string]string{}}
	for _, p := range s.Problems(true) {
		x.problem(p.Resource, "%s", p.Why)
	}
	x.closed()
	x.sets.read(s)
	x.readTiers()
	x.readProfiles()
	x.readFelix(node)
	x.notCarried(node)
	for name, e := range model.All[resource.Endpoint](s, resource.KindWorkload) {
		if e.Node == node && len(e.Addrs) > 0 {
			x.plan.Endpoints = append(x.plan.Endpoints, Endpoint{name, e.Interface, e.Addrs, x.guard(e), x.ruling(name, e)})
		}
	}
	return x.plan
}

func (x *compiler) problem(of string, format string, args ...any) {
	if len(x.plan.Problems) >= model.MaxProblems {
		x.plan.More++
		return
	}
	x.plan.Problems = append(x.plan.Problems, model.Problem{Resource: of, Why: fmt.Sprintf(format, args...)})
}

// closed looks for what is not there to be decided by.
func (x *compiler) closed() {
	for k := resource.KindTier; k < resource.Kinds && !k.Staged(); k++ {
		if n := x.s.Left(k); n > 0 {
			x.shut = k.String() + ": there are more than are read"
			x.problem(k.String(), "%d could not be read: no workload has traffic", n)
		}
	}
	for _, k := range []resource.Kind{resource.KindGlobalPolicy, resource.KindPolicy} {
		for _, name := range x.s.Unread(k) {
			key := resource.Key{Kind: k, Name: name}
			namespace, _ := key.Split()
			x.unread[namespace] = key.String() + ": could not be read"
			if namespace == "" {
				x.problem(key.String(), "could not be read: no workload has traffic")
			} else {
				x.problem(key.String(), "could not be read: no workload of the namespace has traffic")
			}
		}
	}
}

// notCarried names what is read and not done.
func (x *compiler) notCarried(node string) {
	for name, e := range model.All[resource.Endpoint](x.s, resource.KindHost) {
		if e.Node == node {
			x.problem("hostendpoints/"+name, "is not carried: nothing is filtered there, and its addresses are in sets")
		}
	}
	for k := resource.KindStagedGlobalPolicy; k < resource.Kinds; k++ {
		for name := range model.All[resource.Staged](x.s, k) {
			x.problem(resource.Key{Kind: k, Name: name}.String(), "is staged: it does nothing")
		}
	}
	for _, k := range []resource.Kind{resource.KindGlobalSet, resource.KindSet} {
		for name, s := range model.All[resource.Set](x.s, k) {
			for _, why := range s.Wrong {
				x.problem(resource.Key{Kind: k, Name: name}.String(), "%s", why)
			}
		}
	}
}

// ruling returns that of an endpoint.
func (x *compiler) ruling(name string, e *resource.Endpoint) *Ruling {
	namespace, _, _ := strings.Cut(name, "/")
	if why := cmp.Or(x.shut, x.unread[""], x.unread[namespace]); why != "" {
		return x.made("\x00"+why, nil, why)
	}
	if why := x.spoofing(e); why != "" {
		x.problem("workloadendpoints/"+name, "%s: it has no traffic", why)
		return x.made("\x00"+why, nil, why)
	}
	labels := x.sets.labels(e.Labels, e.Profiles)
	var list []*ruled
	var by strings.Builder
	for i, t := range x.tiers {
		for j, p := range t.policies {
			if !p.Host && p.Selector.Matches(labels...) {
				list = append(list, x.ruled(t, p))
				fmt.Fprintf(&by, "%d.%d ", i, j)
			}
		}
	}
	seen := map[string]bool{}
	for _, p := range e.Profiles {
		if !seen[p] { // a second time it decides nothing
			seen[p] = true
			list = append(list, x.profile(p))
			by.WriteString("\x00" + p)
		}
	}
	r := x.made(by.String(), list, "")
	if r.Closed != "" {
		x.problem("workloadendpoints/"+name, "%s: it has no traffic", r.Closed)
	}
	return r
}

// made returns what some groups of rules make, which others may have already. If a reason is given, nothing passes.
func (x *compiler) made(by string, list []*ruled, closed string) *Ruling {
	if r := x.rulings[by]; r != nil {
		return r
	}
	r := &Ruling{Config: &policy.Config{Default: policy.Deny}, Closed: closed}
	x.rulings[by] = r
	for _, direction := range []policy.Direction{policy.Egress, policy.Ingress} {
		r.Config.Tiers = append(r.Config.Tiers, tiersOf(direction, list)...)
	}
	for _, l := range list {
		r.Policies, r.NotDone = append(r.Policies, l.key), append(r.NotDone, l.notDone...)
	}
	if x.sets.of(r.Config); tooMany(r.Config) {
		r.Config, r.Closed = &policy.Config{Default: policy.Deny}, fmt.Sprintf("has more than the %d rules that one can have", policy.MaxRules)
	}
	return r
}

// tooMany reports whether a config cannot be had. All else in it is right.
func tooMany(cfg *policy.Config) bool {
	c := *cfg
	c.Sets, c.PortSets = map[string][]netip.Prefix{}, map[string][]policy.Endpoint{}
	for name := range cfg.Sets {
		c.Sets[name] = nil
	}
	for name := range cfg.PortSets {
		c.PortSets[name] = nil
	}
	return c.Check() != nil
}

// tiersOf returns the tiers of one direction.
func tiersOf(direction policy.Direction, list []*ruled) (tiers []policy.Tier) {
	words := map[policy.Direction]string{policy.Egress: "ingress ", policy.Ingress: "egress "} // in Calico
	for _, r := range list {
		rules, ok := r.rules[direction]
		if !ok {
			continue
		}
		name := words[direction] + r.group
		if n := len(tiers); n > 0 && tiers[n-1].Name == name {
			tiers[n-1].Rules = append(tiers[n-1].Rules, rules...)
			continue
		}
		t := policy.Tier{Name: name, Direction: direction, Rules: slices.Clone(rules)}
		if r.denies {
			t.Default = new(policy.Deny)
		}
		tiers = append(tiers, t)
	}
	return tiers
}

// labels returns the labels of a thing: its own, and then those of its profiles.
func (s *sets) labels(own selector.Labels, profiles []string) []selector.Labels {
	list := []selector.Labels{own}
	for _, p := range profiles {
		if x := model.One[resource.Profile](s.store, resource.KindProfile, p); x != nil {
			list = append(list, x.Labels)
		}
	}
	return list
}
