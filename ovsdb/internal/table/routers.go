package table

import (
	"slices"

	"github.com/vxswitch/vxswitch/frame"
)

// routers leaves out the Logical_Routers that have networks of the switch, for it routes nothing for a controller, and returns these
// networks: other VTEPs may route there.
func (r *reader) routers(at map[string]frame.VNI) (routed []frame.VNI) {
	for id, row := range r.tables[LogicalRouter] {
		ours := false
		row.pairs("switch_binding", func(_, v any) {
			if vni, ok := at[uuid(v)]; ok {
				ours = true
				routed = append(routed, vni)
			}
		})
		if !ours {
			continue
		}
		r.leave(LogicalRouter, id, NoRouting)
		for column, reason := range map[string]string{"static_routes": NoStaticRoutes, "acl_binding": NoACL} {
			if row.size(column) > 0 {
				r.leave(LogicalRouter, id, reason)
			}
		}
	}
	slices.Sort(routed)
	return slices.Compact(routed)
}

// size returns how many pairs a map has.
func (r Row) size(column string) (n int) {
	r.pairs(column, func(_, _ any) { n++ })
	return n
}

// sources adds to networks with routers the MACs of Arp_Sources_Remote: other VTEPs have them in the questions that they ask on behalf
// of the router, and get the answers.
func (r *reader) sources(all []host, routed []frame.VNI) []host {
	if len(routed) == 0 {
		return all
	}
	for id, row := range r.tables[ArpRemote] {
		mac, p, ok := r.behind(ArpRemote, id, row.text("src_mac"), row.ref("locator"))
		if !ok {
			continue
		}
		for _, vni := range routed {
			all = append(all, newHost(ArpRemote, id, vni, mac, p))
		}
	}
	return all
}
