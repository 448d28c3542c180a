package evpn

import (
	"cmp"
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vxswitch/vxswitch/control"
	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/evpn/internal/route"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/node"
	vswitch "github.com/vxswitch/vxswitch/switch"
	"github.com/vxswitch/vxswitch/vtep"
)

// A segment or L3VNI whose tunnel is not VXLAN is not of EVPN: nothing is said of it, and what peers say of its VNI is not for its tunnel.
func TestOtherEncapsulation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFabric(t, 2, Config{})
		defer f.close()
		for i, l := range f.leaves {
			tunnel := []string{"gpe", "vx"}[i]
			check.OK(t, l.node.Update(func(c *node.Config) error {
				c.Tunnels = append(c.Tunnels, node.Tunnel{Local: l.addr, Config: vtep.Config{Name: "gpe", Type: encap.TypeGPE}})
				c.VRFs = append(c.VRFs, node.VRF{Name: "red", Routes: []node.Route{{Prefix: netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(i)}), 16)}}})
				for vni := frame.VNI(500); vni < 502; vni++ {
					s := node.Segment{VNI: vni, Tunnels: []node.SegmentTunnel{{Tunnel: tunnel}}}
					if vni == 500 {
						s.Gateway = &node.SegmentGateway{VRF: "red", Gateway: node.Gateway{MAC: frame.MAC{2, 0, 0, 0, 5, byte(i)}}}
					}
					c.Segments = append(c.Segments, s)
				}
				return nil
			}))
		}
		time.Sleep(5 * time.Second)
		synctest.Wait()
		for r := range f.leaves[0].speaker.Routes() {
			if r.VNI >= 500 && (!r.Peer.IsValid() || r.LeftOut != "target") {
				t.Errorf("a route of type %d of VNI %d, of peer %v, left out %q; want target, of a peer", r.Type, r.VNI, r.Peer, r.LeftOut)
			}
		}
		rows := 0
		for r := range f.leaves[0].node.Plane().Rows(DefaultOwner) {
			if x, ok := r.(control.Flood); !ok || x.VNI != 100 {
				t.Errorf("row %v", r)
			}
			rows++
		}
		check.Equal(t, "rows", rows, 1)
	})
}

// Of several tunnels of a segment, peers are told the one that the rows are for, whatever order they are and come in, and whatever type the
// others are.
func TestSeveralTunnels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFabric(t, 2, Config{})
		defer f.close()
		l, h := f.leaves[0], newHost(1)
		h.move(f.leaves[1], f.leaves[1].plug())
		change := func(what string, edit func(c *node.Config)) {
			t.Helper()
			check.OK(t, l.node.Update(func(c *node.Config) error {
				edit(c)
				return nil
			}))
			time.Sleep(5 * time.Second)
			synctest.Wait()
			told := l.speaker.Status().Segments[0].VTEP
			n := 0
			for r := range l.node.Plane().Rows(DefaultOwner) {
				tunnel := "vx"
				switch r := r.(type) {
				case control.Flood:
					tunnel = cmp.Or(r.Tunnel, tunnel)
				case control.MAC:
					tunnel = cmp.Or(r.Tunnel, tunnel)
				}
				if v := l.node.Tunnels()[tunnel]; v.Local()[0] != told || v.Type() != encap.TypeVXLAN {
					t.Errorf("%s: peers are told %v; row %v", what, told, r)
				}
				n++
			}
			check.Equal(t, what+": rows", n, 2)
			check.Equal(t, what+": the host is known", l.where(h) != "", true)
		}
		one := func(*node.Config) {}
		change("one", one)
		other := node.Tunnel{Local: netip.MustParseAddr("192.0.2.101"), Config: vtep.Config{Name: "vy"}}
		in := node.SegmentTunnel{Tunnel: "vy", AttachConfig: vswitch.AttachConfig{Group: 2, NoLearn: true}}
		change("two", func(c *node.Config) {
			c.Tunnels, c.Segments[0].Tunnels = append(c.Tunnels, other), append(c.Segments[0].Tunnels, in)
		})
		change("the first anew", func(c *node.Config) { c.Tunnels[0].Port = 4791 })
		change("another order", func(c *node.Config) { slices.Reverse(c.Segments[0].Tunnels) })
		change("the first of another type", func(c *node.Config) {
			c.Tunnels[1].Type = encap.TypeGPE
		})
	})
}

// Nothing leads to an address of a tunnel of ours, also of one that is not the VTEP: frames would come back and go round.
func TestOwnTunnels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFabric(t, 2, Config{})
		defer f.close()
		l, own := f.leaves[0], netip.MustParseAddr("192.0.2.101")
		vy := check.Must(l.node.Tunnel("vy", node.Tunnel{Local: own}))(t)
		check.OK(t, l.segment.Join(vy))
		time.Sleep(5 * time.Second)
		synctest.Wait()
		f.leaves[1].engine.Advertise(route.Route{Key: route.Key{Kind: route.Multicast, RD: route.RD{7: 9}, IP: route.AddrFrom(own)}, NumLabels: 1, Labels: [2]uint32{100},
			NextHop: route.AddrFrom(own), Tunnel: route.AddrFrom(own), TunnelType: 6, Communities: route.Join(route.Community(check.Must(route.ParseTarget("65000:100"))(t)))})
		left := func() (why string) {
			time.Sleep(5 * time.Second)
			synctest.Wait()
			why = "not heard"
			for r := range l.speaker.Routes() {
				if r.VTEP == own {
					why = r.LeftOut
				}
			}
			return why
		}
		check.Equal(t, "left out", left(), "own")
		change := func(edit func(c *node.Config)) {
			t.Helper()
			check.OK(t, l.node.Update(func(c *node.Config) error {
				edit(c)
				return nil
			}))
		}
		change(func(c *node.Config) { c.Segments[0].Tunnels = c.Segments[0].Tunnels[:1] })
		check.Equal(t, "left out, of a tunnel in no segment", left(), "own")
		change(func(c *node.Config) { c.Tunnels = c.Tunnels[:1] })
		check.Equal(t, "left out, without the tunnel", left(), "")
	})
}

// When the first of two tunnels has failed, the rows are for the other one, which peers are told, though it is alone in the segment.
func TestTunnelFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFabric(t, 2, Config{})
		defer f.close()
		l, h := f.leaves[0], newHost(1)
		h.move(f.leaves[1], f.leaves[1].plug())
		vy := check.Must(l.node.Tunnel("vy", node.Tunnel{Local: netip.MustParseAddr("192.0.2.101")}))(t)
		check.OK(t, l.segment.Join(vy))
		for _, a := range check.Must(l.segment.Switch())(t).Attachments() {
			if a.PortName() == "vx" {
				check.OK(t, a.Detach())
			}
		}
		time.Sleep(5 * time.Second)
		synctest.Wait()
		check.Equal(t, "VTEP", l.speaker.Status().Segments[0].VTEP, netip.MustParseAddr("192.0.2.101"))
		for r, err := range l.node.Plane().Waiting(DefaultOwner) {
			t.Errorf("%v waits: %v", r, err)
		}
		check.Equal(t, "the host is known", l.where(h) != "", true)
	})
}
