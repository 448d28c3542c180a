package model

import (
	"errors"
	"fmt"
	"slices"

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
		f := One[resource.Filter](b.s, resource.KindFilter, name).Filter
		f.Name = name
		c.Filters = append(c.Filters, f)
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

// unfiltered returns why none can have the filters of a BGPPeer, "" for nothing.
func (b *peering) unfiltered(p *resource.Peer) string {
	for _, name := range p.Filters {
		f := One[resource.Filter](b.s, resource.KindFilter, name)
		if f == nil {
			return "spec.filters: there is no bgpfilters/" + name + " that could be read"
		}
		if f.NotCarried != "" {
			return "spec.filters: bgpfilters/" + name + " has " + f.NotCarried + " in a way that is not carried"
		}
	}
	return ""
}
