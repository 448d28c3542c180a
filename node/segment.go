package node

import (
	"fmt"
	"reflect"
	"time"

	"github.com/vxswitch/vxswitch/arp"
	"github.com/vxswitch/vxswitch/fdb"
	"github.com/vxswitch/vxswitch/l3"
	"github.com/vxswitch/vxswitch/policy"
	vswitch "github.com/vxswitch/vxswitch/switch"
)

// A segment is a Segment as it runs.
type segment struct {
	cfg     Segment
	vsi     *vswitch.VSI
	far     map[string]*vswitch.Attachment // by tunnel
	members map[string]*vswitch.Attachment // by port

	table     *arp.Table
	responder *arp.Responder
	iface     *l3.Interface
	guards    map[string]*policy.Guard
}

// release takes from a segment what c, nil for none, has no longer, so that other segments can
// have it: the tunnel, members, the addresses of the gateway.
func (n *Node) release(s *segment, c *Segment) error {
	if c == nil {
		return n.deleteSegment(s)
	}
	if s.gatewayDiffers(c) {
		n.dropInterface(s)
	}
	for _, name := range sortedKeys(s.far) {
		if !n.keeps(c, name, s.far[name]) {
			if err := n.detachFar(s, name); err != nil {
				return err
			}
		}
	}
	for _, port := range sortedKeys(s.members) {
		if m := c.member(port); m == nil || m.VLAN != int(s.members[port].Tag()) {
			if err := n.detachMember(s, port); err != nil {
				return err
			}
		}
	}
	return nil
}

// setSegment makes a segment what c says. What c has no longer is released already.
func (n *Node) setSegment(c *Segment) error {
	s := n.segments[c.VNI]
	if s == nil {
		vsi, err := n.sw.VSI(c.VNI, &vswitch.VSIConfig{Evict: c.Evict})
		if err != nil {
			return err
		}
		s = &segment{vsi: vsi, far: map[string]*vswitch.Attachment{}, members: map[string]*vswitch.Attachment{}, guards: map[string]*policy.Guard{}}
		s.cfg = Segment{VNI: c.VNI, Evict: c.Evict}
		n.segments[c.VNI] = s
	} else if s.cfg.Evict != c.Evict { // the one thing a table cannot change
		if err := n.deleteSegment(s); err != nil {
			return err
		}
		return n.setSegment(c)
	}
	if err := n.setFar(s, c); err != nil {
		return err
	}
	if err := n.setGateway(s, c); err != nil {
		return err
	}
	slots := n.slots(s, c)
	if err := s.vsi.Configure(c.vsi(slots)); err != nil {
		return err
	}
	for i := range c.Members {
		if err := n.setMember(s, &c.Members[i], slots); err != nil {
			return fmt.Errorf("member %q: %w", c.Members[i].Port, err)
		}
	}
	// An interface on an IP port can be made only once the port is a member.
	if err := n.setIPGateway(s, c); err != nil {
		return err
	}
	s.cfg = *c
	return nil
}

// vsi returns the settings of the segment's VSI.
func (c *Segment) vsi(slots vswitch.Slots) vswitch.VSIConfig {
	return vswitch.VSIConfig{
		MaxMACs: c.MaxMACs, Evict: c.Evict, Ageing: time.Duration(c.Ageing), NoLearn: c.NoLearning, NoFlood: classSet(c.NoFlood), Slots: slots,
		Storm: c.Storm.rates(), Freeze: c.Freeze, InnerVLAN: vswitch.VLANMode(c.InnerVLAN), RouteIsolated: c.RouteIsolated,
	}
}

func (s Storm) rates() vswitch.Storm {
	return vswitch.Storm{Broadcast: vswitch.Rate(s.Broadcast), Multicast: vswitch.Rate(s.Multicast), UnknownUnicast: vswitch.Rate(s.Unknown)}
}

func (c *Segment) member(port string) *Member {
	for i := range c.Members {
		if c.Members[i].Port == port {
			return &c.Members[i]
		}
	}
	return nil
}

