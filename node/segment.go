package node

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/vxswitch/vxswitch/arp"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/l3"
	"github.com/vxswitch/vxswitch/policy"
	"github.com/vxswitch/vxswitch/snoop"
	vswitch "github.com/vxswitch/vxswitch/switch"
)

// A segment is a running Segment.
type segment struct {
	vni     frame.VNI
	handle  *VSI
	first   string // its first tunnel
	vsi     *vswitch.VSI
	tunnels map[string]*vswitch.Attachment // by tunnel
	members map[string]member              // by Member.key

	made         neighbourhood // settings of the next four
	table        *arp.Table
	responder    *arp.Responder
	iface        *l3.Interface
	ruled        *policy.Policy // the filters of iface
	crossConnect *l3.CrossConnect
	renewed      bool                     // the table has been replaced or removed, and readers of events are not yet told
	macs         []frame.MAC              // of the interface, in the FDB
	guards       map[string]*policy.Guard // by Member.key

	snooped *snoop.Config // settings of snooper
	snooper *snoop.Snooper

	bfd      *BFD              // of the gateway
	settings vswitch.VSIConfig // of the VSI, when the gate is open
	gate     gate
}

// release detaches what c, nil to remove the segment, does not have, so that other segments can use it: tunnels,
// members, the addresses of the gateway.
func (n *Node) release(s *segment, c *Segment) error {
	if c == nil {
		return n.deleteSegment(s)
	}
	if !reflect.DeepEqual(s.made, c.neighbourhood()) {
		s.dropInterface()
		s.dropMACs(c.Gateway)
	}
	for _, name := range slices.Sorted(maps.Keys(s.tunnels)) {
		if !n.keeps(c, name, s.tunnels[name]) {
			if err := s.detachTunnel(name); err != nil {
				return err
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(s.members)) {
		if !s.members[key].stays(c) {
			if err := s.detachMember(key); err != nil {
				return err
			}
		}
	}
	return nil
}

// setSegment changes a segment to c, after release.
func (n *Node) setSegment(c *Segment, a *attempt) {
	a.at = about(c.VNI)
	defer func() { a.at = "" }()
	s, err := n.segment(c)
	if err != nil {
		a.ends(err)
		return
	}
	s.first = ""
	if in := c.in(); len(in) > 0 {
		s.first = in[0].Tunnel
	}
	if n.setTunnels(s, c, a); a.ends(nil) || a.ends(n.setGateway(s, c)) {
		return
	}
	if a.ends(n.setMulticast(s, c)) {
		return
	}
	slots := n.slots(s, c)
	if a.ends(n.step("segment settings", func() error { return s.configure(c.vsi(slots)) })) {
		return
	}
	if s.renewed { // what the old table had snooped is gone
		s.renewed = false
		n.sw.Settle()
		n.sw.Notify(frame.Event{Kind: frame.EventFlushed, VNI: c.VNI})
	}
	for i := range c.Members {
		m := &c.Members[i]
		err := n.step("member", func() error { return n.setMember(s, c, m) })
		if err != nil && a.ends(fmt.Errorf("member %q: %w", m.Port, err)) {
			return
		}
	}
	s.setMulticastRouters(c)
	// An interface on an IP port requires the member.
	a.ends(n.setIPGateway(s, c))
}

// segment returns the segment of c, and adds it if necessary.
func (n *Node) segment(c *Segment) (*segment, error) {
	s, handle := n.segments[c.VNI], &VSI{n, c.VNI}
	if s != nil && s.vsi.Config().Refuse != c.Refuse { // a table cannot change this
		if err := n.deleteSegment(s); err != nil {
			return nil, err
		}
		s, handle = nil, s.handle
	}
	if s != nil {
		return s, nil
	}
	err := n.step("segment", func() error {
		vsi, err := n.sw.VSI(c.VNI, &vswitch.VSIConfig{Refuse: c.Refuse})
		if err == nil {
			s = &segment{
				vni: c.VNI, handle: handle, vsi: vsi,
				tunnels: map[string]*vswitch.Attachment{}, members: map[string]member{}, guards: map[string]*policy.Guard{},
				settings: vswitch.VSIConfig{Refuse: c.Refuse},
				gate:     gate{shut: map[*vswitch.Attachment]bool{}, gateway: true},
			}
			n.segments[c.VNI] = s
		}
		return err
	})
	return s, err
}

// vsi returns the settings of the segment's VSI.
func (c *Segment) vsi(slots vswitch.Slots) vswitch.VSIConfig {
	cfg := c.VSIConfig
	cfg.Slots = slots
	return cfg
}

// member returns the first member on a port, nil if there is none.
func (c *Segment) member(port string) *Member {
	return find(c.Members, func(m *Member) bool { return m.Port == port })
}

// membersNamed returns the members that a name stands for; see [vswitch.Named].
func (c *Segment) membersNamed(name string) []Member {
	return vswitch.Named(c.Members, name, func(m Member) (string, uint32) { return m.Port, m.tag() })
}

// A place is where members are: a port, and a tag there.
type place struct {
	port string
	tag  uint32
}

func (m *Member) place() place { return place{m.Port, m.tag()} }

// key is what tells a member from the others of its segment: its port, and the tag if it has one, behind what no name has.
func (m *Member) key() string {
	if m.VLAN == 0 {
		return m.Port
	}
	return fmt.Sprint(m.Port, "\x00", m.tag())
}

// A member is an attachment of a port.
type member struct {
	*vswitch.Attachment
	port string
}

// stays reports whether the member is one of c, too.
func (a member) stays(c *Segment) bool {
	m := find(c.Members, func(m *Member) bool { return m.Port == a.port && m.tag() == a.Tag() })
	return m != nil && (m.attach().Match == nil) == (a.Config().Match == nil)
}

// onPort reports whether the segment has a cross-connect or an interface on an IP port or IP tunnel.
func (s *segment) onPort() bool {
	return s.crossConnect != nil || s.iface != nil && s.iface.MAC().IsZero()
}

// slots returns the slots of the VSI.
func (n *Node) slots(s *segment, c *Segment) (slots vswitch.Slots) {
	slots.TooBig = n.sw.TooBig() // between ports as well
	if s.responder != nil {
		slots.Neighbour = s.responder
	}
	if s.snooper != nil {
		slots.Multicast = s.snooper
	}
	if s.iface != nil {
		slots.Gateway, slots.TooBig = s.iface, vswitch.Chain(s.iface.PathMTU(), slots.TooBig)
	}
	if s.crossConnect != nil {
		slots.Gateway, slots.TooBig = s.crossConnect, s.crossConnect.PathMTU()
	}
	if p := n.policies[c.Policy]; p != nil {
		slots.Ingress, slots.Egress = p.Ingress(), p.Egress()
	}
	return slots
}

// tag returns the tag of the member's attachment.
func (m *Member) tag() uint32 {
	if m.Service {
		return frame.ServiceTag | uint32(m.VLAN)
	}
	return uint32(m.VLAN)
}

// attach returns the settings of the member's attachment.
func (m *Member) attach() vswitch.AttachConfig {
	c := m.AttachConfig
	if m.Isolated {
		c.Group = vswitch.GroupIsolated
	}
	if m.Match != nil {
		c.Match = m.Match
	}
	return c
}

// setMember attaches a port, or changes its settings. It does nothing while the port is down.
func (n *Node) setMember(s *segment, c *Segment, m *Member) error {
	d := n.ports[m.Port]
	if d == nil {
		return nil
	}
	g, err := s.guards[m.key()], error(nil)
	switch {
	case m.Guard == nil:
		g = nil
	case g != nil:
		err = g.Update(m.Guard)
	default:
		g, err = policy.NewGuard(m.Guard)
	}
	if err != nil {
		return err
	}
	at := m.attach()
	at.Role = n.roles[roleKey{s.vni, m.Port}]
	if at.Slots, err = n.memberSlots(s, c, m, g); err != nil {
		return err
	}
	_, at.KeepOpen = d.port.(vswitch.Pauser)
	a, there := s.members[m.key()]
	if there {
		err = s.set(a.Attachment, at)
	} else if a.Attachment, err = s.attach(d.port, m.tag(), at); err == nil {
		a.port, d.used = m.Port, true
		s.members[m.key()] = a
	}
	if err != nil {
		return err
	}
	if s.guards[m.key()] = g; g == nil {
		delete(s.guards, m.key())
	}
	return nil
}

// memberSlots returns the slots of a member with guard g. They run before those of the segment.
func (n *Node) memberSlots(s *segment, c *Segment, m *Member, g *policy.Guard) (slots vswitch.Slots, err error) {
	var ingress []vswitch.Stage
	if m.Guard != nil {
		ingress = append(ingress, g)
	}
	var configured *policy.Policy
	if r := n.policies[m.Policy]; r != nil {
		configured = r.Policy
	}
	given := n.filterOf(m.Port)
	if given.Guard != nil {
		ingress = append(ingress, given.Guard)
	}
	ingress, slots.Egress = policySlots(ingress, given.Policy, configured)
	if clamp, err := l3.NewMSSClamp(m.MSSClamp); err == nil {
		ingress = append(ingress, clamp)
	}
	if m.mode(c) == arp.Access {
		ingress = append(ingress, arp.OnlyIP{})
	}
	if m.attach().Group != 0 && s.snooper != nil { // others in the group would not hear its queries
		slots.Multicast = s.snooper.Hosts()
	}
	if m.NeighbourMode != nil && s.responder != nil {
		if slots.Neighbour, err = s.responder.With(*m.NeighbourMode); err != nil {
			return slots, err
		}
	}
	if len(ingress) > 0 {
		slots.Ingress = vswitch.Chain(ingress...)
	}
	return slots, nil
}

// deleteSegment removes a segment with its gateway; ports and tunnels stay open.
func (n *Node) deleteSegment(s *segment) error {
	s.dropInterface()
	delete(n.segments, s.vni)
	err := s.vsi.Delete()
	for _, a := range s.tunnels {
		unmark(a)
	}
	return err
}

// detachMember detaches a member from the segment.
func (s *segment) detachMember(key string) error {
	a := s.members[key].Attachment
	delete(s.guards, key)
	delete(s.members, key)
	return s.detach(a)
}

// detachTunnel detaches a tunnel from the segment.
func (s *segment) detachTunnel(name string) error {
	a := s.tunnels[name]
	delete(s.tunnels, name)
	return s.detach(a)
}
