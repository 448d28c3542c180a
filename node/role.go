package node

import (
	"errors"
	"fmt"
	"net"
	"slices"

	"github.com/vxswitch/vxswitch/frame"
	vswitch "github.com/vxswitch/vxswitch/switch"
)

// A roleKey is the members of a port in a segment.
type roleKey struct {
	vni  frame.VNI
	port string
}

// SetRole sets the role of the members of a port in a segment, under traffic. It outlasts changes of the configuration: a member that
// comes later, or again, has it before frames enter or leave there. The zero Role ends it.
func (n *Node) SetRole(port string, vni frame.VNI, r vswitch.Role) error {
	if err := r.Check(); err != nil {
		return fmt.Errorf("node: segment %d: member %q: %w", vni, port, err)
	}
	r.Shared = slices.Clone(r.Shared)
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return fmt.Errorf("node: SetRole: %w", net.ErrClosed)
	}
	k := roleKey{vni, port}
	was := n.role(k)
	if was.Equal(&r) {
		return nil
	}
	if r.Equal(&vswitch.Role{}) {
		delete(n.roles, k)
	} else {
		n.roles[k] = &r
	}
	s := n.segments[vni]
	if s == nil {
		return nil
	}
	for _, a := range s.members {
		if a.port != port {
			continue
		}
		at := a.Config()
		at.Role = n.roles[k]
		if err := s.set(a.Attachment, at); err != nil && !errors.Is(err, net.ErrClosed) { // of a port that has failed
			return fmt.Errorf("node: segment %d: member %q: %w", vni, port, err)
		}
	}
	return nil
}

// Role returns what SetRole has set.
func (n *Node) Role(port string, vni frame.VNI) vswitch.Role {
	n.mu.Lock()
	defer n.mu.Unlock()
	r := n.role(roleKey{vni, port})
	r.Shared = slices.Clone(r.Shared)
	return r
}

func (n *Node) role(k roleKey) vswitch.Role {
	if r := n.roles[k]; r != nil {
		return *r
	}
	return vswitch.Role{}
}
