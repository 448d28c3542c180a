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
	"encoding/binary"
	"fmt"
	"net/netip"
	"reflect"
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

	model.NotDone
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

// A Compiler makes Plans of what changes. The zero value has made none. It compiles again what a change touches: a policy or profile that
// is another one, the endpoints whose labels are, and members of sets of what has addresses.
type Compiler struct {
	Work Work

	node     string
	s        *model.Store
	plan     *Plan
	n        uint64 // of the plan
	tiers    []*tier
	read     []*ordered                // policies as they were read
	round    uint64                    // of tiers
	before   map[*resource.Policy]bool // of the round before
	profiles map[string]*profiled
	sets     sets
	felix    resource.Felix     // without nil
	chosen   map[string]*choice // by endpoint
	rulings  map[string]*made   // by what they are made of, of the plan before
	made     map[string]*made   // of this plan
	ids      uint64             // of ruled
	shut     string             // why nobody has traffic
	unread   map[string]string  // namespaces with a policy that could not be read, "" for all, and which
}

// Work counts what a Compiler has done since it was made.
type Work struct {
	Selected int // selectors that were asked whether they choose something
	Rules    int // rules that were read
	Rulings  int // that were put together
}

// A choice is the policies that select an endpoint.
type choice struct {
	labels []selector.Labels
	round  uint64
	by     map[*resource.Policy]bool
	list   []*ordered
}

// A made is a Ruling, and its config even if that has too many rules.
type made struct {
	*Ruling
	all *policy.Config
}

// Compile says what the workloads of a node may do. It says the same for the same resources.
func Compile(node string, s *model.Store) *Plan {
	return new(Compiler).compile(node, s, nil, false)
}

// Compile is like the function Compile, after changes of a store that are told to nobody else.
func (x *Compiler) Compile(node string, s *model.Store) *Plan {
	keys, all := s.Changes()
	return x.compile(node, s, keys, all && x.s == s && x.node == node)
}

// compile makes a plan after changes, or if these are not known, of everything.
func (x *Compiler) compile(node string, s *model.Store, keys []resource.Key, known bool) *Plan {
	if known {
		x.change(keys)
	} else {
		*x = Compiler{Work: x.Work, node: node, s: s, profiles: map[string]*profiled{}, chosen: map[string]*choice{}}
		x.sets.read(s, &x.Work)
		x.readTiers()
	}
	x.n++
	x.plan, x.unread, x.shut = &Plan{}, map[string]string{}, ""
	for _, p := range s.Problems(true) {
		x.problem(p.Resource, "%s", p.Why)
	}
	x.closed()
	for _, p := range x.read {
		for _, why := range p.lacks {
			x.problem(p.key.String(), "%s", why)
		}
	}
	x.readProfiles()
	x.readFelix(node)
	x.notCarried(node)
	x.made = map[string]*made{}
	chosen := map[string]*choice{}
	of := func(e *resource.Endpoint) bool { return e.Node == node }
	for name, e := range model.Some(s, resource.KindWorkload, of) {
		if len(e.Addrs) == 0 {
			x.problem("workloadendpoints/"+name, "spec.ipNetworks is empty: it has no traffic")
			continue
		}
		for _, field := range e.NotCarried {
			x.problem("workloadendpoints/"+name, "%s is not carried", field)
		}
		x.plan.Endpoints = append(x.plan.Endpoints, Endpoint{name, e.Interface, e.Addrs, x.guard(e), x.ruling(name, e)})
		if c := x.chosen[name]; c != nil {
			chosen[name] = c
		}
	}
	x.chosen = chosen
	x.settle()
	return x.plan
}

// change reads again what has changed.
func (x *Compiler) change(keys []resource.Key) {
	again := false
	for _, k := range keys {
		switch k.Kind {
		case resource.KindTier, resource.KindGlobalPolicy, resource.KindPolicy:
			again = true
		case resource.KindProfile:
			x.sets.profile(k.Name)
		case resource.KindWorkload, resource.KindHost, resource.KindGlobalSet, resource.KindSet:
			x.sets.change(k)
		}
	}
	if again {
		x.readTiers()
	}
}

// settle forgets what this plan has not used.
func (x *Compiler) settle() {
	for _, m := range x.made {
		x.sets.use(m.all)
	}
	settle(x.sets.nets)
	settle(x.sets.ports)
	x.rulings = x.made
	for _, p := range x.read {
		if p.rules != nil && p.rules.used != x.n {
			p.rules = nil
		}
	}
	for name, p := range x.profiles {
		if p.used != x.n {
			delete(x.profiles, name)
		}
	}
}

func (x *Compiler) problem(of string, format string, args ...any) { x.plan.Note(of, format, args...) }

