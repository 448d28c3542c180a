package rules

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/vxswitch/vxswitch/calico/internal/model"
	"github.com/vxswitch/vxswitch/calico/internal/resource"
	"github.com/vxswitch/vxswitch/policy"
)

// A tier is one of Calico, with its policies in order.
type tier struct {
	name     string
	order    float64
	pass     bool
	missing  bool // nobody made it
	policies []*ordered
}

// gone says that nobody made a tier, and what it is then; "" for default, which is there for everybody and older versions of Calico did not write.
func (t *tier) gone() string {
	if !t.missing || t.name == "default" {
		return ""
	}
	return fmt.Sprintf("spec.tier: there is no tiers/%s that could be read: the tier is behind all others, and denies what its policies do not decide", t.name)
}

// An ordered is a policy of a tier.
type ordered struct {
	*resource.Policy
	key   resource.Key
	tie   string // decides between policies of one order
	in    *tier
	lacks []string // what of it is not done
	rules *ruled   // nil until somebody needs them
}

// A ruled is the rules of a policy, or of a profile, for each direction that it is about.
type ruled struct {
	id      uint64
	used    uint64 // by the last of these plans
	key     string // that of the policy, such as profiles/kns.default
	group   string // the tier that they are in
	denies  bool   // it has traffic denied on which no rule decides
	rules   map[policy.Direction][]policy.Rule
	notDone []string // what is not done, with the key
}

// readTiers puts tiers and their policies in order. A tier that is missing is the last one, as in Calico. Policies that were there before
// have the rules that they had.
func (x *Compiler) readTiers() {
	old := map[*resource.Policy]*ordered{}
	x.before = map[*resource.Policy]bool{}
	for _, p := range x.read {
		old[p.Policy], x.before[p.Policy] = p, true
	}
	x.round++
	x.tiers, x.read = nil, nil
	by := map[string]*tier{}
	for name, t := range model.All[resource.Tier](x.s, resource.KindTier) {
		by[name] = &tier{name: name, order: t.Order, pass: t.Pass}
		x.tiers = append(x.tiers, by[name])
	}
	add := func(k resource.Kind, kind string) {
		for name, p := range model.All[resource.Policy](x.s, k) {
			o := &ordered{Policy: p, key: resource.Key{Kind: k, Name: name}}
			o.tie = o.tieOf(kind)
			t := by[p.Tier]
			if t == nil {
				t = &tier{name: p.Tier, order: math.Inf(1), missing: true}
				by[p.Tier] = t
				x.tiers = append(x.tiers, t)
			}
			o.in = t
			if was := old[p]; was != nil && was.in.pass == t.pass && was.in.missing == t.missing {
				o.lacks, o.rules = was.lacks, was.rules
			} else {
				o.lacks = o.notDone()
			}
			t.policies = append(t.policies, o)
			x.read = append(x.read, o)
		}
	}
	add(resource.KindGlobalPolicy, "GlobalNetworkPolicy")
	add(resource.KindPolicy, "NetworkPolicy")
	slices.SortFunc(x.tiers, func(a, b *tier) int {
		switch {
		case a.missing != b.missing && a.missing:
			return 1
		case a.missing != b.missing:
			return -1
		}
		return cmp.Or(cmp.Compare(a.order, b.order), cmp.Compare(a.name, b.name))
	})
	for _, t := range x.tiers {
		slices.SortFunc(t.policies, func(a, b *ordered) int { return cmp.Or(cmp.Compare(a.Order, b.Order), cmp.Compare(a.tie, b.tie)) })
	}
}

// tieOf returns name, namespace and kind, as Felix has them.
func (p *ordered) tieOf(kind string) string {
	namespace, name := p.key.Split()
	if p.Kubernetes {
		name, kind = strings.TrimPrefix(name, resource.KubernetesPrefix), resource.KubernetesPolicy
	}
	return strings.Join([]string{name, namespace, kind}, "/")
}

// notDone says what of a policy is not done.
func (p *ordered) notDone() (list []string) {
	if why := p.in.gone(); why != "" {
		list = append(list, why)
	}
	if p.Host {
		return append(list, "spec.doNotTrack and spec.preDNAT are not carried: they are about host endpoints alone")
	}
	if p.Forward {
		list = append(list, "spec.applyOnForward is not carried: it is about host endpoints, and workloads have the policy")
	}
	return append(list, wrong(p.Ingress, p.Egress)...)
}

// wrong says which rules cannot be had.
func wrong(directions ...*resource.Rules) (list []string) {
	for _, rules := range directions {
		if rules == nil {
			continue
		}
		for i := range *rules {
			r := &(*rules)[i]
			if len(r.Wrong) == 0 {
				continue
			}
			instead := "the rule denies all that the rest of it is about"
			if r.Action == resource.Allow || r.Action == resource.Log {
				instead = "the rule is left out"
			}
			list = append(list, fmt.Sprintf("%s: %s: %s", r.Field, strings.Join(r.Wrong, "; "), instead))
		}
	}
	return list
}

// maxNotDone is how much of a policy is named for each endpoint that has it.
const maxNotDone = 100

// lack notes what is not done.
func (r *ruled) lack(list ...string) {
	for _, why := range list[:min(len(list), maxNotDone)] {
		r.notDone = append(r.notDone, r.key+": "+why)
	}
}

// ruled returns the rules of a policy.
func (x *Compiler) ruled(p *ordered) *ruled {
	if p.rules == nil {
		p.rules = x.convert("tier "+p.in.name, !p.in.pass, p.key, p.Ingress, p.Egress)
		p.rules.lack(p.lacks...)
	}
	return p.rules
}

// readProfiles names what is wrong with profiles.
func (x *Compiler) readProfiles() {
	some := func(p *resource.Profile) bool { return len(wrong(p.Ingress, p.Egress)) > 0 }
	for name, p := range model.Some(x.s, resource.KindProfile, some) {
		for _, why := range wrong(p.Ingress, p.Egress) {
			x.problem(resource.Key{Kind: resource.KindProfile, Name: name}.String(), "%s", why)
		}
	}
}

// A profiled is the rules of a profile, which is nil if there is none.
type profiled struct {
	*resource.Profile
	*ruled
}

// profile returns the rules of a profile. One that is missing denies, as in Calico.
func (x *Compiler) profile(name string) *ruled {
	p := model.One[resource.Profile](x.s, resource.KindProfile, name)
	r := x.profiles[name]
	if r == nil || r.Profile != p {
		r = &profiled{p, x.readProfile(name, p)}
		x.profiles[name] = r
	}
	if r.used != x.n && p == nil && name != resource.AllowProfile {
		x.problem(r.key, "there is none that could be read: it denies")
	}
	return r.ruled
}

func (x *Compiler) readProfile(name string, p *resource.Profile) (r *ruled) {
	key := resource.Key{Kind: resource.KindProfile, Name: name}
	switch {
	case p != nil:
		r = x.convert("profile "+name, false, key, p.Ingress, p.Egress)
		r.lack(wrong(p.Ingress, p.Egress)...)
	case name == resource.AllowProfile:
		allow := &resource.Rules{{Action: resource.Allow}}
		r = x.convert("profile "+name, false, key, allow, allow)
	default:
		r = x.convert("profile "+name, true, key, new(resource.Rules), new(resource.Rules))
		r.lack("there is none that could be read: it denies")
	}
	return r
}
