package node

import (
	"maps"
	"reflect"
	"slices"

	"github.com/vxswitch/vxswitch/arp"
	"github.com/vxswitch/vxswitch/fdb"
	"github.com/vxswitch/vxswitch/frame"
	vswitch "github.com/vxswitch/vxswitch/switch"
)

// A change takes many steps, and a frame that comes between two of them must not get where
// neither the old nor the new configuration lets it:
//
//	close     what is changed in more than one step, and what goes, lets no more frames pass
//	release   what goes, goes
//	set       policies, settings, gateways; new tunnels and members are attached shut
//	rows      flood lists, MACs and routes become those of the new configuration
//	open      what is shut lets frames pass
//
// What changes in one step is not interrupted: another rule, another peer, one member isolated.

// A gate is what lets no frames pass in a segment between close and open.
type gate struct {
	shut    map[*vswitch.Attachment]bool
	gateway bool // it gets no frames
	unknown bool // unknown unicast is dropped: the configuration may say where it is to go
}

// attach makes a port a member of the segment, shut.
func (s *segment) attach(p vswitch.Port, tag uint32, at vswitch.AttachConfig) (*vswitch.Attachment, error) {
	at.Shut = true
	a, err := s.vsi.AttachWith(p, tag, at)
	if err == nil {
		s.gate.shut[a] = true
	}
	return a, err
}

// set changes the settings of an attachment, which stays shut if it is.
func (s *segment) set(a *vswitch.Attachment, at vswitch.AttachConfig) error {
	at.Shut = s.gate.shut[a]
	return a.Configure(at)
}

// detach ends one of two kinds of attachments, and the interface that stands on it.
func (s *segment) detach(from map[string]*vswitch.Attachment, name string) error {
	if s.onPort() {
		s.dropInterface()
	}
	a := from[name]
	delete(from, name)
	delete(s.gate.shut, a)
	return a.Detach()
}

// configure changes the settings of the VSI, behind the gate.
func (s *segment) configure(cfg vswitch.VSIConfig) error {
	s.settings = cfg
	if s.gate.gateway {
		cfg.Slots.Gateway = nil
	}
	if s.gate.unknown {
		cfg.NoFlood |= vswitch.UnknownUnicast
	}
	return s.vsi.Configure(cfg)
}

// closeGate closes the segment's, and with shut that of each attachment.
func (s *segment) closeGate(shut bool) error {
	err := s.configure(s.settings)
	for _, a := range s.vsi.Attachments() {
		if shut && err == nil {
			s.gate.shut[a] = true
			err = s.set(a, a.Config())
		}
	}
	return err
}

// openGate opens it, and those of attachments.
func (s *segment) openGate() (err error) {
	if s.gate.gateway || s.gate.unknown {
		s.gate.gateway, s.gate.unknown = false, false
		err = s.configure(s.settings)
	}
	for a := range s.gate.shut {
		if err == nil {
			delete(s.gate.shut, a)
			err = s.set(a, a.Config())
		}
	}
	return err
}

// closeGates closes those of segments, as far as it is needed for w.
func (n *Node) closeGates(w wanted, a *attempt) {
	was, closed := index(n.cfg), false
	for _, vni := range slices.Sorted(maps.Keys(n.segments)) {
		s, c := n.segments[vni], w.segments[vni]
		gateway := c == nil || !reflect.DeepEqual(s.made, c.neighbourhood())
		unknown := c != nil && (gateway && s.iface != nil || n.losesEntries(s, c, w))
		shut := a.back || c != nil && inSteps(was.segments[vni], c, was, w)
		if !gateway && !unknown && !shut {
			continue
		}
		closed = true
		s.gate.gateway, s.gate.unknown = s.gate.gateway || gateway, s.gate.unknown || unknown
		if n.take(a, about(vni), "close", func() error { return s.closeGate(shut) }) {
			return
		}
	}
	if closed {
		n.sw.Settle()
	}
}

