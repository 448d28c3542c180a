package kernel

import (
	"context"
	"net/netip"
	"testing"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/carry"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
	"github.com/vxswitch/vxswitch/node"
	"github.com/vxswitch/vxswitch/port"
	vswitch "github.com/vxswitch/vxswitch/switch"
	"github.com/vxswitch/vxswitch/underlay"
	"github.com/vxswitch/vxswitch/underlay/afpacket"
	"github.com/vxswitch/vxswitch/vtep"
)

// ourNode is a program with a node of ours, whose tunnel has its sockets in a host.
type ourNode struct {
	*node.Node
	t *testing.T
	u vtep.Underlay
	v *vtep.VTEP
}

// newNode starts a node on a local address; it ends with the test.
func newNode(t *testing.T, h *netns.Host, local string, s settings) *ourNode {
	t.Helper()
	n := &ourNode{t: t}
	n.Node = running(t, &node.Options{Listen: func(c *node.Tunnel) (_ vtep.Underlay, err error) {
		h.Do(func() {
			switch {
			case s.packet != nil:
				n.u, err = afpacket.Listen(c.AddrPort(), s.packet)
			case s.portable:
				n.u, err = underlay.ListenPortable(c.AddrPort(), &s.udp)
			default:
				n.u, err = underlay.ListenUDP(c.AddrPort(), &s.udp)
			}
		})
		return n.u, err
	}})
	h.Do(func() { carry.On(t, n.Switch()) })
	var err error
	n.v, err = n.Tunnel("vtep", node.Tunnel{Local: netip.MustParseAddr(local), Config: vtep.Config{Type: s.typ, Header: s.header, Reserved: s.reserved, GBP: s.gbp}})
	check.OK(t, err)
	return n
}

// running returns a node that runs until the test ends.
func running(t *testing.T, o *node.Options) *node.Node {
	t.Helper()
	n := check.Must(node.New(o))(t)
	done := make(chan error, 1)
	go func() { done <- n.Run(context.Background()) }()
	t.Cleanup(func() {
		n.Close()
		err := <-done
		check.True(t, err == nil, "Run: %v", err)
	})
	return n
}

func (n *ourNode) must(err error) {
	n.t.Helper()
	check.OK(n.t, err)
}

// vsi makes a network that floods to the peers.
func (n *ourNode) vsi(id frame.VNI, peers ...string) *vswitch.VSI {
	n.t.Helper()
	return n.vsiWith(id, vswitch.VSIConfig{}, vswitch.AttachConfig{}, peers...)
}

func (n *ourNode) vsiWith(id frame.VNI, cfg vswitch.VSIConfig, at vswitch.AttachConfig, peers ...string) *vswitch.VSI {
	n.t.Helper()
	in := []node.SegmentTunnel{{Tunnel: "vtep", Flood: addrs(peers), AttachConfig: at}}
	check.Must(n.Segment(id, &node.Segment{VSIConfig: cfg, Tunnels: in}))(n.t)
	vsi := check.Must(n.segment(id).Switch())(n.t)
	return vsi
}

// segment returns a network that there is.
func (n *ourNode) segment(id frame.VNI) *node.VSI {
	n.t.Helper()
	seg := check.Must(n.Segment(id, nil))(n.t)
	return seg
}

func addrs(of []string) (list []netip.Addr) {
	for _, a := range of {
		list = append(list, netip.MustParseAddr(a))
	}
	return list
}

// tap attaches a TAP device of a host, with the tunnel's MTU; a zero MAC is a random
// one.
func (n *ourNode) tap(id frame.VNI, h *netns.Host, name string, mac frame.MAC) *port.Device {
	n.t.Helper()
	return n.tapMTU(id, h, name, mac, 0)
}

// tapMTU attaches one with another MTU.
func (n *ourNode) tapMTU(id frame.VNI, h *netns.Host, name string, mac frame.MAC, mtu int) *port.Device {
	n.t.Helper()
	tap := check.Must(port.OpenTAP(name, &port.DeviceConfig{MTU: mtu, MAC: mac, Namespace: h.NS}))(n.t)
	if err := n.segment(id).Add(tap, nil); err != nil {
		tap.Close()
		n.t.Fatal(err)
	}
	return tap
}

// port returns the counters of one of the switch's ports.
func (n *ourNode) port(name string) vswitch.PortStats {
	n.t.Helper()
	for _, p := range n.Switch().Stats().Ports {
		if p.Name == name {
			return p
		}
	}
	n.t.Fatalf("no port %s", name)
	return vswitch.PortStats{}
}
