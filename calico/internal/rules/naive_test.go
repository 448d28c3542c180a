package rules

import (
	"fmt"
	"math"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/calico/internal/selector"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/policy"
)

// A naive reads resources for one packet at one endpoint, in the words of Calico's API.
type naive struct {
	*world
	truth  bool // of what only Calico can answer
	in     bool // into the endpoint
	packet packet
}

func chosen(text string, labels map[string]string) bool {
	s, err := selector.Parse(text)
	if err != nil {
		panic(err)
	}
	return s.Matches(labels)
}

// labels returns those that a thing has, and inherits.
func (x *naive) labels(t *wThing) map[string]string {
	all := map[string]string{}
	for _, name := range slices.Backward(t.profiles) {
		for k, v := range x.profiles[name].LabelsToApply {
			all[k] = v
		}
	}
	for k, v := range t.labels {
		all[k] = v
	}
	if t.namespace != "" {
		all["projectcalico.org/namespace"] = t.namespace
	}
	if t.account != "" {
		all["projectcalico.org/serviceaccount"] = t.account
	}
	return all
}

// below returns the labels behind a prefix, without it.
func below(prefix string, labels map[string]string) map[string]string {
	out := map[string]string{}
	for k, v := range labels {
		if rest, ok := strings.CutPrefix(k, prefix); ok {
			out[rest] = v
		}
	}
	return out
}

// about reports whether a policy is about an endpoint, and about this direction.
func (x *naive) about(p *wPolicy, t *wThing) bool {
	if word := map[bool]string{true: "Ingress", false: "Egress"}[x.in]; len(p.Types) > 0 && !slices.Contains(p.Types, word) {
		return false
	}
	l := x.labels(t)
	return (p.namespace == "" || p.namespace == t.namespace) && chosen(p.Selector, l) &&
		(p.NamespaceSelector == "" || chosen(p.NamespaceSelector, below("pcns.", l))) &&
		(p.ServiceAccountSelector == "" || chosen(p.ServiceAccountSelector, below("pcsa.", l))) &&
		(p.ServiceAccountSelector == "" || p.namespace != "" || p.Selector != "all()" || l["projectcalico.org/serviceaccount"] != "" || p.NamespaceSelector != "")
}

// decide reports whether the packet passes.
func (x *naive) decide(t *wThing) bool {
	inf := func(o *float64) float64 {
		if o == nil {
			return math.Inf(1)
		}
		return *o
	}
	by := map[string][]wPolicy{}
	last := map[string]wPolicy{} // what was written last under a key is there
	for _, p := range x.policies {
		last[p.key()] = p
	}
	for _, p := range last {
		if p.Tier == "" {
			p.Tier = "default"
		}
		by[p.Tier] = append(by[p.Tier], p)
	}
	var names []string
	for name := range by {
		names = append(names, name)
	}
	rank := func(name string) (string, float64) {
		tier, ok := x.tiers[name]
		if !ok {
			return "z" + name, math.Inf(1)
		}
		return "a" + name, inf(tier.Order)
	}
	slices.SortFunc(names, func(a, b string) int {
		na, oa := rank(a)
		nb, ob := rank(b)
		if na[0] != nb[0] || oa == ob {
			return strings.Compare(na, nb)
		}
		return int(math.Copysign(1, oa-ob))
	})
next:
	for _, name := range names {
		list := by[name]
		slices.SortFunc(list, func(a, b wPolicy) int {
			if oa, ob := inf(a.Order), inf(b.Order); oa != ob {
				return int(math.Copysign(1, oa-ob))
			}
			return strings.Compare(a.name+"/"+a.namespace+"/"+a.kind, b.name+"/"+b.namespace+"/"+b.kind)
		})
		any := false
		for _, p := range list {
			if !x.about(&p, t) {
				continue
			}
			any = true
			switch x.run(p.Ingress, p.Egress, p.namespace) {
			case "Allow":
				return true
			case "Deny":
				return false
			case "Pass":
				continue next
			}
		}
		if any && x.tiers[name].DefaultAction != "Pass" {
			return false
		}
	}
	for _, name := range t.profiles {
		p, ok := x.profiles[name]
		switch {
		case name == "projectcalico-default-allow":
			return true
		case !ok:
			return false
		}
		switch x.run(p.Ingress, p.Egress, "") {
		case "Allow":
			return true
		case "Deny":
			return false
		}
	}
	return false
}

