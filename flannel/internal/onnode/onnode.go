// Package onnode has what each flannel.Shape on a node.Node does alike, however its pods are reached.
package onnode

import (
	"errors"
	"net"

	"github.com/vxswitch/vxswitch/control"
	"github.com/vxswitch/vxswitch/flannel"
	"github.com/vxswitch/vxswitch/node"
	vswitch "github.com/vxswitch/vxswitch/switch"
	"github.com/vxswitch/vxswitch/vtep"
)

// Tunnel fills in what a lease says of the settings of a tunnel: unless it has a Local, its ends are the public addresses. It accepts
// packets from anyPeer, or from nodes with a lease.
func Tunnel(t node.Tunnel, own *flannel.Own, anyPeer bool) node.Tunnel {
	if !t.Local.IsValid() {
		t.Local, t.Local6 = own.Underlay()
	}
	if t.Peers = vtep.ListedPerVNI; anyPeer {
		t.Peers = vtep.AnyPeer
	}
	return t
}

// Misses returns events for a Plane, nil for none.
func Misses(e *vswitch.Events) flannel.Misses {
	if e == nil {
		return nil // not an interface with a nil pointer in it
	}
	return e
}

// Remove removes the rows and parts of an owner. A node that has ended has none.
func Remove(n *node.Node, owner string) error {
	err := n.Program(owner, control.Update{Snapshot: true})
	if err == nil {
		err = n.Provide(owner, nil)
	}
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}
