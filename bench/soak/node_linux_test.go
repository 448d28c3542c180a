package soak

import (
	"context"
	"net/netip"
	"testing"

	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
	"github.com/vxswitch/vxswitch/node"
	"github.com/vxswitch/vxswitch/vtep"
)

const vni = 100

// An end is an end point: a node with a TAP and a tunnel.
type end struct{ *node.Node }

// newEnd makes an end point in a host and gives its TAP an address; it ends with the
// test.
func newEnd(t *testing.T, h *netns.Host, local, remote, inner string) *end {
	t.Helper()
	n, err := node.New(nil)
	check.OK(t, err)
	done := make(chan error, 1)
	go func() { done <- n.Run(context.Background()) }()
	t.Cleanup(func() {
		n.Close()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	h.Do(func() {
		err = n.Apply(&node.Config{
			Tunnels: []node.Tunnel{{Config: vtep.Config{Name: "vtep"}, Local: netip.MustParseAddr(local)}},
			Ports:   []node.Port{{Name: "tap0"}},
			Segments: []node.Segment{{
				VNI: vni, Tunnel: "vtep", Flood: []netip.Addr{netip.MustParseAddr(remote)}, Members: []node.Member{{Port: "tap0"}},
			}},
		})
	})
	check.OK(t, err)
	h.Addr("tap0", inner)
	return &end{n}
}

// frames is how many frames the switch has read; a superframe is one.
func (e *end) frames() (n uint64) {
	for _, p := range e.Switch().Stats().Ports {
		n += p.Rx.Frames
	}
	return n
}
