package model

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/vxswitch/vxswitch/bgp"
	"github.com/vxswitch/vxswitch/calico/internal/resource"
	"github.com/vxswitch/vxswitch/setting"
)

// filter gives a session the BGPFilters of a BGPPeer, and returns why it cannot have them, "" if it can: without them, we would take and
// announce what they forbid.
func (b *peering) filter(s *session, names []string) string {
	c := *b.plan.BGP
	c.Filters = nil
	for _, name := range names {
		if slices.Contains(s.Filters, name) {
			continue
		}
		s.Filters = append(s.Filters, name)
		c.Filters = append(c.Filters, filterOf(name, One[resource.Filter](b.s, resource.KindFilter, name)))
	}
	c.Peers = []bgp.Peer{s.Peer}
	var wrong setting.Errors
	if errors.As(c.Check(), &wrong) {
		return fmt.Sprintf("spec.filters: %s: %s: %s", wrong[0].Path, wrong[0].Shown(), wrong[0].Reason())
	}
	for _, f := range c.Filters {
		if !slices.ContainsFunc(b.plan.BGP.Filters, func(x bgp.Filter) bool { return x.Name == f.Name }) {
			b.plan.BGP.Filters = append(b.plan.BGP.Filters, f)
		}
	}
	return ""
}

// filterOf returns a BGPFilter as package bgp has it.
func filterOf(name string, f *resource.Filter) bgp.Filter {
	out := bgp.Filter{Name: name}
	for _, r := range f.Import {
		to := &out.ImportV4
		if r.IPv6 {
			to = &out.ImportV6
		}
		*to = append(*to, ruleOf(&r))
	}
	for _, r := range f.Export {
		to := &out.ExportV4
		if r.IPv6 {
			to = &out.ExportV6
		}
		*to = append(*to, ruleOf(&r))
	}
	return out
}

func ruleOf(r *resource.Rule) bgp.FilterRule {
	x := bgp.FilterRule{
		Prefix: r.Prefix, Min: r.Min, Max: r.Max, Community: r.Community, ASPathPrefix: r.ASPath, Priority: r.Priority,
		Operator: map[string]bgp.Operator{"NotIn": bgp.NotIn, "Equal": bgp.Equal, "NotEqual": bgp.NotEqual}[r.Operator],
		Source:   map[string]bgp.Source{"RemotePeers": bgp.RemotePeers}[r.Source],
		PeerType: map[string]bgp.PeerType{"eBGP": bgp.External, "iBGP": bgp.Internal}[r.PeerType],
	}
	if !r.Accept {
		x.Action = bgp.Reject
	}
	for _, o := range r.Operations {
		x.Operations = append(x.Operations, bgp.Operation(o))
	}
	return x
}

// unfiltered returns why none can have the filters of a BGPPeer, "" for nothing.
func (b *peering) unfiltered(p *resource.Peer) string {
	for _, name := range p.Filters {
		f := One[resource.Filter](b.s, resource.KindFilter, name)
		if f == nil {
			return "spec.filters: there is no bgpfilters/" + name + " that could be read"
		}
		for _, r := range slices.Concat(f.Import, f.Export) {
			if len(r.More) > 0 {
				return "spec.filters: bgpfilters/" + name + " has " + strings.Join(r.More, " and ") + " in a way that is not carried"
			}
		}
	}
	return ""
}
