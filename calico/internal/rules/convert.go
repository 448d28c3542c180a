package rules

import (
	"net/netip"
	"slices"

	"github.com/vxswitch/vxswitch/calico/internal/resource"
	"github.com/vxswitch/vxswitch/policy"
)

// convert makes rules of package policy of those of a policy or profile. What goes into a workload leaves the switch.
func (x *Compiler) convert(group string, denies bool, key resource.Key, ingress, egress *resource.Rules) *ruled {
	x.ids++
	r := &ruled{id: x.ids, key: key.String(), group: group, denies: denies, rules: map[policy.Direction][]policy.Rule{}}
	if ingress != nil {
		r.rules[policy.Egress] = x.all(key, *ingress)
	}
	if egress != nil {
		r.rules[policy.Ingress] = x.all(key, *egress)
	}
	return r
}

func (x *Compiler) all(key resource.Key, rules resource.Rules) (list []policy.Rule) {
	x.Work.Rules += len(rules)
	for i := range rules {
		if r, ok := x.rule(&rules[i]); ok {
			r.Name = key.String() + " " + rules[i].Field
			list = append(list, r)
		}
	}
	return list
}

// action returns what a rule does, false if it is left out.
func action(r *resource.PolicyRule) (policy.Action, bool) {
	right := len(r.Wrong) == 0
	switch r.Action {
	case resource.Allow:
		return policy.Allow, right
	case resource.Log:
		return policy.Log, right
	case resource.Pass:
		if right {
			return policy.Pass, true
		}
	}
	return policy.Deny, true
}

// rule makes one of package policy, false for one that is about nothing, or left out.
func (x *Compiler) rule(r *resource.PolicyRule) (p policy.Rule, ok bool) {
	if p.Action, ok = action(r); !ok {
		return p, false
	}
	p.Protocol, p.NotProtocol = r.Protocol, r.NotProtocol
	p.Src, p.Dst, p.NotSrc, p.NotDst = r.Src.Nets, r.Dst.Nets, r.Src.NotNets, r.Dst.NotNets
	if !families(r, &p) {
		return p, false
	}
	p.SrcPorts, p.NotSrcPorts, p.DstPorts, p.NotDstPorts = r.Src.Ports, r.Src.NotPorts, r.Dst.Ports, r.Dst.NotPorts
	p.ICMP, p.NotICMP = r.ICMP, r.NotICMP
	p.AllSrcSets, p.NotSrcSets = x.sets.addrs(r.Src.Selector), x.sets.addrs(r.Src.NotSelector)
	p.AllDstSets, p.NotDstSets = x.sets.addrs(r.Dst.Selector), x.sets.addrs(r.Dst.NotSelector)
	p.SrcPortSets = x.names(r.Src.Names, &r.Src, r.Protocol)
	p.DstPortSets = x.names(r.Dst.Names, &r.Dst, r.Protocol)
	p.NotSrcPortSets = x.names(r.Src.NotNames, &r.Src, r.Protocol)
	p.NotDstPortSets = x.names(r.Dst.NotNames, &r.Dst, r.Protocol)
	return p, true
}

// names returns the sets of named ports. Those of endpoints that the selector does not choose are no matter.
func (x *Compiler) names(names []string, e *resource.Entity, protocol uint8) (list []string) {
	for _, name := range names {
		list = append(list, x.sets.named(name, protocol, e.Selector))
	}
	return list
}

var (
	allIPv4 = netip.PrefixFrom(netip.IPv4Unspecified(), 0)
	allIPv6 = netip.PrefixFrom(netip.IPv6Unspecified(), 0)
)

// families keeps a rule to the families of IP that it is about, and reports whether there are any. As in Felix these are those that all
// its lists of networks have some of; what is not in all networks of a family is not in the family. No rule is about other frames.
func families(r *resource.PolicyRule, p *policy.Rule) bool {
	has := func(is4 bool) bool {
		if r.IPVersion != 0 && (r.IPVersion == 4) != is4 || len(r.ICMP)+len(r.NotICMP) > 0 && (r.Protocol == 1) != is4 {
			return false
		}
		of := func(n netip.Prefix) bool { return n.Addr().Is4() == is4 }
		for _, list := range [][]netip.Prefix{p.Src, p.Dst, p.NotSrc, p.NotDst} {
			if len(list) > 0 && !slices.ContainsFunc(list, of) {
				return false
			}
		}
		none := func(n netip.Prefix) bool { return of(n) && n.Bits() == 0 }
		return !slices.ContainsFunc(p.NotSrc, none) && !slices.ContainsFunc(p.NotDst, none)
	}
	if has(true) && has(false) {
		if !ofIP(r, p) {
			p.Src = []netip.Prefix{allIPv4, allIPv6}
		}
		return true
	}
	if !has(true) && !has(false) {
		return false
	}
	is4 := has(true)
	for _, list := range []*[]netip.Prefix{&p.Src, &p.Dst, &p.NotSrc, &p.NotDst} {
		*list = slices.DeleteFunc(slices.Clone(*list), func(n netip.Prefix) bool { return n.Addr().Is4() != is4 })
	}
	if len(p.Src) == 0 {
		if p.Src = []netip.Prefix{allIPv4}; !is4 {
			p.Src = []netip.Prefix{allIPv6}
		}
	}
	return true
}

// ofIP reports whether a rule has a condition that only IP meets.
func ofIP(r *resource.PolicyRule, p *policy.Rule) bool {
	return p.Protocol != 0 || p.NotProtocol != 0 || len(p.Src)+len(p.Dst)+len(p.NotSrc)+len(p.NotDst) > 0 ||
		r.Src.Selector != nil || r.Dst.Selector != nil || r.Src.NotSelector != nil || r.Dst.NotSelector != nil ||
		len(r.Src.Names)+len(r.Dst.Names)+len(r.Src.NotNames)+len(r.Dst.NotNames) > 0
}
