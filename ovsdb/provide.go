package ovsdb

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/vxswitch/vxswitch/arp"
	"github.com/vxswitch/vxswitch/control"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/l3"
	"github.com/vxswitch/vxswitch/node"
	"github.com/vxswitch/vxswitch/ovsdb/internal/table"
	vswitch "github.com/vxswitch/vxswitch/switch"
)

// provide gives the node its segments: all, or if it refuses them, those that it takes.
func (s *Switch) provide(plan *table.Plan, refused map[string]error) {
	segments := plan.Segments
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
		if s.node.Provide(s.cfg.owner(), s.parts(plan, s.provided)) == nil {
			break
		}
		s.provided, rest = nil, segments
	}
	for _, x := range rest {
		next := append(s.provided[:len(s.provided):len(s.provided)], x)
		if err := s.node.Provide(s.cfg.owner(), s.parts(plan, next)); err != nil {
			refused[x.Name] = err
			continue
		}
		s.provided = next
	}
	if len(s.provided) == 0 {
		s.node.Provide(s.cfg.owner(), nil)
	}
}

// parts makes segments out of networks, with the VRFs of their routers and the policies of their members. MACs behind the tunnel are the
// controller's, and neighbours are snooped.
func (s *Switch) parts(plan *table.Plan, segments []table.Segment) *node.Config {
	c := new(node.Config)
	acls := map[string]bool{}
	for _, x := range segments {
		seg := node.Segment{VNI: x.VNI, Neighbours: &node.Neighbours{Config: arp.Config{Mode: arp.Suppress}},
			Tunnels:   []node.SegmentTunnel{{Tunnel: s.cfg.Tunnel, AttachConfig: vswitch.AttachConfig{NoLearn: true}}},
			Multicast: s.cfg.Multicast}
		for _, m := range x.Members {
			member := node.Member{Port: m.Port, VLAN: m.VLAN}
			if acl, ok := x.ACLs[m]; ok {
				member.Policy, acls[acl] = s.named(acl), true
			}
			seg.Members = append(seg.Members, member)
		}
		if x.Router != "" {
			seg.Gateway = &node.SegmentGateway{VRF: s.vrf(plan, x.Router), Gateway: l3.InterfaceConfig{
				Addresses: x.Addresses, MAC: macOf(x.Router), VTEPMAC: s.source(), Anycast: true}}
			if x.RouterACL != "" {
				seg.Gateway.Policy, acls[x.RouterACL] = s.named(x.RouterACL), true
			}
		}
		c.Segments = append(c.Segments, seg)
	}
	for _, name := range slices.Sorted(maps.Keys(acls)) {
		c.Policies = append(c.Policies, node.Policy{Name: s.named(name), Config: *plan.ACLs[name]})
	}
	for _, r := range plan.Routers {
		with := func(x table.Segment) bool { return x.Router == r.ID }
		if slices.ContainsFunc(segments, with) {
			c.VRFs = append(c.VRFs, s.router(&r, segments))
		}
	}
	return c
}

// named returns the name of what a name of the database stands for, which is no other's.
func (s *Switch) named(name string) string { return s.cfg.owner() + ":" + name }

func (s *Switch) vrf(plan *table.Plan, id string) string {
	i := slices.IndexFunc(plan.Routers, func(r table.Router) bool { return r.ID == id })
	return s.named(plan.Routers[i].Name)
}

// router returns the VRF of a router, with its routes to neighbours in segments.
func (s *Switch) router(r *table.Router, segments []table.Segment) node.VRF {
	v := node.VRF{Name: s.named(r.Name)}
	for _, x := range r.Routes {
		if slices.ContainsFunc(segments, func(s table.Segment) bool { return s.VNI == x.VNI }) {
			v.Routes = append(v.Routes, node.Route{Prefix: x.Prefix, Via: []node.Hop{{Segment: x.VNI, IP: x.Via}}})
		}
	}
	return v
}

// macOf returns the MAC of a row: that of a router is the same at all switches of the database.
func macOf(id string) (mac frame.MAC) {
	h := sha256.Sum256([]byte(id))
	copy(mac[:], h[:])
	mac[0] = mac[0]&^1 | 2 // of one host, and locally administered
	return mac
}

// source returns the MAC from which the switch asks on behalf of routers, and routes to hosts of other VTEPs.
func (s *Switch) source() frame.MAC { return macOf("switch " + s.cfg.Name) }

// routes reports whether the node routes in one of its segments.
func (s *Switch) routes() bool {
	return slices.ContainsFunc(s.provided, func(x table.Segment) bool { return x.Router != "" })
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