// closed looks for what is not there to be decided by.
func (x *Compiler) closed() {
	for k := resource.KindFelix; k < resource.Kinds && !k.Staged(); k++ {
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
func (x *Compiler) notCarried(node string) {
	for name := range model.Some(x.s, resource.KindHost, func(e *resource.Endpoint) bool { return e.Node == node }) {
		x.problem("hostendpoints/"+name, "is not carried: nothing is filtered there, and its addresses are in sets")
	}
	for k := resource.KindStagedGlobalPolicy; k < resource.Kinds; k++ {
		for name := range model.All[resource.Staged](x.s, k) {
			x.problem(resource.Key{Kind: k, Name: name}.String(), "is staged: it does nothing")
		}
	}
	for _, k := range []resource.Kind{resource.KindGlobalSet, resource.KindSet} {
		for name, s := range model.Some(x.s, k, func(s *resource.Set) bool { return len(s.Wrong) > 0 }) {
			for _, why := range s.Wrong {
				x.problem(resource.Key{Kind: k, Name: name}.String(), "%s", why)
			}
		}
	}
}

// ruling returns that of an endpoint.
func (x *Compiler) ruling(name string, e *resource.Endpoint) *Ruling {
	namespace, _, _ := strings.Cut(name, "/")
	if why := cmp.Or(x.shut, x.unread[""], x.unread[namespace]); why != "" {
		return x.together("\x00"+why, nil, why)
	}
	if why := x.spoofing(e); why != "" {
		x.problem("workloadendpoints/"+name, "%s: it has no traffic", why)
		return x.together("\x00"+why, nil, why)
	}
	var list []*ruled
	for _, p := range x.choose(name, x.sets.labels(e.Labels, e.Profiles)) {
		list = append(list, x.ruled(p))
	}
	seen := map[string]bool{}
	for _, p := range e.Profiles {
		if !seen[p] { // a second time it decides nothing
			seen[p] = true
			list = append(list, x.profile(p))
		}
	}
	var by []byte
	for _, r := range list {
		r.used = x.n
		by = binary.BigEndian.AppendUint64(by, r.id)
	}
	r := x.together(string(by), list, "")
	if r.Closed != "" {
		x.problem("workloadendpoints/"+name, "%s: it has no traffic", r.Closed)
	}
	return r
}

// choose returns the policies of an endpoint with labels, in order. Those that were there when it was asked before are not asked again.
func (x *Compiler) choose(name string, labels []selector.Labels) []*ordered {
	c := x.chosen[name]
	if c == nil || !reflect.DeepEqual(c.labels, labels) {
		c = &choice{labels: labels}
		x.chosen[name] = c
	}
	if c.round == x.round {
		return c.list
	}
	was := c.by
	knows := c.round != 0 && c.round == x.round-1
	c.by, c.list, c.round = map[*resource.Policy]bool{}, nil, x.round
	for _, t := range x.tiers {
		for _, p := range t.policies {
			if p.Host {
				continue
			}
			is := was[p.Policy]
			if !knows || !x.before[p.Policy] {
				x.Work.Selected++
				is = p.Selector.Matches(labels...)
			}
			if is {
				c.by[p.Policy] = true
				c.list = append(c.list, p)
			}
		}
	}
	return c.list
}

// together returns what some groups of rules make, which others may have already. If a reason is given, nothing passes.
func (x *Compiler) together(by string, list []*ruled, closed string) *Ruling {
	if m := x.made[by]; m != nil {
		return m.Ruling
	}
	m := x.rulings[by]
	if m == nil {
		m = x.make(list, closed)
	} else if all := x.sets.again(m.all); all != m.all {
		r := *m.Ruling
		if r.Config == m.all {
			r.Config = all
		}
		m = &made{&r, all}
	}
	x.made[by] = m
	return m.Ruling
}

func (x *Compiler) make(list []*ruled, closed string) *made {
	x.Work.Rulings++
	r := &Ruling{Config: &policy.Config{Default: policy.Deny}, Closed: closed}
	for _, direction := range []policy.Direction{policy.Egress, policy.Ingress} {
		r.Config.Tiers = append(r.Config.Tiers, tiersOf(direction, list)...)
	}
	for _, l := range list {
		r.Policies, r.NotDone = append(r.Policies, l.key), append(r.NotDone, l.notDone...)
	}
	m := &made{r, r.Config}
	if x.sets.of(r.Config); tooMany(r.Config) {
		r.Config, r.Closed = &policy.Config{Default: policy.Deny}, fmt.Sprintf("has more than the %d rules that one can have", policy.MaxRules)
	}
	return m
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