func classSet(list []Class) (set vswitch.Class) {
	for _, c := range list {
		set |= vswitch.Class(1 << c)
	}
	return set
}

// onPort reports whether the segment's interface is one without MACs, on a port or tunnel
// for IP.
func (s *segment) onPort() bool { return s.iface != nil && s.iface.MAC().IsZero() }

// slots returns what fills the VSI's slots.
func (n *Node) slots(s *segment, c *Segment) (slots vswitch.Slots) {
	slots.TooBig = n.tooBig
	if s.responder != nil {
		slots.Neighbour = s.responder
	}
	if s.iface != nil {
		slots.Gateway, slots.TooBig = s.iface, vswitch.Chain(s.iface.TooBig(), n.tooBig)
	}
	if p := n.policies[c.Policy]; p != nil {
		slots.Ingress, slots.Egress = p.Ingress(), p.Egress()
	}
	switch {
	case mode(c) != arp.Access:
	case slots.Ingress == nil:
		slots.Ingress = arp.OnlyIP{}
	default:
		slots.Ingress = vswitch.Chain(arp.OnlyIP{}, slots.Ingress)
	}
	return slots
}

// setMember attaches a port, or changes its settings.
func (n *Node) setMember(s *segment, m *Member, slots vswitch.Slots) error {
	at := vswitch.AttachConfig{
		NoLearn: m.NoLearning, MaxMACs: m.MaxMACs, NoFlood: classSet(m.NoFlood), Storm: m.Storm.rates(), Locked: m.Locked, GBP: m.GBP, Keep: true,
	}
	if m.Isolated {
		at.Group = vswitch.GroupIsolated
	}
	if m.Guard == nil {
		delete(s.guards, m.Port)
	} else {
		g := s.guards[m.Port]
		if g == nil {
			g = new(policy.Guard)
			s.guards[m.Port] = g
		}
		if err := g.Update(m.Guard); err != nil {
			return err
		}
		at.Slots.Ingress = s.guards[m.Port]
		if slots.Ingress != nil {
			at.Slots.Ingress = vswitch.Chain(s.guards[m.Port], slots.Ingress)
		}
	}
	d := n.ports[m.Port]
	if a := s.members[m.Port]; a != nil {
		return a.Configure(at)
	}
	a, err := s.vsi.AttachWith(d.port, uint32(m.VLAN), at)
	if err == nil {
		s.members[m.Port] = a
	}
	return err
}

// deleteSegment removes a segment with its gateway; ports and tunnels stay open.
func (n *Node) deleteSegment(s *segment) error {
	n.dropInterface(s)
	delete(n.segments, s.cfg.VNI)
	return s.vsi.Delete()
}

// leavePort takes a port out of every segment.
func (n *Node) leavePort(name string) {
	for _, s := range n.segments {
		if s.members[name] != nil {
			n.detachMember(s, name)
		}
	}
}

// detachMember takes a port out of the segment, and the interface that stands on it.
func (n *Node) detachMember(s *segment, name string) error {
	if s.onPort() {
		n.dropInterface(s)
	}
	err := s.members[name].Detach()
	delete(s.members, name)
	delete(s.guards, name)
	return err
}

func (s *segment) gatewayDiffers(c *Segment) bool {
	return !reflect.DeepEqual(s.cfg.Gateway, c.Gateway) || mode(&s.cfg) != mode(c) || limits(&s.cfg) != limits(c)
}

