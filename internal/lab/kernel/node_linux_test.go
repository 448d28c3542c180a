package kernel

import (
	"context"
	"net/netip"
	"testing"

	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
	"github.com/vxswitch/vxswitch/port"
	vswitch "github.com/vxswitch/vxswitch/switch"
	"github.com/vxswitch/vxswitch/underlay"
	"github.com/vxswitch/vxswitch/vtep"
)

// node is a program with a VTEP of ours and a switch, whose sockets are in a host.
type node struct {
	t  *testing.T
	u  vtep.Underlay
	v  *vtep.VTEP
	sw *vswitch.Switch
}

// newNode starts a node on a local address; it ends with the test.
func newNode(t *testing.T, h *netns.Host, local string, s settings) *node {
	t.Helper()
	n := &node{t: t}
	var err error
	h.Do(func() {
		at := netip.AddrPortFrom(netip.MustParseAddr(local), encap.VXLANPort)
		if s.typ == encap.TypeGPE {
			at = netip.AddrPortFrom(at.Addr(), encap.GPEPort)
		}
		if s.packet != nil {
			n.u, err = underlay.ListenPacket(at, s.packet)
		} else {
			n.u, err = underlay.ListenUDP(at, &s.udp)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if n.v, err = vtep.New(&vtep.Config{Type: s.typ, Header: s.header, Reserved: s.reserved, GBP: s.gbp}, n.u); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { n.v.Close() }) // one that was never attached the switch does not close
	n.sw = running(t)
	return n
}

// running returns a switch that runs until the test ends.
func running(t *testing.T) *vswitch.Switch {
	t.Helper()
	sw, err := vswitch.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- sw.Run(context.Background()) }()
	t.Cleanup(func() {
		sw.Close()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	return sw
}

// vsi makes a network that floods to the peers.
func (n *node) vsi(id frame.VNI, cfg *vswitch.VSIConfig, peers ...string) *vswitch.VSI {
	n.t.Helper()
	return n.vsiWith(id, cfg, vswitch.AttachConfig{}, peers...)
}

func (n *node) vsiWith(id frame.VNI, cfg *vswitch.VSIConfig, at vswitch.AttachConfig, peers ...string) *vswitch.VSI {
	n.t.Helper()
	vsi, err := n.sw.VSI(id, cfg)
	if err != nil {
		n.t.Fatal(err)
	}
	if _, err := vsi.AttachWith(n.v, uint32(id), at); err != nil {
		n.t.Fatal(err)
	}
	var to []netip.AddrPort
	for _, p := range peers {
		to = append(to, netip.AddrPortFrom(netip.MustParseAddr(p), 0))
	}
	if err := n.v.SetFlood(id, to...); err != nil {
		n.t.Fatal(err)
	}
	return vsi
}

// tap attaches a TAP device of a host, with the tunnel's MTU; a zero MAC is a random
// one.
func (n *node) tap(vsi *vswitch.VSI, h *netns.Host, name string, mac frame.MAC) {
	n.t.Helper()
	n.tapWith(vsi, h, name, mac, vswitch.AttachConfig{})
}

// tapWith attaches one with settings of its own.
func (n *node) tapWith(vsi *vswitch.VSI, h *netns.Host, name string, mac frame.MAC, at vswitch.AttachConfig) {
	n.t.Helper()
	n.tapMTU(vsi, h, name, mac, n.v.MTU(0)-encap.EthernetLen, at)
}

// tapMTU attaches one with another MTU.
func (n *node) tapMTU(vsi *vswitch.VSI, h *netns.Host, name string, mac frame.MAC, mtu int, at vswitch.AttachConfig) {
	n.t.Helper()
	tap, err := port.OpenTAP(name, &port.DeviceConfig{MTU: mtu, MAC: mac, Namespace: h.NS})
	if err != nil {
		n.t.Fatal(err)
	}
	if _, err := vsi.AttachWith(tap, 0, at); err != nil {
		tap.Close()
		n.t.Fatal(err)
	}
}

// port returns the counters of one of the switch's ports.
func (n *node) port(name string) vswitch.PortStats {
	n.t.Helper()
	for _, p := range n.sw.Stats().Ports {
		if p.Name == name {
			return p
		}
	}
	n.t.Fatalf("no port %s", name)
	return vswitch.PortStats{}
}
