package node

import (
	"maps"
	"slices"

	"github.com/vxswitch/vxswitch/arp"
	"github.com/vxswitch/vxswitch/capture"
	"github.com/vxswitch/vxswitch/control"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/l3"
	"github.com/vxswitch/vxswitch/policy"
	"github.com/vxswitch/vxswitch/setting"
	vswitch "github.com/vxswitch/vxswitch/switch"
	"github.com/vxswitch/vxswitch/vtep"
)

// Config returns a copy of the current configuration, without what control planes provide.
func (n *Node) Config() *Config {
	n.mu.Lock()
	defer n.mu.Unlock()
	return setting.Clone(n.base)
}

// Running returns a copy of the configuration that runs: with what control planes provide.
func (n *Node) Running() *Config {
	n.mu.Lock()
	defer n.mu.Unlock()
	return setting.Clone(n.cfg)
}

// Switch returns the node's switch. Its Events and State tell of everything that the node has: also gateways and neighbours.
func (n *Node) Switch() *vswitch.Switch { return n.sw }

// Plane returns the control plane of the node. To change rows use [Node.Program], which does not interfere with Apply. Only the
// node changes the rows of the configuration, whose owner is [Owner].
func (n *Node) Plane() *control.Plane { return n.plane }

// Gateway returns the node's gateway.
func (n *Node) Gateway() *l3.Gateway { return n.gateway }

// Capture returns the capture of all ports, tunnels and segments. It is off until started.
func (n *Node) Capture() *capture.Capture { return n.capture }

// Tunnels returns the VTEPs by name.
func (n *Node) Tunnels() map[string]*vtep.VTEP {
	n.mu.Lock()
	defer n.mu.Unlock()
	m := make(map[string]*vtep.VTEP, len(n.tunnels))
	for name, t := range n.tunnels {
		m[name] = t.v
	}
	return m
}

// Policies returns the policies by name.
func (n *Node) Policies() map[string]*policy.Policy {
	n.mu.Lock()
	defer n.mu.Unlock()
	m := make(map[string]*policy.Policy, len(n.policies))
	for name, r := range n.policies {
		m[name] = r.Policy
	}
	return m
}

// Segments returns the VSIs of the segments in the order of their VNIs. The switch has others: those of BFD inside tunnels.
func (n *Node) Segments() (list []*vswitch.VSI) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, vni := range slices.Sorted(maps.Keys(n.segments)) {
		list = append(list, n.segments[vni].vsi)
	}
	return list
}

// Interfaces returns the gateway's interfaces in the order of their VNIs.
func (n *Node) Interfaces() (list []*l3.Interface) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, vni := range slices.Sorted(maps.Keys(n.segments)) {
		if i := n.segments[vni].iface; i != nil {
			list = append(list, i)
		}
	}
	return list
}

// Neighbours returns the responder of a segment, nil if it has none.
func (n *Node) Neighbours(vni frame.VNI) *arp.Responder {
	n.mu.Lock()
	defer n.mu.Unlock()
	if s := n.segments[vni]; s != nil {
		return s.responder
	}
	return nil
}

// Guards returns the guards of members, but for ports that are down, by segment and the name that the switch has for the member.
func (n *Node) Guards() map[frame.VNI]map[string]*policy.Guard {
	n.mu.Lock()
	defer n.mu.Unlock()
	m := map[frame.VNI]map[string]*policy.Guard{}
	for vni, s := range n.segments {
		for key, g := range s.guards {
			a := s.members[key]
			if a.Err() != nil { // its number may be another's
				continue
			}
			if m[vni] == nil {
				m[vni] = map[string]*policy.Guard{}
			}
			m[vni][n.sw.Name(a.Dest(0))] = g
		}
	}
	return m
}
