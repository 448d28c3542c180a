package offload

import (
	"net/netip"
	"testing"

	"github.com/vxswitch/vxswitch/fdb"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
	"github.com/vxswitch/vxswitch/port"
	vswitch "github.com/vxswitch/vxswitch/switch"
	"github.com/vxswitch/vxswitch/underlay"
	"github.com/vxswitch/vxswitch/vtep"
)

// narrowing is a VTEP on a path that becomes narrower just after somebody has asked for its MTU for the second time.
type narrowing struct {
	*vtep.VTEP
	asked  int
	narrow func()
}

func (n *narrowing) Inside() any { return n.VTEP }

func (n *narrowing) MTU(peer uint16) int {
	m := n.VTEP.MTU(peer)
	if n.asked++; n.asked == 2 {
		n.narrow()
	}
	return m
}

// hearing is an underlay whose errors the test makes.
type hearing struct {
	*underlay.UDP
	tell func(to frame.Endpoint, mtu int, quoted []byte)
}

func (h *hearing) Inside() any { return h.UDP }

func (h *hearing) PathMTU(f func(to frame.Endpoint, mtu int, quoted []byte)) { h.tell = f }

// TestFirstFlowOfVTEP: a change of a VTEP counts that comes while its first flow is decided.
func TestFirstFlowOfVTEP(t *testing.T) {
	h := rigHost(t)
	sw := check.Must(vswitch.New(nil))(t)
	defer sw.Close()
	vsi := check.Must(sw.VSI(vni, nil))(t)
	tap := netns.Open(t, h, func() (*port.Device, error) { return port.OpenTAP("tap0", nil) })
	a := check.Must(vsi.Attach(tap, 0))(t)
	u := &hearing{UDP: netns.Open(t, h, func() (*underlay.UDP, error) { return underlay.ListenUDP(netip.AddrPortFrom(addr(1), 4789), nil) })}
	v := &narrowing{VTEP: check.Must(vtep.New(nil, u))(t)}
	v.narrow = func() { u.tell(check.Must(frame.EndpointFrom(netip.AddrPortFrom(addr(2), 0)))(t), 1000, nil) }
	b := check.Must(vsi.Attach(v, vni))(t)
	peer := check.Must(v.AddPeer(netip.AddrPortFrom(addr(2), 0)))(t)
	check.OK(t, vsi.FDB().Set(macA, a.Dest(0), fdb.Static))
	check.OK(t, vsi.FDB().Set(macB, b.Dest(peer), fdb.Static))
	h.Do(func() {
		o := check.Must(newOffload(sw, nil))(t)
		p := vswitch.Pair{From: a.Dest(0), Src: macA, Dst: macB}
		v.asked = 0
		o.offer(p)
		e := o.entries[p]
		if e == nil || v.asked < 2 || v.MTU(peer) != 964 {
			t.Fatalf("no flow, %d questions, MTU %d", v.asked, v.MTU(peer))
		}
		if o.valid(e) && e.plan.flow.Max != 964 {
			t.Errorf("frames of %d bytes are carried", e.plan.flow.Max)
		}
		check.OK(t, o.Close())
	})
}
