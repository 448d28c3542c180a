package bench

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/vxswitch/vxswitch/arp"
	"github.com/vxswitch/vxswitch/bench/rig"
	"github.com/vxswitch/vxswitch/fdb"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/wire"
	"github.com/vxswitch/vxswitch/l3"
	vswitch "github.com/vxswitch/vxswitch/switch"
)

var gatewayMAC = frame.MAC{2, 0xff, 0, 0, 0, 1}

// routed makes the bed a gateway between its segment and one whose 1000 hosts are behind
// the tunnel, beside other prefixes in its table. What the port sends is for these hosts.
func (r *bed) routed(tb testing.TB, prefixes int) {
	const far = vni + 1
	g, err := l3.NewGateway(nil)
	must(tb, err)
	vrf := g.VRF("bench")
	iface := func(v frame.VNI, addr string) (*l3.Interface, *arp.Responder, *vswitch.VSI) {
		vsi := check.Must(r.sw.VSI(v, nil))(tb)
		table := check.Must(arp.NewTable(nil))(tb)
		n := check.Must(arp.NewResponder(&arp.Config{Table: table}))(tb)
		i, err := vrf.NewInterface(&l3.InterfaceConfig{
			VNI: v, Addresses: []netip.Prefix{netip.MustParsePrefix(addr)}, MAC: gatewayMAC, Neighbours: n,
			Send: vsi.Send,
		})
		must(tb, err)
		must(tb, vsi.FDB().Set(gatewayMAC, 0, fdb.Static))
		must(tb, vsi.Configure(vswitch.VSIConfig{Slots: vswitch.Slots{Neighbour: n, Gateway: i}}))
		return i, n, vsi
	}
	iface(vni, "10.1.0.1/16")
	out, neighbours, vsi := iface(far, "10.2.0.1/16")
	at := check.Must(vsi.Attach(r.v, far))(tb)
	peer := check.Must(r.v.AddPeer(netip.MustParseAddrPort("192.0.2.2:4789")))(tb)
	var routes []l3.Route
	for i := range prefixes {
		p := netip.PrefixFrom(netip.AddrFrom4([4]byte{20 + byte(i>>16), byte(i >> 8), byte(i), 0}), 24)
		routes = append(routes, l3.Route{Prefix: p, Via: []l3.NextHop{{Interface: out, IP: netip.MustParseAddr("10.2.1.1")}}})
	}
	must(tb, vrf.Add(routes...))
	r.port.Packets = nil
	for i := range 1000 {
		ip, mac := netip.AddrFrom4([4]byte{10, 2, 1 + byte(i>>8), byte(i)}), rig.MAC(1, i)
		must(tb, neighbours.Table().Set(ip, mac, arp.Static, 0))
		must(tb, vsi.FDB().Set(mac, at.Dest(peer), fdb.Static))
		b := rig.Packet(gatewayMAC, rig.MAC(0, i), 64)
		h := wire.IPv4Header{TTL: 64, Protocol: wire.ProtoUDP, DF: true, TotalLen: 50, Src: [4]byte{10, 1, 1 + byte(i>>8), byte(i)}, Dst: ip.As4()}
		h.Put(b[14:])
		r.port.Packets = append(r.port.Packets, b)
	}
	fresh(r.port.Source)
}

// fresh hands out copies: a gateway writes into what it routes.
func fresh(src *rig.Source) {
	packets, next := src.Packets, 0
	scratch := make([]byte, 0, frame.MaxBatch*len(packets[0]))
	src.Fill = func(b *frame.Batch) {
		scratch = scratch[:0]
		for range frame.MaxBatch {
			at := len(scratch)
			scratch = append(scratch, packets[next]...)
			b.Borrow(scratch, at, len(scratch))
			if next++; next == len(packets) {
				next = 0
			}
		}
	}
}

// BenchmarkGateway is a whole worker in memory, 64-byte frames from 1000 local hosts to 1000
// behind the tunnel: in the same segment, and routed from one segment to another with few
// and with many prefixes in the table.
func BenchmarkGateway(b *testing.B) {
	bridged := newBed(b)
	bridged.talk(1000, 64)
	fresh(bridged.port.Source)
	b.Run("bridged", func(b *testing.B) { perFrame(b, bridged.port.Source) })
	for _, n := range []int{10, 1_000_000} {
		var r *bed
		whole := b
		b.Run(fmt.Sprintf("routed/%d", n), func(b *testing.B) {
			if r == nil {
				r = newBed(whole) // closed with it
				r.routed(b, n)
				b.ResetTimer()
			}
			perFrame(b, r.port.Source)
		})
	}
}

// Every frame gets through, and nothing is allocated.
func TestGateway(t *testing.T) {
	r := newBed(t)
	r.routed(t, 10)
	r.port.Run(100)
	if r.wire.Copies != 100*frame.MaxBatch {
		t.Fatalf("%d of %d frames: %+v", r.wire.Copies, 100*frame.MaxBatch, r.sw.Stats())
	}
	least := ^uint64(0)
	for range 5 {
		least = min(least, mallocs(func() { r.port.Run(1000) }))
	}
	if least > 50 {
		t.Errorf("%d allocations in 1000 batches", least)
	}
}
