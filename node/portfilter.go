package node

import (
	"errors"
	"fmt"
	"maps"
	"net"

	"github.com/vxswitch/vxswitch/policy"
	vswitch "github.com/vxswitch/vxswitch/switch"
)

// SetPortFilters gives ports a guard and a policy that are not in the configuration, under traffic: f returns those of a port. f is
// called for the ports that there are, and for one that comes later, or again, before frames enter or leave there. has is what the
// port has had by f, or by another f before it, zero if it is new. f must not wait or call the node. nil ends all of them.
//
// A control plane that changes its policies and guards itself has no other work here: what it changes takes effect without the node.
func (n *Node) SetPortFilters(f func(port string, has policy.Filter) policy.Filter) error {
	n.updates.Lock()
	defer n.updates.Unlock()
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return fmt.Errorf("node: SetPortFilters: %w", net.ErrClosed)
	}
	n.portFilter = f
	for i := range n.cfg.Segments {
		c := &n.cfg.Segments[i]
		s := n.segments[c.VNI]
		if s == nil {
			continue
		}
		for k := range c.Members {
			err := n.setMember(s, c, &c.Members[k])
			if err != nil && !errors.Is(err, net.ErrClosed) { // of a port that has failed
				return fmt.Errorf("node: %s: member %q: %w", about(c.VNI), c.Members[k].Port, err)
			}
		}
	}
	n.sw.Settle() // no frame passes by the old ones when the call returns
	return nil
}

// PortFilters returns what SetPortFilters has given to ports, by port.
func (n *Node) PortFilters() map[string]policy.Filter {
	n.mu.Lock()
	defer n.mu.Unlock()
	return maps.Clone(n.portFilters)
}

// filterOf returns what a port has by SetPortFilters.
func (n *Node) filterOf(port string) (is policy.Filter) {
	has := n.portFilters[port]
	if n.portFilter != nil {
		is = n.portFilter(port, has)
	}
	if is == (policy.Filter{}) {
		delete(n.portFilters, port)
		return is
	}
	if is.Policy != nil && is.Policy != has.Policy {
		n.noteLogged(port, is.Policy)
	}
	n.portFilters[port] = is
	return is
}

// dropPortFilters forgets those of ports that the configuration does not have.
func (n *Node) dropPortFilters(w wanted) {
	maps.DeleteFunc(n.portFilters, func(port string, _ policy.Filter) bool { return w.ports[port] == nil })
}

// policySlots adds policies to the slots of a member, in order.
func policySlots(ingress []vswitch.Stage, list ...*policy.Policy) (in []vswitch.Stage, out vswitch.Stage) {
	var egress []vswitch.Stage
	for _, p := range list {
		if p != nil {
			ingress, egress = append(ingress, p.Ingress()), append(egress, p.Egress())
		}
	}
	switch len(egress) {
	case 0:
		return ingress, nil
	case 1:
		return ingress, egress[0]
	}
	return ingress, vswitch.Chain(egress...)
}
