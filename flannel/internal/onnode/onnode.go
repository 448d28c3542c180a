// Package onnode has what each flannel.Shape on a node.Node does alike, however its pods are reached.
package onnode

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"

	"github.com/vxswitch/vxswitch/control"
	"github.com/vxswitch/vxswitch/flannel"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/node"
	vswitch "github.com/vxswitch/vxswitch/switch"
	"github.com/vxswitch/vxswitch/vtep"
)

// Tunnel fills in what a lease says of the settings of a tunnel: unless it has a Local, its ends are the public addresses, and Gateway is
// for IPv4, of which the network may have none. It accepts packets from anyPeer, or from nodes with a lease.
func Tunnel(t node.Tunnel, own *flannel.Own, anyPeer bool) node.Tunnel {
	if !t.Local.IsValid() {
		t.Local, t.Local6 = own.Underlay()
		if t.Local.Is6() {
			t.Gateway = t.Gateway6
		}
		if !t.Local6.IsValid() {
			t.Gateway6 = netip.Addr{}
		}
	}
	if t.Peers = vtep.ListedPerVNI; anyPeer {
		t.Peers = vtep.AnyPeer
	}
	return t
}

// Provide provides parts to a node. Their segments, but for the shared one, must not be in its configuration: whoever is a member there would
// be among the nodes of the network.
func Provide(n *node.Node, owner string, parts *node.Config, shared frame.VNI) error {
	for _, s := range n.Config().Segments {
		if s.VNI != shared && slices.ContainsFunc(parts.Segments, func(p node.Segment) bool { return p.VNI == s.VNI }) {
			return fmt.Errorf("VNI %d of the network is that of a segment of this node: give the segment another one", s.VNI)
		}
	}
	return n.Provide(owner, parts)
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
