package ovsdb

import (
	"net/netip"

	"github.com/vxswitch/vxswitch/frame"
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
				groups[table.Group{Segment: x.ID, MAC: macOfGroup(l.Group).String()}] = true
			}
		}
	}
	return groups
}

// macOfGroup returns the MAC of a multicast address (RFC 1112, section 6.4; RFC 2464, section 7).
func macOfGroup(a netip.Addr) frame.MAC {
	b := a.As16()
	if a.Is4() {
		return frame.MAC{1, 0, 0x5e, b[13] & 0x7f, b[14], b[15]}
	}
	return frame.MAC{0x33, 0x33, b[12], b[13], b[14], b[15]}
}
