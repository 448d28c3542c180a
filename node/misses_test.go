package node_test

import (
	"bytes"
	"context"
	"fmt"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"github.com/vxswitch/vxswitch/control"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/packets"
	"github.com/vxswitch/vxswitch/node"
	"github.com/vxswitch/vxswitch/port"
	"github.com/vxswitch/vxswitch/underlay/memory"
	"github.com/vxswitch/vxswitch/vtep"
)

// missPlane is a control plane that says nothing until it is asked, as the first versions of flannel did: a lease is the
// subnet of a node and the MAC and address of its VTEP.
type missPlane struct {
	n      *node.Node
	leases []lease
	hold   chan struct{} // it answers once this is closed
	ready  chan struct{} // closed once it listens
}

type lease struct {
	vni    frame.VNI
	subnet netip.Prefix
	mac    frame.MAC
	vtep   netip.AddrPort
}

// run answers each miss by the row of a lease.
func (p *missPlane) run(ctx context.Context) {
	events := p.n.Switch().Events(frame.EventNeighbourMiss, frame.EventMACMiss)
	defer events.Close()
	close(p.ready)
	for {
		e, err := events.Next(ctx)
		if err != nil {
			return
		}
		p.answer(ctx, e)
	}
}

func (p *missPlane) answer(ctx context.Context, e frame.Event) {
	for _, l := range p.leases {
		row := control.MAC{VNI: e.VNI, MAC: l.mac, VTEP: l.vtep}
		switch {
		case l.vni != e.VNI:
			continue
		case e.Kind == frame.EventNeighbourMiss && l.subnet.Contains(e.IP):
			row.IP = e.IP
		case e.Kind == frame.EventMACMiss && l.mac == e.MAC:
		default:
			continue
		}
		select {
		case <-p.hold:
		case <-ctx.Done():
			return
		}
		if err := p.n.Program("misses", control.Update{Add: []control.Row{row}}); err != nil {
			panic(err)
		}
	}
}

// A far end is the underlay of another node, which shows what it gets.
type farEnd struct {
	t    *testing.T
	got  chan []byte // inner frames
	vnis chan frame.VNI
}

func newFarEnd(t *testing.T, wire *memory.Network, at netip.AddrPort) *farEnd {
	u, err := wire.Listen(at, nil)
	if err != nil {
		t.Fatal(err)
	}
	f := &farEnd{t, make(chan []byte, 1000), make(chan frame.VNI, 1000)}
	var reads sync.WaitGroup
	reads.Go(func() {
		b := frame.NewBatch(nil)
		for u.Readers()[0].Read(b) == nil {
			for i := range b.Frames {
				var vx layers.VXLAN
				if vx.DecodeFromBytes(b.Frames[i].Bytes(), gopacket.NilDecodeFeedback) == nil {
					f.vnis <- frame.VNI(vx.VNI)
					f.got <- bytes.Clone(vx.Payload)
				}
			}
		}
	})
	t.Cleanup(func() { u.Close(); reads.Wait() })
	return f
}

// next waits for a frame, and returns it with its VNI.
func (f *farEnd) next() (frame.VNI, gopacket.Packet) {
	f.t.Helper()
	select {
	case b := <-f.got:
		return <-f.vnis, gopacket.NewPacket(b, layers.LayerTypeEthernet, gopacket.Default)
	case <-time.After(20 * time.Second):
		f.t.Fatal("nothing came")
	}
	return 0, nil
}

var (
	podMAC, gateMAC = frame.MAC{2, 0, 0, 0, 0, 1}, frame.MAC{2, 0, 0, 0, 0, 0x10}
	farMAC          = frame.MAC{2, 0, 0, 0, 0, 0x22}
	hostMAC         = frame.MAC{2, 0, 0, 0, 0, 0x33}
	pod             = netip.MustParseAddr("10.244.1.5")
)

func ethernet(src, dst frame.MAC, t layers.EthernetType) *layers.Ethernet {
	return &layers.Ethernet{SrcMAC: src[:], DstMAC: dst[:], EthernetType: t}
}

// ping is a packet of the pod to an address.
func ping(dst netip.Addr, seq uint16) []byte {
	return packets.Of(ethernet(podMAC, gateMAC, layers.EthernetTypeIPv4),
		&layers.IPv4{Version: 4, IHL: 5, TTL: 64, Protocol: layers.IPProtocolICMPv4, SrcIP: pod.AsSlice(), DstIP: dst.AsSlice()},
		&layers.ICMPv4{TypeCode: layers.CreateICMPv4TypeCode(layers.ICMPv4TypeEchoRequest, 0), Id: 7, Seq: seq}, gopacket.Payload("ping"))
}

