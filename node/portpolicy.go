package node

import (
	"errors"
	"fmt"
	"maps"
	"net"

	"github.com/vxswitch/vxswitch/policy"
	vswitch "github.com/vxswitch/vxswitch/switch"
)

// SetPortPolicies gives ports a policy that is not in the configuration, under traffic: f returns that of a port, nil for none. It
// decides behind the guard of a member, and before the policies that the configuration has there. f is called for the ports that there
// are, and for one that comes later, or again, before frames enter or leave there. has is the policy that the port has had by f, or by
// another f before it, nil if it is new. f must not wait or call the node. nil ends all of them.
//
// A control plane that changes its policies itself has no other work here: a rule that it changes takes effect without the node.
func (n *Node) SetPortPolicies(f func(port string, has *policy.Policy) *policy.Policy) error {
	n.updates.Lock()
	defer n.updates.Unlock()
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return fmt.Errorf("node: SetPortPolicies: %w", net.ErrClosed)
	}
	n.portPolicy = f
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

// PortPolicies returns the policies that SetPortPolicies has given to ports, by port.
func (n *Node) PortPolicies() map[string]*policy.Policy {
	n.mu.Lock()
	defer n.mu.Unlock()
	return maps.Clone(n.portPolicies)
}

// policyOf returns the policy that a port has by SetPortPolicies, nil for none.
func (n *Node) policyOf(port string) *policy.Policy {
	has := n.portPolicies[port]
	if n.portPolicy == nil {
		delete(n.portPolicies, port)
		return nil
	}
	p := n.portPolicy(port, has)
	switch {
	case p == nil:
		delete(n.portPolicies, port)
	case p != has:
		n.noteLogged(port, p)
		n.portPolicies[port] = p
	}
	return p
}

// dropPortPolicies forgets those of ports that the configuration does not have.
func (n *Node) dropPortPolicies(w wanted) {
	maps.DeleteFunc(n.portPolicies, func(port string, _ *policy.Policy) bool { return w.ports[port] == nil })
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
