package ovsdb

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/vxswitch/vxswitch/arp"
	"github.com/vxswitch/vxswitch/control"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/node"
	"github.com/vxswitch/vxswitch/ovsdb/internal/table"
	vswitch "github.com/vxswitch/vxswitch/switch"
)

// provide gives the node its segments: all, or if it refuses them, those that it takes.
func (s *Switch) provide(segments []table.Segment, refused map[string]error) {
	for _, own := range s.node.Config().Segments {
		is := func(x table.Segment) bool { return x.VNI == own.VNI }
		if i := slices.IndexFunc(segments, is); i >= 0 {
			refused[segments[i].Name] = fmt.Errorf("tunnel_key: %v: is the VNI of a segment of the configuration", own.VNI)
			segments = slices.Delete(slices.Clone(segments), i, i+1)
		}
	}
	was := s.provided
	all := func(table.Segment) bool { return true }
	known := func(x table.Segment) bool {
		return slices.ContainsFunc(was, func(w table.Segment) bool { return w.ID == x.ID && w.VNI == x.VNI })
	}
	same := func(x table.Segment) bool {
		return slices.ContainsFunc(was, func(w table.Segment) bool { return reflect.DeepEqual(w, x) })
	}
	var rest []table.Segment
	for _, first := range []func(table.Segment) bool{all, known, same} { // those that work do not go while others are tried
		s.provided, rest = nil, nil
		for _, x := range segments {
			if first(x) {
				s.provided = append(s.provided, x)
			} else {
				rest = append(rest, x)
			}
		}
		if s.node.Provide(s.cfg.owner(), s.parts(s.provided)) == nil {
			break
		}
		s.provided, rest = nil, segments
	}
	for _, x := range rest {
		next := append(s.provided[:len(s.provided):len(s.provided)], x)
		if err := s.node.Provide(s.cfg.owner(), s.parts(next)); err != nil {
			refused[x.Name] = err
			s.log.Warn("a Logical_Switch is refused", "name", x.Name, "error", err)
			continue
		}
		s.provided = next
	}
	if len(s.provided) == 0 {
		s.node.Provide(s.cfg.owner(), nil)
	}
}

// parts makes segments out of networks. MACs behind the tunnel are the controller's, and neighbours are snooped.
func (s *Switch) parts(segments []table.Segment) *node.Config {
	c := new(node.Config)
	for _, x := range segments {
		seg := node.Segment{VNI: x.VNI, Neighbours: &node.Neighbours{Config: arp.Config{Mode: arp.Suppress}},
			Tunnels: []node.SegmentTunnel{{Tunnel: s.cfg.Tunnel, AttachConfig: vswitch.AttachConfig{NoLearn: true}}}}
		for _, m := range x.Members {
			seg.Members = append(seg.Members, node.Member{Port: m.Port, VLAN: m.VLAN})
		}
		c.Segments = append(c.Segments, seg)
	}
	return c
}

// within returns the rows of segments that the node has taken. Those of another one with the VNI are not the controller's.
func (s *Switch) within(rows []control.Row) []control.Row {
	ours := map[frame.VNI]bool{}
	for _, x := range s.provided {
		ours[x.VNI] = true
	}
	return slices.DeleteFunc(rows, func(r control.Row) bool {
		switch r := r.(type) {
		case control.MAC:
			return !ours[r.VNI]
		case control.Flood:
			return !ours[r.VNI]
		}
		return false
	})
}
