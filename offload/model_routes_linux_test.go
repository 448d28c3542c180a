package offload

import (
	"net/netip"

	"github.com/vxswitch/vxswitch/arp"
	"github.com/vxswitch/vxswitch/fdb"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/l3"
	vswitch "github.com/vxswitch/vxswitch/switch"
)

// A routesRig is what of a rig routes: a gateway with an interface on its segment and one on another, which has the trunk and the VTEP
// as members. In each there is a next hop to where the hosts send.
type routesRig struct {
	vrf  *l3.VRF
	vsi  *vswitch.VSI // the other segment
	at   []*vswitch.Attachment
	gate [2]*irb
}

const (
	routedVNI = vni + 1
	routedTag = 8 // of the trunk in the other segment
)

var (
	routedTo = netip.MustParsePrefix("10.0.0.0/24")
	nextHops = [2]netip.Addr{netip.MustParseAddr("10.9.0.2"), netip.MustParseAddr("10.10.0.2")}
)

func (r *rig) newRoutes() {
	x := &routesRig{vrf: newVRF(r.t), vsi: check.Must(r.sw.VSI(routedVNI, nil))(r.t)}
	for i, tag := range []uint32{routedTag, routedVNI} {
		x.at = append(x.at, check.Must(x.vsi.Attach(r.at[2+i].Port(), tag))(r.t))
	}
	r.routes, r.macs = x, append(r.macs, gatewayMAC(1))
	x.gate[0] = gateway(r.t, x.vrf, r.vsi, gatewayMAC(1), "10.9.0.1/24")
	x.gate[1] = gateway(r.t, x.vrf, x.vsi, gatewayMAC(1), "10.10.0.1/24")
	r.route(0)
	r.route(1)
}

// route has packets routed by the next hop in one of the segments, or with another number by both, where ports decide.
func (r *rig) route(by int) {
	var via []l3.NextHop
	for i, ip := range nextHops {
		if by != 1-i {
			via = append(via, l3.NextHop{Interface: r.routes.gate[i].Interface, IP: ip})
		}
	}
	check.OK(r.t, r.routes.vrf.Add(l3.Route{Prefix: routedTo, Via: via}))
}

// changeRoutes does one of the things that may change decisions about routed packets.
func (r *rig) changeRoutes(in func(n int) int, mac frame.MAC) {
	x, i := r.routes, in(2)
	table := x.gate[i].neighbours
	switch in(18) {
	case 0, 1:
		check.OK(r.t, table.Set(nextHops[i], mac, arp.Static, 0))
	case 2:
		table.Delete(nextHops[i])
		table.Learn(&arp.Claim{IP: nextHops[i], MAC: mac, From: r.dests[in(len(r.dests))]}, r.sw.Tick())
	case 3:
		if in(4) == 0 {
			table.Delete(nextHops[i])
		}
	case 4, 5:
		r.route(in(3))
	case 6:
		if in(4) == 0 {
			x.vrf.Delete(routedTo)
		}
	case 7:
		_ = x.vrf.SetDown(l3.NextHop{Interface: x.gate[i].Interface, IP: nextHops[i]}, in(2) == 0)
	case 8:
		a := x.at[in(2)]
		d := a.Dest(0)
		if a.Port() == r.v {
			d = a.Dest(r.peers[in(len(r.peers))])
		}
		_ = x.vsi.FDB().Set(mac, d, []fdb.Flags{fdb.Static, fdb.Filter}[in(8)/7])
	case 9:
		check.OK(r.t, r.vsi.FDB().Set(gatewayMAC(1), 0, fdb.Static))
		if in(8) == 0 {
			check.OK(r.t, x.gate[1].Close())
			x.gate[1] = gateway(r.t, x.vrf, x.vsi, gatewayMAC(1), "10.10.0.1/24")
		}
	case 10:
		check.OK(r.t, x.at[in(2)].Configure(vswitch.AttachConfig{Group: uint8(in(3)), NoLearn: in(2) == 1, Locked: in(4) == 1, GBP: uint16(in(8) / 7)}))
	case 11:
		check.OK(r.t, x.at[in(2)].Configure(vswitch.AttachConfig{Slots: []vswitch.Slots{{}, r.filtered()}[in(2)]}))
	case 12:
		c := x.vsi.Config()
		c.RouteIsolated = in(2) == 0
		check.OK(r.t, x.vsi.Configure(c))
	case 13:
		c := r.vsi.Config()
		c.RouteIsolated = in(2) == 0
		check.OK(r.t, r.vsi.Configure(c))
	case 14:
		if in(4) == 0 {
			check.OK(r.t, x.gate[0].Close())
			x.gate[0] = gateway(r.t, x.vrf, r.vsi, gatewayMAC(1), "10.9.0.1/24")
		}
	case 15:
		if in(4) == 0 {
			check.OK(r.t, x.at[0].Detach())
			x.at[0] = check.Must(x.vsi.Attach(r.at[2].Port(), routedTag))(r.t)
		}
	case 16:
		if in(4) == 0 {
			check.OK(r.t, x.at[1].Detach())
			x.at[1] = check.Must(x.vsi.Attach(r.at[3].Port(), routedVNI))(r.t)
		}
	case 17:
		table.Sweep(r.sw.Tick()+frame.Tick(in(2)*400), nil)
		x.vsi.FDB().Sweep(r.sw.Tick()+frame.Tick(in(2)*400), 4096)
	}
}

// leaves fails the test unless a frame of numbered has left as the flow says: of a tunnel, with its outer headers.
func (r *rig) leaves(f *vswitch.Flow, b []byte) {
	r.t.Helper()
	if f.To.Port() == r.at[3].Dest(0).Port() {
		b = b[innerAt:]
	}
	dst, src, ttl := f.Dst, f.Src, uint8(64)
	if f.Hop != (frame.Hop{}) {
		dst, src, ttl = f.Hop.Dst, f.Hop.Src, 63
	}
	if frame.MAC(b) != dst || frame.MAC(b[6:]) != src || b[22] != ttl {
		r.t.Fatalf("%+v leaves with MACs %v, %v and TTL %d", f.Pair, frame.MAC(b), frame.MAC(b[6:]), b[22])
	}
}
