package node

import (
	"reflect"
	"slices"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/snoop"
)

// setMulticast makes the segment's Snooper. With other settings it is a new one, and multicast is flooded until hosts have
// answered.
func (n *Node) setMulticast(s *segment, c *Segment) error {
	if reflect.DeepEqual(s.snooped, c.Multicast) {
		return nil
	}
	if s.snooped, s.snooper = nil, nil; c.Multicast == nil {
		return nil
	}
	cfg := *c.Multicast
	cfg.Send = s.vsi.Send
	return n.step("multicast", func() (err error) {
		if s.snooper, err = snoop.New(&cfg); err == nil {
			x := *c.Multicast
			s.snooped = &x
		}
		return err
	})
}

// setMulticastRouters says where the segment's multicast routers are. Those on ports that are down follow when these are back.
func (s *segment) setMulticastRouters(c *Segment) {
	if s.snooper == nil {
		return
	}
	var places []frame.Dest
	for _, name := range c.MulticastRouters {
		a := s.tunnels[name]
		if list := c.membersNamed(name); len(list) > 0 {
			a = s.members[list[0].key()].Attachment
		}
		if a != nil && a.Err() == nil { // else its number may be another's
			places = append(places, a.Dest(0))
		}
	}
	s.snooper.SetRouters(places...)
}

// multicast checks the settings of snooping.
func (k *checker) multicast(key string, g *Segment) {
	if g.Multicast == nil {
		if len(g.MulticastRouters) > 0 {
			k.Fail(key+".multicastRouters", nil, "requires multicast")
		}
		return
	}
	cfg := *g.Multicast
	cfg.Send = func(frame.Dest, *frame.Frame) bool { return false }
	k.Ask(key+".multicast", *g.Multicast, cfg.Check)
	seen := map[string]bool{}
	each(k.Report, key+".multicastRouters", g.MulticastRouters, func(at string, name *string) {
		k.multicastRouter(at, g, *name)
		once(k, at, seen, *name)
	})
}

func (k *checker) multicastRouter(key string, g *Segment, name string) {
	list := g.membersNamed(name)
	switch {
	case len(list) == 0 && slices.ContainsFunc(g.in(), func(x SegmentTunnel) bool { return x.Tunnel == name }):
	case len(list) == 0:
		k.Want(key, name, "a member or a tunnel of the segment")
	case len(list) == 1 && list[0].attach().Group != 0:
		k.Fail(key, name, "a member that is isolated or in a group cannot be a multicast router")
	default:
		k.memberName(key, g, name)
	}
}

// Snooper returns what a segment knows of multicast listeners, nil if it has no Multicast.
func (n *Node) Snooper(vni frame.VNI) *snoop.Snooper {
	n.mu.Lock()
	defer n.mu.Unlock()
	if s := n.segments[vni]; s != nil {
		return s.snooper
	}
	return nil
}
