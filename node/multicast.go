package node

import (
	"reflect"

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

// multicast checks the settings of snooping.
func (k *checker) multicast(key string, g *Segment) {
	if g.Multicast == nil {
		return
	}
	cfg := *g.Multicast
	cfg.Send = func(frame.Dest, *frame.Frame) bool { return false }
	k.Ask(key, *g.Multicast, cfg.Check)
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