// run returns the action of the first rule that decides, "" for none.
func (x *naive) run(ingress, egress []wRule, namespace string) string {
	rules := egress
	if x.in {
		rules = ingress
	}
	for _, r := range rules {
		if r.Action != "Log" && x.matches(&r, namespace) {
			return r.Action
		}
	}
	return ""
}

var numbers = map[string]uint8{"TCP": 6, "UDP": 17, "SCTP": 132, "ICMP": 1, "ICMPv6": 58}

func (x *naive) matches(r *wRule, namespace string) bool {
	p := &x.packet
	if r.Cloud != "" && !x.truth {
		return false
	}
	if r.IPVersion != 0 && (r.IPVersion == 4) != p.src.Is4() || r.Protocol != "" && numbers[r.Protocol] != p.protocol || r.NotProtocol != "" && numbers[r.NotProtocol] == p.protocol {
		return false
	}
	icmp := func(i *wICMP) bool { return *i.Type == p.typ && (i.Code == nil || *i.Code == p.code) }
	if r.ICMP != nil && r.ICMP.Type != nil && !icmp(r.ICMP) || r.NotICMP != nil && icmp(r.NotICMP) {
		return false
	}
	return x.entity(&r.Source, r, namespace, p.src, p.sport) && x.entity(&r.Destination, r, namespace, p.dst, p.dport)
}

func (x *naive) entity(e *wEntity, r *wRule, namespace string, a netip.Addr, port uint16) bool {
	if e.Services != nil && !x.truth {
		return false
	}
	within := func(list []string) (in, of bool) {
		for _, text := range list {
			p := netip.MustParsePrefix(text)
			in, of = in || p.Contains(a), of || p.Addr().Is4() == a.Is4()
		}
		return in, of
	}
	if in, _ := within(e.Nets); len(e.Nets) > 0 && !in {
		return false
	}
	if in, of := within(e.NotNets); len(e.NotNets) > 0 && (in || !of) {
		return false
	}
	accounts := e.ServiceAccounts != nil && (e.ServiceAccounts.Selector != "" || len(e.ServiceAccounts.Names) > 0)
	asks := e.Selector != "" || e.NamespaceSelector != "" || accounts || namespace != "" && e.NotSelector != ""
	is := func(t *wThing) bool { return !asks || x.chooses(e, t, namespace, accounts) }
	has := func(t *wThing) bool {
		return slices.ContainsFunc(t.addrs, func(p netip.Prefix) bool { return p.Contains(a) })
	}
	who := func(is func(*wThing) bool) bool {
		return slices.ContainsFunc(x.things, func(t wThing) bool { return has(&t) && is(&t) })
	}
	if asks && !who(is) {
		return false
	}
	if !asks && e.NotSelector != "" && who(func(t *wThing) bool { return chosen(e.NotSelector, x.labels(t)) }) {
		return false
	}
	in := func(list []any) bool {
		return slices.ContainsFunc(list, func(v any) bool {
			var first, last uint16
			if n, ok := v.(int); ok {
				return port == uint16(n)
			}
			if n, _ := fmt.Sscanf(v.(string), "%d:%d", &first, &last); n == 2 {
				return first <= port && port <= last
			}
			return who(func(t *wThing) bool {
				return is(t) && slices.ContainsFunc(t.ports, func(q wPort) bool {
					return q.Name == v && q.Port == port && numbers[q.Protocol] == x.packet.protocol && (r.Protocol == "" || r.Protocol == q.Protocol)
				})
			})
		})
	}
	return (len(e.Ports) == 0 || in(e.Ports)) && !in(e.NotPorts)
}