// setGateway makes what answers for neighbours, and the interface of a segment that has
// MACs.
func (n *Node) setGateway(s *segment, c *Segment) error {
	if s.gatewayDiffers(c) {
		n.dropInterface(s)
		s.responder = nil
	}
	ethernet := c.Gateway != nil && !c.Gateway.MAC.IsZero()
	if c.Neighbours == nil && !ethernet {
		s.table, s.responder = nil, nil
		return nil
	}
	if s.table == nil || limits(&s.cfg) != limits(c) {
		cfg := arp.TableConfig{VNI: c.VNI, Notify: n.sw.Notify}
		if x := c.Neighbours; x != nil {
			cfg.Limit, cfg.PerDest = x.Limit, x.PerDest
		}
		t, err := arp.NewTable(&cfg)
		if err != nil {
			return err
		}
		s.table = t
	}
	s.keepNeighbours(c)
	if s.responder == nil {
		cfg := arp.Config{Table: s.table, Mode: mode(c), Locate: s.vsi.FDB().Lookup}
		if ethernet {
			cfg.MAC, cfg.AccessMAC = c.Gateway.MAC, c.Gateway.MAC
			if !c.Gateway.Own.IsZero() {
				cfg.MAC = c.Gateway.Own
			}
		}
		r, err := arp.NewResponder(cfg)
		if err != nil {
			return err
		}
		s.responder = r
	}
	if !ethernet || s.iface != nil {
		return nil
	}
	g := c.Gateway
	i, err := n.gateway.VRF(g.VRF).NewInterface(l3.InterfaceConfig{
		VNI: c.VNI, Addrs: g.Addresses, MAC: g.MAC, Own: g.Own, Anycast: g.Anycast, Neighbours: s.responder, Send: s.vsi.Send,
	})
	if err != nil {
		return err
	}
	flags := fdb.Static
	if g.Anycast {
		flags |= fdb.Anycast
	}
	s.iface = i
	if err := s.vsi.FDB().Set(g.MAC, 0, flags); err != nil || g.Own.IsZero() {
		return err
	}
	return s.vsi.FDB().Set(g.Own, 0, fdb.Static)
}

// setIPGateway makes the interface of a segment without MACs.
func (n *Node) setIPGateway(s *segment, c *Segment) error {
	if c.Gateway == nil || !c.Gateway.MAC.IsZero() || s.iface != nil {
		return nil
	}
	cfg := l3.InterfaceConfig{VNI: c.VNI, Addrs: c.Gateway.Addresses, Send: s.vsi.Send}
	for _, a := range s.members {
		cfg.Port = a.Dest(0)
	}
	for name, a := range s.far { // there is one, or a member
		cfg.Port, cfg.Tunnel = a.Dest(0), n.tunnels[name].v
	}
	i, err := n.gateway.VRF(c.Gateway.VRF).NewInterface(cfg)
	if err != nil {
		return err
	}
	s.iface = i
	return s.vsi.Configure(c.vsi(n.slots(s, c)))
}

// dropInterface removes the gateway from a segment.
func (n *Node) dropInterface(s *segment) {
	if s.iface == nil {
		return
	}
	s.iface.Close()
	if g := s.cfg.Gateway; g != nil && !g.MAC.IsZero() {
		s.vsi.FDB().Delete(g.MAC)
		if !g.Own.IsZero() {
			s.vsi.FDB().Delete(g.Own)
		}
	}
	s.iface = nil
}

func mode(c *Segment) arp.Mode {
	if c.Neighbours == nil {
		return arp.Off
	}
	return arp.Mode(c.Neighbours.Mode)
}

// limits are what a table of neighbours cannot change.
func limits(c *Segment) [2]int {
	if c.Neighbours == nil {
		return [2]int{}
	}
	return [2]int{c.Neighbours.Limit, c.Neighbours.PerDest}
}

// keepNeighbours makes the static neighbours those of c.
func (s *segment) keepNeighbours(c *Segment) {
	want := map[Neighbour]bool{}
	if c.Neighbours != nil {
		for _, x := range c.Neighbours.Static {
			want[x] = true
		}
	}
	for e := range s.table.All() {
		if x := (Neighbour{e.IP, e.MAC}); e.Origin == arp.Static && !want[x] {
			s.table.Delete(e.IP)
		} else if e.Origin == arp.Static {
			delete(want, x)
		}
	}
	for x := range want {
		s.table.Set(x.IP, x.MAC, arp.Static, 0)
	}
}