// A control plane that answers misses, with exported names only: a routed packet without a neighbour, an ARP question, and
// a frame to an unknown MAC.
func TestMissPlane(t *testing.T) {
	wire := memory.NewNetwork(nil)
	defer wire.Close()
	n, err := node.New(&node.Options{Owners: []string{"misses"}, Listen: func(t *node.Tunnel) (vtep.Underlay, error) {
		return wire.Listen(t.AddrPort(), nil)
	}})
	check(err)
	far := netip.MustParseAddrPort("192.0.2.2:4789")
	second, other := newFarEnd(t, wire, far), newFarEnd(t, wire, netip.MustParseAddrPort("192.0.2.3:4789"))
	// Segment 10 has the pods of this node, 1 leads to those of others; 20 is bridged.
	cfg, err := node.Parse([]byte(`{"tunnels": [{"name": "vx", "local": "192.0.2.1"}], "vrfs": [{"name": "pods"}], "segments": [
		{"vni": 1, "tunnel": "vx", "flood": ["192.0.2.2", "192.0.2.3"], "neighbours": {"mode": "suppress", "miss": true},
			"gateway": {"vrf": "pods", "mac": "02:00:00:00:00:11", "addresses": ["10.244.0.1/16"], "noAsk": true}},
		{"vni": 10, "gateway": {"vrf": "pods", "mac": "02:00:00:00:00:10", "addresses": ["10.244.1.1/24"]}},
		{"vni": 20, "tunnel": "vx", "flood": ["192.0.2.2", "192.0.2.3"], "tellMisses": true, "noFlood": ["unknown"],
			"neighbours": {"mode": "suppress", "miss": true}}]}`))
	check(err)
	check(n.Apply(cfg))
	pipe := func(vni frame.VNI, name string) *port.Pipe {
		p := port.NewPipe(&port.PipeConfig{Name: name})
		seg, err := n.Segment(vni, nil)
		check(err)
		check(seg.Add(p, nil))
		return p
	}
	pods, host := pipe(10, "pods"), pipe(20, "host")
	ctx, stop := context.WithCancel(t.Context())
	p := &missPlane{n: n, hold: make(chan struct{}), ready: make(chan struct{}), leases: []lease{
		{1, netip.MustParsePrefix("10.244.2.0/24"), farMAC, far},
		{20, netip.MustParsePrefix("10.20.0.0/16"), farMAC, far},
		{20, netip.Prefix{}, hostMAC, far},
	}}
	var all sync.WaitGroup
	all.Go(func() { p.run(ctx) })
	all.Go(func() { n.Run(ctx) })
	defer all.Wait()
	defer stop()
	<-p.ready

	// The gateway keeps the packets while the plane looks up the lease, and asks nobody.
	watched := n.Switch().Events(frame.EventNeighbourMiss)
	defer watched.Close()
	dst := netip.MustParseAddr("10.244.2.7")
	for seq := range uint16(3) {
		check(pods.Send(ping(dst, seq)))
	}
	e, err := watched.Next(ctx)
	check(err)
	if e.VNI != 1 || e.IP != dst || e.Name != "pods" {
		t.Errorf("%+v", e)
	}
	if len(second.got)+len(other.got) != 0 {
		t.Error("packets left without a neighbour")
	}
	close(p.hold)
	left := map[uint16]bool{0: true, 1: true, 2: true} // in any order: one may overtake those that waited
	for len(left) > 0 {
		vni, got := second.next()
		ip, _ := got.Layer(layers.LayerTypeIPv4).(*layers.IPv4)
		icmp, _ := got.Layer(layers.LayerTypeICMPv4).(*layers.ICMPv4)
		eth := got.LinkLayer().(*layers.Ethernet)
		if vni != 1 || ip == nil || icmp == nil || !ip.DstIP.Equal(dst.AsSlice()) || ip.TTL != 63 || !left[icmp.Seq] || !bytes.Equal(eth.DstMAC, farMAC[:]) {
			t.Fatalf("vni %d: %v, want packets %v to %v", vni, got, left, dst)
		}
		delete(left, icmp.Seq)
	}
	if rows := fmt.Sprint(n.Plane().Origin(control.MAC{VNI: 1, IP: dst})); rows != "[misses]" {
		t.Errorf("the neighbour is of %s", rows)
	}

	// Who asks is answered when the row comes. The question itself goes to all, once.
	asks := &layers.ARP{AddrType: layers.LinkTypeEthernet, Protocol: layers.EthernetTypeIPv4, HwAddressSize: 6, ProtAddressSize: 4, Operation: layers.ARPRequest,
		SourceHwAddress: podMAC[:], SourceProtAddress: []byte{10, 20, 0, 1}, DstHwAddress: make([]byte, 6), DstProtAddress: []byte{10, 20, 0, 9}}
	check(host.Send(packets.Of(ethernet(podMAC, frame.Broadcast, layers.EthernetTypeARP), asks)))
	soon, end := context.WithTimeout(ctx, 20*time.Second)
	defer end()
	b, err := host.Recv(soon)
	if err != nil {
		t.Fatalf("the question is not answered: %v", err)
	}
	reply, _ := gopacket.NewPacket(b, layers.LayerTypeEthernet, gopacket.Default).Layer(layers.LayerTypeARP).(*layers.ARP)
	if reply == nil || reply.Operation != layers.ARPReply || !bytes.Equal(reply.SourceHwAddress, farMAC[:]) || !bytes.Equal(reply.SourceProtAddress, []byte{10, 20, 0, 9}) {
		t.Errorf("answered by %v", reply)
	}
	for _, f := range []*farEnd{second, other} {
		if vni, got := f.next(); vni != 20 || got.Layer(layers.LayerTypeARP) == nil {
			t.Errorf("vni %d: %v, want the question", vni, got)
		}
	}

	// A frame to an unknown MAC is dropped, and the next goes where the row says.
	x := packets.Of(ethernet(podMAC, hostMAC, 0x88b5), gopacket.Payload("to a host whose MAC was unknown, of some length, sent again"))
	for known := false; !known; {
		check(host.Send(x))
		select {
		case b := <-second.got:
			known = <-second.vnis == 20 && bytes.Equal(b, x)
		case <-soon.Done():
			t.Fatal("it never came")
		case <-time.After(time.Millisecond):
		}
	}
	if len(other.got) != 0 {
		t.Errorf("%d frames to another node", len(other.got))
	}
}
