package node_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"github.com/vxswitch/vxswitch/bfd"
	"github.com/vxswitch/vxswitch/control"
	"github.com/vxswitch/vxswitch/frame"
	lab "github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/fake"
	"github.com/vxswitch/vxswitch/node"
	"github.com/vxswitch/vxswitch/port"
	"github.com/vxswitch/vxswitch/underlay/memory"
	"github.com/vxswitch/vxswitch/vtep"
)

// fabric is nodes on a network in memory.
type fabric struct {
	t   *testing.T
	net *memory.Network
}

// start runs a node until the test ends or stop is called.
func (f *fabric) start(cfg *node.Config) (n *node.Node, stop func()) {
	f.t.Helper()
	n = lab.Must(node.New(&node.Options{Listen: func(t *node.Tunnel) (vtep.Underlay, error) { return f.net.Listen(t.AddrPort(), nil) }}))(f.t)
	lab.OK(f.t, n.Apply(cfg))
	return n, lab.Run(f.t, n.Run)
}

var fast = &node.BFD{SessionConfig: bfd.SessionConfig{Interval: 250 * time.Millisecond, Multiplier: 4}}

func vtepOf(k int) netip.Addr  { return netip.AddrFrom4([4]byte{192, 0, 2, byte(k)}) }
func routerOf(k int) frame.MAC { return frame.MAC{2, 0, 0, 0, 50, byte(k)} }

// leafConfig is the configuration of router k: an L3VNI, and no routes.
func leafConfig(k int) *node.Config {
	return &node.Config{
		Tunnels:  []node.Tunnel{{Config: vtep.Config{Name: "vx", Peers: vtep.ListedPerVNI}, Local: vtepOf(k), BFD: fast}},
		Segments: []node.Segment{{VNI: 50, Tunnel: "vx", Gateway: &node.SegmentGateway{VRF: "red", Gateway: node.Gateway{MAC: routerOf(k)}}}},
		VRFs:     []node.VRF{{Name: "red"}},
	}
}

// learn has the control plane of a leaf learn a prefix from others: these are all its routes.
func learn(t *testing.T, n *node.Node, others ...int) {
	t.Helper()
	u := control.Update{Snapshot: true}
	for _, o := range others {
		u.Add = append(u.Add, control.Prefix{VRF: "red", Prefix: netip.MustParsePrefix("10.9.0.0/16"), Via: control.Via{
			VNI: 50, MAC: routerOf(o), VTEP: netip.AddrPortFrom(vtepOf(o), 0),
		}})
	}
	lab.OK(t, n.Program("evpn", u))
}

// leaf starts router k, which learns a prefix from others.
func (f *fabric) leaf(k int, others ...int) (n *node.Node, stop func()) {
	f.t.Helper()
	n, stop = f.start(leafConfig(k))
	learn(f.t, n, others...)
	return n, stop
}

var until = fake.Until

// aliveTo returns the addresses of the peers whose sessions are alive.
func aliveTo(n *node.Node) (list []string) {
	for _, s := range n.BFD() {
		if s.Status == bfd.Alive {
			list = append(list, s.Peer.Remote.String())
		}
	}
	return list
}

func downIn(n *node.Node) (list []string) {
	for h, down := range n.Gateway().VRF("red").NextHops() {
		if down {
			list = append(list, h.MAC.String())
		}
	}
	return list
}

// The routers that a control plane has learned are probed inside their VXLAN tunnel (RFC 8971): a dead one is passed over,
// told, and used again when it is back. Sessions follow the rows.
func TestTunnelBFD(t *testing.T) {
	f := &fabric{t, memory.NewNetwork(nil)}
	t.Cleanup(func() { f.net.Close() })
	a, _ := f.leaf(1, 2, 3)
	_, stop := f.leaf(2, 1)
	f.leaf(3, 1)
	events := a.Switch().Events(frame.EventNextHopDown, frame.EventNextHopUp)
	defer events.Close()
	heard := func(kind frame.EventKind) {
		t.Helper()
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		e, err := events.Next(ctx)
		lab.True(t, err == nil && e.Kind == kind && e.MAC == frame.MAC{2, 0, 0, 0, 50, 2}, "%v %v, %v; want %v", e.Kind, e.MAC, err, kind)
	}
	is := func(want ...string) func() bool {
		return func() bool { return fmt.Sprint(aliveTo(a)) == fmt.Sprint(want) }
	}
	until(t, "both are alive", is("192.0.2.2", "192.0.2.3"))
	lab.Equal(t, "down", len(downIn(a)), 0)
	stop()
	heard(frame.EventNextHopDown)
	lab.Equal(t, "down", fmt.Sprint(downIn(a)), "[02:00:00:00:32:02]")
	var told []frame.MAC
	var dead []string
	for e := range a.Switch().State() {
		if e.Kind == frame.EventNextHopDown {
			told = append(told, e.MAC)
		}
		if e.Kind == frame.EventPeerDead {
			dead = append(dead, e.Name)
		}
	}
	lab.Equal(t, "in State", fmt.Sprint(told, dead), "[02:00:00:00:32:02] [192.0.2.2:4789]")
	f.leaf(2, 1)
	heard(frame.EventNextHopUp)
	until(t, "both are alive again", is("192.0.2.2", "192.0.2.3"))

	learn(t, a, 3)
	until(t, "the session has gone with the route", func() bool { return len(a.BFD()) == 1 })
	lab.Equal(t, "tunnel", a.BFD()[0].Tunnel, "vx")
	until(t, "its peer is no longer allowed", func() bool {
		for _, v := range a.Switch().VSIs() {
			if v.VNI() == 1 {
				return len(v.Attachments()[0].Port().(*vtep.VTEP).Allowed(1)) == 1
			}
		}
		return false
	})
	cfg := leafConfig(1)
	cfg.Tunnels[0].BFD = nil
	lab.OK(t, a.Apply(cfg))
	until(t, "no sessions", func() bool { return len(a.BFD()) == 0 })
	until(t, "one segment", func() bool { return len(a.Switch().VSIs()) == 1 })
}

