package node

import (
	"reflect"
	"slices"

	"github.com/vxswitch/vxswitch/arp"
	"github.com/vxswitch/vxswitch/fdb"
	"github.com/vxswitch/vxswitch/frame"
	vswitch "github.com/vxswitch/vxswitch/switch"
)

// A change takes many steps. A frame between two of them must not be forwarded where neither the old nor the new
// configuration allows it:
//
//	close     block frames in parts that change in more than one step or are removed
//	release   detach removed parts
//	set       change policies, settings and gateways; attach new tunnels and members, shut
//	rows      change flood lists, MACs and routes
//	open      unblock
//
// A change of one step does not block: another rule, another peer, an isolated member.

// losesEntries reports whether the FDB has entries, other than learned ones, on attachments that the change to c and w
// detaches.
func (n *Node) losesEntries(s *segment, c *Segment, w wanted) bool {
	goes := map[uint16]bool{}
	for name, a := range s.tunnels {
		t, is := n.tunnels[name], w.tunnels[name]
		if t == nil || is == nil || !n.stays(is) || !n.keeps(c, name, a) {
			goes[a.Dest(0).Port()] = true
		}
	}
	for _, a := range s.members {
		if d, is := n.ports[a.port], w.ports[a.port]; d == nil || is == nil || !d.is(is) && !d.resized(is) || !a.stays(c) {
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

// changedMatches returns the places whose members match other frames than before: what a member no longer takes is another's, and
// meanwhile nobody's.
func changedMatches(was, is wanted) map[place]bool {
	list := func(w wanted) map[place]map[frame.VNI]vswitch.Matcher {
		all := map[place]map[frame.VNI]vswitch.Matcher{}
		for vni, c := range w.segments {
			for _, m := range c.Members {
				match := m.attach().Match
				if match == nil {
					continue
				}
				if all[m.place()] == nil {
					all[m.place()] = map[frame.VNI]vswitch.Matcher{}
				}
				all[m.place()][vni] = match
			}
		}
		return all
	}
	old, now, changed := list(was), list(is), map[place]bool{}
	for p := range old {
		changed[p] = !reflect.DeepEqual(old[p], now[p])
	}
	for p := range now {
		changed[p] = !reflect.DeepEqual(old[p], now[p])
	}
	return changed
}

// inSteps reports whether c differs from old in more than one setting that affects where frames may go. Each of them
// changes in a step of its own.
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
	for _, name := range []string{old.Policy, c.Policy, old.gatewayPolicy(), c.gatewayPolicy()} {
		rules(name)
	}
	count((mode(old) == arp.Access) != (mode(c) == arp.Access))
	count(old.NoFlood != c.NoFlood)
	count(old.InnerVLAN != c.InnerVLAN)
	count(!reflect.DeepEqual(old.Multicast, c.Multicast) || !slices.Equal(old.MulticastRouters, c.MulticastRouters))
	count(old.ForwardPinned != c.ForwardPinned)
	count(old.ForwardBridgeGroup != c.ForwardBridgeGroup)
	count(old.RouteIsolated != c.RouteIsolated)
	count(!reflect.DeepEqual(old.Gateway, c.Gateway))
	guards, lists := false, false
	for _, m := range c.Members {
		if o := find(old.Members, func(x *Member) bool { return x.key() == m.key() }); o != nil {
			x := *o
			guards = guards || !reflect.DeepEqual(x.Guard, m.Guard)
			x.Guard, m.Guard = nil, nil
			count(!reflect.DeepEqual(x, m)) // two members that change their group would be in different groups meanwhile
			rules(o.Policy)
			rules(m.Policy)
		}
	}
	for _, x := range c.in() {
		for _, o := range old.in() {
			if o.Tunnel == x.Tunnel {
				count(o.Hub != x.Hub || o.Group != x.Group) // two fabrics would be connected meanwhile
				count(o.NoFlood != x.NoFlood || o.Locked != x.Locked || o.GBP != x.GBP)
				lists = lists || !reflect.DeepEqual(o.Flood, x.Flood)
			}
		}
	}
	count(guards)
	count(lists || !reflect.DeepEqual(old.FDB, c.FDB) || routes(old.Gateway) || routes(c.Gateway))
	return n > 1
}
