package offload

import (
	"net"
	"net/netip"
	"testing"

	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/fdb"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
	"github.com/vxswitch/vxswitch/offload/internal/datapath"
	"github.com/vxswitch/vxswitch/port"
	vswitch "github.com/vxswitch/vxswitch/switch"
	"github.com/vxswitch/vxswitch/underlay"
	"github.com/vxswitch/vxswitch/vtep"
)

// TestBound: of an underlay that is bound to a device, packets are carried that come in there, and no others.
func TestBound(t *testing.T) {
	for _, bound := range []string{"", "eth0"} {
		t.Run("bound to "+bound, func(t *testing.T) {
			n := netns.New(t)
			h, far := n.Host("h"), n.Host("far")
			h.Quiet()
			n.Link(h, "192.0.2.1/24", far, "192.0.2.2/24")
			n.Link(h, "198.51.100.1/24", far, "198.51.100.2/24")
			sw := check.Must(vswitch.New(nil))(t)
			defer sw.Close()
			vsi := check.Must(sw.VSI(vni, nil))(t)
			tap := netns.Open(t, h, func() (*port.Device, error) { return port.OpenTAP("tap0", nil) })
			a := check.Must(vsi.Attach(tap, 0))(t)
			u := netns.Open(t, h, func() (*underlay.UDP, error) {
				return underlay.ListenUDP(netip.AddrPortFrom(addr(1), 4789), &underlay.UDPConfig{Device: bound})
			})
			v := check.Must(vtep.New(nil, u))(t)
			b := check.Must(vsi.Attach(v, vni))(t)
			peer := check.Must(v.AddPeer(netip.AddrPortFrom(addr(2), 0)))(t)
			check.OK(t, vsi.FDB().Set(macA, a.Dest(0), fdb.Static))
			check.OK(t, vsi.FDB().Set(macB, b.Dest(peer), fdb.Static))
			h.Do(func() {
				o := check.Must(newOffload(sw, nil))(t)
				p := vswitch.Pair{From: b.Dest(peer), Tag: vni, Src: macB, Dst: macA}
				if o.offer(p); o.entries[p] == nil {
					t.Fatalf("no flow: %+v", check.Must(o.Stats())(t))
				}
				for _, dev := range []string{"eth0", "eth1"} {
					i := check.Must(net.InterfaceByName(dev))(t).Index
					packet := outer(t, encap.TypeVXLAN, p, numbered(macB, macA, 1), i)
					act, _, _, err := o.dp.Run(datapath.TunnelIn, packet, datapath.Meta{Ifindex: uint32(i)})
					check.OK(t, err)
					if want := dev == "eth0" || bound == ""; (act == datapath.Redirect) != want {
						t.Errorf("from %s: carried is %v, not %v", dev, !want, want)
					}
				}
				check.OK(t, o.Close())
			})
		})
	}
}
