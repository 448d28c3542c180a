package ovsdb

import (
	"github.com/vxswitch/vxswitch/internal/neighbour"
	"github.com/vxswitch/vxswitch/ovsdb/internal/table"
	vswitch "github.com/vxswitch/vxswitch/switch"
)

// listened returns the groups that hosts on ports of the segments listen to. Those behind a tunnel are of other switches.
func (s *Switch) listened() map[table.Group]bool {
	if s.cfg.Multicast == nil {
		return nil
	}
	tunnels := map[uint16]bool{}
	for _, v := range s.node.Switch().VSIs() {
		for _, a := range v.Attachments() {
			if _, ok := a.Port().(vswitch.Tunnel); ok {
				tunnels[a.Dest(0).Port()] = true
			}
		}
	}
	groups := map[table.Group]bool{}
	for _, x := range s.provided {
		snooper := s.node.Snooper(x.VNI)
		if snooper == nil { // the segment is another's meanwhile
			continue
		}
		for l := range snooper.All() {
			if l.Group.IsValid() && !tunnels[l.Dest.Port()] {
				groups[table.Group{Segment: x.ID, MAC: neighbour.GroupMAC(l.Group.As16()).String()}] = true
			}
		}
	}
	return groups
}