// What is on the wire: RFC 8971, sections 4 and 5, as gopacket reads it.
func TestTunnelBFDOnTheWire(t *testing.T) {
	f := &fabric{t, memory.NewNetwork(nil)}
	t.Cleanup(func() { f.net.Close() })
	u := lab.Must(f.net.Listen(netip.MustParseAddrPort("192.0.2.2:4789"), nil))(t)
	defer u.Close()
	f.leaf(1, 2)
	b := frame.NewBatch(nil)
	lab.OK(t, u.Readers()[0].Read(b))
	p := gopacket.NewPacket(b.Frames[0].Bytes(), layers.LayerTypeVXLAN, gopacket.Default)
	lab.True(t, p.ErrorLayer() == nil, "%v", p.ErrorLayer())
	vx, eth := p.Layer(layers.LayerTypeVXLAN).(*layers.VXLAN), p.Layer(layers.LayerTypeEthernet).(*layers.Ethernet)
	ip, udp := p.Layer(layers.LayerTypeIPv4).(*layers.IPv4), p.Layer(layers.LayerTypeUDP).(*layers.UDP)
	x := p.Layer(layers.LayerTypeBFD).(*layers.BFD)
	if vx.VNI != 1 || eth.DstMAC.String() != "00:00:5e:00:52:02" || !ip.DstIP.IsLoopback() || ip.SrcIP.String() != "192.0.2.1" ||
		ip.TTL != 255 || udp.DstPort != 3784 || udp.SrcPort < 49152 || x.State != layers.BFDStateDown || x.DetectMultiplier != 4 {
		t.Errorf("%v", p)
	}
}

// A route passes over an IP port that is gone.
func TestIPPortGone(t *testing.T) {
	f := &fabric{t, memory.NewNetwork(nil)}
	t.Cleanup(func() { f.net.Close() })
	n, _ := f.start(&node.Config{VRFs: []node.VRF{{Name: "red"}}})
	var far []net.Conn
	var via []node.Hop
	for k := range 3 {
		vni := frame.VNI(100 + k)
		s := lab.Must(n.Segment(vni, nil))(t)
		near, end := net.Pipe()
		lab.OK(t, s.Add(port.FromReadWriteCloser(near, &port.ReadWriteCloserConfig{Name: fmt.Sprint("tun", k), IP: true}), nil))
		lab.OK(t, s.Gateway("red", node.Gateway{Addresses: []netip.Prefix{netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 1, 1, byte(k)}), 32)}}))
		far = append(far, end)
		if k > 0 {
			via = append(via, node.Hop{Segment: vni})
		}
	}
	lab.OK(t, n.Update(func(c *node.Config) error {
		c.VRFs[0].Routes = []node.Route{{Prefix: netip.MustParsePrefix("10.9.0.0/16"), Via: via}}
		return nil
	}))
	send := func(k uint16) {
		b := gopacket.NewSerializeBuffer()
		ip := &layers.IPv4{Version: 4, TTL: 64, Protocol: layers.IPProtocolUDP, SrcIP: []byte{10, 1, 0, 1}, DstIP: []byte{10, 9, 0, 1}}
		udp := &layers.UDP{SrcPort: layers.UDPPort(k), DstPort: 9}
		udp.SetNetworkLayerForChecksum(ip)
		lab.OK(t, gopacket.SerializeLayers(b, gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}, ip, udp))
		lab.Must(far[0].Write(b.Bytes()))(t)
	}
	lab.OK(t, far[1].Close())
	until(t, "the next hop is down", func() bool {
		for h, down := range n.Gateway().VRF("red").NextHops() {
			if h.Interface.VNI() == 101 && down {
				return true
			}
		}
		return false
	})
	for k := range uint16(64) {
		send(k)
		p := make([]byte, 100)
		far[2].SetReadDeadline(time.Now().Add(20 * time.Second))
		lab.Must(far[2].Read(p))(t)
		lab.Equal(t, "flow", binary.BigEndian.Uint16(p[20:]), k)
	}
}
