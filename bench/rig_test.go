package bench

import (
	"context"
	"net/netip"
	"testing"

	"github.com/vxswitch/vxswitch/bench/rig"
	"github.com/vxswitch/vxswitch/frame"
	vswitch "github.com/vxswitch/vxswitch/switch"
	"github.com/vxswitch/vxswitch/vtep"
)

// bed is a running switch with one local port and one VTEP in VNI 100.
type bed struct {
	sw   *vswitch.Switch
	vsi  *vswitch.VSI
	port *rig.Port
	wire *rig.Wire
	v    *vtep.VTEP
}

const vni = 100

func newBed(tb testing.TB) *bed {
	tb.Helper()
	return newBedOver(tb, nil, nil, func(w *rig.Wire) vtep.Underlay { return w })
}

// newBedOver is newBed with settings, and something between the VTEP and its wire.
func newBedOver(tb testing.TB, tunnel *vtep.Config, segment *vswitch.VSIConfig, under func(*rig.Wire) vtep.Underlay) *bed {
	tb.Helper()
	r := &bed{port: rig.NewPort(), wire: rig.NewWire(netip.MustParseAddrPort("192.0.2.2:4789"))}
	var err error
	r.v, err = vtep.New(tunnel, under(r.wire))
	must(tb, err)
	r.sw, err = vswitch.New(nil)
	must(tb, err)
	r.vsi, err = r.sw.VSI(vni, segment)
	must(tb, err)
	_, err = r.vsi.Attach(r.v, vni)
	must(tb, err)
	_, err = r.vsi.AttachWith(r.port, 0, &vswitch.AttachConfig{Storm: unlimited})
	must(tb, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { r.sw.Run(ctx); close(ended) }()
	tb.Cleanup(func() { cancel(); <-ended })
	return r
}

// unlimited floods whatever comes in.
var unlimited = vswitch.Storm{
	Broadcast:      vswitch.Rate{Packets: vswitch.Unlimited},
	Multicast:      vswitch.Rate{Packets: vswitch.Unlimited},
	UnknownUnicast: vswitch.Rate{Packets: vswitch.Unlimited},
}

// talk fills both sources with frames between n local and n remote MACs and lets
// the switch learn them.
func (r *bed) talk(n, size int) {
	for i := range n {
		l, m := rig.MAC(0, i), rig.MAC(1, (i*7+3)%n)
		r.port.Packets = append(r.port.Packets, rig.Packet(m, l, size))
		r.wire.Packets = append(r.wire.Packets, rig.Tunnelled(rig.Packet(l, m, size), vni))
	}
	for range 2 {
		r.port.Run(n/frame.MaxBatch + 1)
		r.wire.Run(n/frame.MaxBatch + 1)
	}
}
