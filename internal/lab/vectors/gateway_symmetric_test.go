package vectors

import (
	"net/netip"
	"slices"

	"github.com/vxswitch/vxswitch/arp"
	"github.com/vxswitch/vxswitch/fdb"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/mem"
	"github.com/vxswitch/vxswitch/l3"
	"github.com/vxswitch/vxswitch/node"
	vswitch "github.com/vxswitch/vxswitch/switch"
)

// routerMAC is the MAC of router k in the segment between routers.
func routerMAC(k byte) frame.MAC { return frame.MAC{2, 0xcc, 0xcc, 0, 0, k} }

// between puts router k into the segment between routers, whose other members are peers.
func (r *router) between(k byte, peers ...byte) *l3.Interface {
	r.l.T.Helper()
	i := r.iface("red", l3vni, node.Gateway{MAC: routerMAC(k)}, arp.Off)
	r.tunnel(l3vni, peers...)
	return i
}

// leads adds a route to the router behind a VTEP, as a control plane does (RFC 9135,
// section 4.2): which MAC, and where that is.
func (r *router) leads(i *l3.Interface, to netip.Prefix, k, at byte) {
	r.l.T.Helper()
	v := r.Segment(l3vni)
	peer := uint16(0)
	for _, p := range r.VTEP.Stats().Peers {
		if p.Addr.Addr() == r.l.addr(at) {
			peer = p.Peer
		}
	}
	r.l.must(v.FDB().Set(routerMAC(k), v.Attachments()[0].Dest(peer), fdb.Control))
	r.l.must(r.n.Gateway().VRF("red").Add(l3.Route{Prefix: to, Via: []l3.NextHop{{Interface: i, MAC: routerMAC(k)}}}))
}

// symmetric is a router with host a in VNI 100, in the segment between routers with far ends
// f and g.
func (l *lab) symmetric(v6 bool) (r *router, i *l3.Interface, a *mem.Host, f, g *far) {
	l.T.Helper()
	r = l.router(1)
	r.gate(vni, true)
	i = r.between(1, 2, 3)
	a = guest(r.Node, vni, ipOf(v6, vni, 1))
	return r, i, a, l.far(2), l.far(3)
}

// symmetricRows are routed at both VTEPs, through a segment of routers only (RFC 9135).
func symmetricRows() []row {
	return slices.Concat(
		inside("7.symmetric", "there and back, 62 at the receiver", func(l *lab, v6 bool) { symmetricPing(l, v6, gwMAC, false) }),
		inside("7.symmetric", "from our router's MAC to theirs", func(l *lab, v6 bool) {
			r, i, a, f, _ := l.symmetric(v6)
			r.leads(i, prefixOf(v6, vni2), 2, 2)
			p := packetOf(a.MAC, a.IP, gwMAC, ipOf(v6, vni2, 2)).sentBy(a)
			f.want(vx(l3vni, p.routed(routerMAC(1), routerMAC(2)).bytes()))
			l.clean()
		}),
		inside("7.symmetric", "each router behind its VTEP", func(l *lab, v6 bool) {
			r, i, a, f, g := l.symmetric(v6)
			r.leads(i, prefixOf(v6, vni2), 2, 2)
			host := netip.PrefixFrom(ipOf(v6, vni2, 3), ipOf(v6, vni2, 3).BitLen())
			r.leads(i, host, 3, 3)
			for n, to := range map[byte]*far{2: f, 3: g} {
				p := packetOf(a.MAC, a.IP, gwMAC, ipOf(v6, vni2, n)).sentBy(a)
				to.want(vx(l3vni, p.routed(routerMAC(1), routerMAC(n)).bytes()))
			}
			l.clean()
		}),
		inside("7.symmetric", "62 between two nodes whose hosts have access ports", func(l *lab, v6 bool) {
			symmetricPing(l, v6, arp.DefaultAccessMAC, true)
		}),
		inside("7.l3vni", "to our router's MAC", func(l *lab, v6 bool) {
			r, _, a, f, _ := l.symmetric(v6)
			p := packetOf(routerMAC(2), ipOf(v6, vni2, 2), routerMAC(1), a.IP)
			f.send(vx(l3vni, p.bytes()))
			p.reaches(a)
			p.ttl = 1 // it has no address there to say so from, and takes another one
			f.send(vx(l3vni, p.bytes()))
			f.want(vx(l3vni, exceeded.about(p, ipOf(v6, vni, gatewayHost), 0)))
			a.Want()
			r.WantDrops(nil)
		}),
		strayRows(),
	)
}

// strayRows are frames in the segment between routers that are not for ours. The packet in
// them is for host a.
func strayRows() (rows []row) {
	for _, c := range []struct {
		name  string
		to    frame.MAC
		drops map[string]uint64
	}{
		{"to another router, which is known", routerMAC(3), one("split-horizon")},
		{"to nobody known", nobody, one("no-egress")},
		{"to the gateway's MAC of the hosts' segment", gwMAC, one("no-egress")},
		{"broadcast", frame.Broadcast, nil},
	} {
		rows = append(rows, inside("7.l3vni", c.name, func(l *lab, v6 bool) {
			r, i, a, f, _ := l.symmetric(v6)
			r.leads(i, prefixOf(v6, vni2), 3, 3)
			f.send(vx(l3vni, packetOf(routerMAC(2), ipOf(v6, vni2, 2), c.to, a.IP).bytes()))
			l.quiet()
			l.drops(c.drops)
		})...)
	}
	return rows
}

// symmetricPing has a segment of hosts at each of two VTEPs.
func symmetricPing(l *lab, v6 bool, gateway frame.MAC, access bool) {
	r, o := l.router(1), l.router(2)
	at := func(x *router, n frame.VNI, k byte) *l3.Interface {
		x.iface("red", n, node.Gateway{Addresses: gateAddrs(byte(n)), MAC: gateway, Anycast: true}, arp.Suppress)
		return x.between(k, 1, 2)
	}
	ri, oi := at(r, vni, 1), at(o, vni2, 2)
	r.leads(ri, prefixOf(v6, vni2), 2, 2)
	o.leads(oi, prefixOf(v6, vni), 1, 1)
	a, b := guest(r.Node, vni, ipOf(v6, vni, 1)), guest(o.Node, vni2, ipOf(v6, vni2, 2))
	if access {
		for _, c := range []struct {
			x *router
			h *mem.Host
		}{{r, a}, {o, b}} {
			stage := check.Must(c.x.n.Neighbours(c.h.VNI).With(arp.Access))(l.T)
			l.must(c.h.At.Configure(vswitch.AttachConfig{Slots: vswitch.Slots{Neighbour: stage}}))
		}
	}
	ping(a, b, gateway, 62, gateway, gateway)
	l.clean()
}
