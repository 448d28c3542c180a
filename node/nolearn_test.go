package node

import (
	"net/netip"
	"testing"

	"github.com/vxswitch/vxswitch/arp"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/fake"
	"github.com/vxswitch/vxswitch/port"
	vswitch "github.com/vxswitch/vxswitch/switch"
	"github.com/vxswitch/vxswitch/underlay/memory"
	"github.com/vxswitch/vxswitch/vtep"
)

// From a tunnel without learning neither MACs nor neighbours are learned: a control plane says where its hosts are, and
// when they are gone.
func TestNoLearning(t *testing.T) {
	wire := memory.NewNetwork(nil)
	t.Cleanup(func() { wire.Close() })
	ends := [2]netip.Addr{netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")}
	leaf := func(i int, off bool) (*Node, *port.Pipe) {
		n := running(t, &Options{Listen: func(t *Tunnel) (vtep.Underlay, error) { return wire.Listen(t.AddrPort(), nil) }})
		addTunnel(t, n, "vx", Tunnel{Local: ends[i]})
		v := addSegment(t, n, 100, &Segment{
			Tunnels:    []SegmentTunnel{{Tunnel: "vx", Flood: []netip.Addr{ends[1-i]}, AttachConfig: vswitch.AttachConfig{NoLearn: off}}},
			Neighbours: &Neighbours{Config: arp.Config{Mode: arp.Suppress}},
		})
		p := port.NewPipe(&port.PipeConfig{Name: "p"})
		must(t, v.Add(p, nil))
		return n, p
	}
	a, pa := leaf(0, false)
	b, pb := leaf(1, true)
	say := func(p *port.Pipe, n byte) {
		must(t, p.Send(fake.GratuitousARP(frame.MAC{2, 0, 0, 0, 0, n}, netip.AddrFrom4([4]byte{10, 0, 0, n}))))
	}
	say(pb, 2)
	fake.Until(t, "the host of b at a", func() bool { _, ok := a.Neighbours(100).Table().Lookup(netip.MustParseAddr("10.0.0.2")); return ok })
	say(pa, 1)
	check.Must(pb.Recv(t.Context()))(t)
	v := b.Segments()[0]
	if _, ok := v.FDB().Get(frame.MAC{2, 0, 0, 0, 0, 1}); ok || v.FDB().Len() != 1 {
		t.Error("its MAC was learned")
	}
	if tab := b.Neighbours(100).Table(); tab.Len() != 1 {
		t.Errorf("%d neighbours, want that of the port", tab.Len())
	}
}