// chooses reports whether the selectors of one end choose a thing.
func (x *naive) chooses(e *wEntity, t *wThing, namespace string, accounts bool) bool {
	l := x.labels(t)
	switch {
	case e.NamespaceSelector == "all()" && t.namespace == "", e.NamespaceSelector == "global()" && t.namespace != "",
		e.NamespaceSelector == "" && namespace != "" && t.namespace != namespace,
		e.NamespaceSelector != "" && !chosen(e.NamespaceSelector, below("pcns.", l)):
		return false
	}
	if accounts {
		a := e.ServiceAccounts
		if len(a.Names) > 0 && !slices.Contains(a.Names, t.account) || a.Selector != "" && !chosen(a.Selector, below("pcsa.", l)) {
			return false
		}
	}
	return chosen(e.Selector, l) && (e.NotSelector == "" || !chosen(e.NotSelector, l))
}

// packets are some between all who are there, and strangers.
func (w *world) packets() (list []packet) {
	d := w.draw
	for range 24 {
		a, b := 1+d.N(8), 1+d.N(8)
		p := packet{src: netip.AddrFrom4([4]byte{10, 0, 0, byte(a)}), dst: netip.AddrFrom4([4]byte{10, 0, 0, byte(b)}), protocol: check.Pick(d, uint8(6), 17, 132, 1, 47)}
		if d.N(2) == 1 {
			p.src, p.dst = netip.MustParseAddr(fmt.Sprintf("fd00::%d", a)), netip.MustParseAddr(fmt.Sprintf("fd00::%d", b))
			if p.protocol == 1 {
				p.protocol = 58
			}
		}
		switch p.protocol {
		case 6, 17, 132:
			p.sport, p.dport = uint16(79+d.N(5)), uint16(79+d.N(5))
		case 1, 58:
			p.typ, p.code = check.Pick(d, uint8(3), 8), uint8(d.N(3))
		}
		list = append(list, p)
	}
	return list
}

// compare judges packets by what is compiled and by what is read, and returns how many pass.
func compare(t *testing.T, b []byte) (passed, all int) {
	w := newWorld(b)
	plan := Compile("n", w.store())
	packets := w.packets()
	for i := range w.things {
		thing := &w.things[i]
		if thing.node != "n" {
			continue
		}
		e := of(t, plan, strings.TrimPrefix(thing.key, "workloadendpoints/"))
		for _, in := range []bool{true, false} {
			for j, got := range judge(t, e.Config, in, packets...) {
				x := &naive{world: w, truth: true, in: in, packet: packets[j]}
				want := x.decide(thing)
				if w.vague {
					x.truth = false
					want = want && x.decide(thing)
				}
				all++
				if got {
					passed++
				}
				if got && !want || got != want && !w.vague {
					t.Fatalf("%s, in %v: %+v passes: %v, want %v\n%s", thing.key, in, packets[j], got, want, show(w, e.Config))
				}
			}
		}
	}
	return passed, all
}

func show(w *world, cfg *policy.Config) string {
	return fmt.Sprintf("policies %+v\nprofiles %+v\nthings %+v\nconfig %+v", w.policies, w.profiles, w.things, *cfg)
}

// Policies at random judge packets at random as their words say; what only Calico can answer never lets through more.
func TestRandom(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	passed, all := 0, 0
	for range 300 {
		b := make([]byte, 1200)
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		p, n := compare(t, b)
		passed, all = passed+p, all+n
	}
	if passed < all/20 || passed > all*19/20 {
		t.Errorf("%d of %d packets pass: nothing is compared", passed, all)
	}
	t.Logf("%d of %d packets pass", passed, all)
}