// openGates opens them all.
func (n *Node) openGates(a *attempt) {
	for _, vni := range slices.Sorted(maps.Keys(n.segments)) {
		if n.take(a, about(vni), "open", n.segments[vni].openGate) {
			return
		}
	}
	for _, v := range n.gateway.VRFs() {
		v.Release()
	}
}

// losesEntries reports whether the FDB has entries that nobody has learned on what is detached
// for c and w.
func (n *Node) losesEntries(s *segment, c *Segment, w wanted) bool {
	goes := map[uint16]bool{}
	for name, a := range s.far {
		t, is := n.tunnels[name], w.tunnels[name]
		if t == nil || is == nil || !n.stays(is) || !n.keeps(c, name, a) {
			goes[a.Dest(0).Port()] = true
		}
	}
	for name, a := range s.members {
		d, is, m := n.ports[name], w.ports[name], c.member(name)
		if d == nil || is == nil || m == nil || !d.is(is) || m.VLAN != int(a.Tag()) {
			goes[a.Dest(0).Port()] = true
		}
	}
	if len(goes) == 0 {
		return false
	}
	for e := range s.vsi.FDB().All() {
		if e.Origin != fdb.OriginLearned && goes[e.Dest.Port()] {
			return true
		}
	}
	return false
}

// inSteps reports whether c differs from old in more than one thing that says where frames may go:
// each of them changes in one step, but not all in the same step.
func inSteps(old, c *Segment, was, is wanted) bool {
	if old == nil {
		return true
	}
	n := 0
	count := func(differs bool) {
		if differs {
			n++
		}
	}
	ruled := map[string]bool{}
	rules := func(name string) {
		count(!ruled[name] && was.policies[name] != nil && is.policies[name] != nil && !reflect.DeepEqual(was.policies[name], is.policies[name]))
		ruled[name] = true
	}
	routes := func(g *SegmentGateway) bool {
		return g != nil && !reflect.DeepEqual(was.vrfs[g.VRF], is.vrfs[g.VRF])
	}
	count(old.Policy != c.Policy)
	rules(old.Policy)
	rules(c.Policy)
	count((mode(old) == arp.Access) != (mode(c) == arp.Access))
	count(old.NoFlood != c.NoFlood)
	count(old.InnerVLAN != c.InnerVLAN)
	count(old.ForwardPinned != c.ForwardPinned)
	count(old.ForwardBridgeGroup != c.ForwardBridgeGroup)
	count(old.RouteIsolated != c.RouteIsolated)
	count(!reflect.DeepEqual(old.Gateway, c.Gateway))
	guards, lists := false, false
	for _, m := range c.Members {
		if o := old.member(m.Port); o != nil {
			x := *o
			guards = guards || !reflect.DeepEqual(x.Guard, m.Guard)
			x.Guard, m.Guard = nil, nil
			count(!reflect.DeepEqual(x, m)) // two of one group that go over to another one are in none together meanwhile
			rules(o.Policy)
			rules(m.Policy)
		}
	}
	for _, x := range c.in() {
		for _, o := range old.in() {
			if o.Tunnel == x.Tunnel {
				count(o.Hub != x.Hub || o.Group != x.Group) // one after the other, two fabrics would meet
				count(o.NoFlood != x.NoFlood || o.Locked != x.Locked || o.GBP != x.GBP)
				lists = lists || !reflect.DeepEqual(o.Flood, x.Flood)
			}
		}
	}
	count(guards)
	count(lists || !reflect.DeepEqual(old.FDB, c.FDB) || routes(old.Gateway) || routes(c.Gateway))
	return n > 1
}

// macs returns the MACs of a gateway, nil for none.
func (g *SegmentGateway) macs() []frame.MAC {
	if g == nil || g.MAC.IsZero() {
		return nil
	}
	return slices.DeleteFunc([]frame.MAC{g.MAC, g.Own}, frame.MAC.IsZero)
}
