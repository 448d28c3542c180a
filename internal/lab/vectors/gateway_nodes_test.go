package vectors

import (
	"net/netip"
	"slices"

	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/l3"
	"github.com/vxswitch/vxswitch/underlay/memory"
	"github.com/vxswitch/vxswitch/vtep"
)

// nodesVNI is the segment of a tunnel for IP, whose members are nodes.
const nodesVNI = 6000

// A nodes is a router's interface on such a tunnel.
type nodes struct {
	*l3.Interface
	l *lab
	t encap.Type
	v *vtep.VTEP
	r *router
}

// nodes gives router k a tunnel for IP at its own underlay address, beside its VXLAN.
func (r *router) nodes(t encap.Type, k byte) *nodes {
	l := r.l
	l.T.Helper()
	u := check.Must(l.Listen(l.addr(k), t))(l.T)
	v := check.Must(vtep.New(&vtep.Config{Name: "nodes", Type: t}, u))(l.T)
	a := check.Must(r.Segment(nodesVNI).Attach(v, tagOf(t, nodesVNI)))(l.T)
	i := r.bare(l3.InterfaceConfig{VNI: nodesVNI, Port: a.Dest(0), Tunnel: v})
	return &nodes{i, l, t, v, r}
}

// hop is the way to the node at an underlay address.
func (n *nodes) hop(at byte) l3.NextHop {
	n.l.T.Helper()
	peer, err := n.v.AddPeer(n.l.atOf(n.t, at))
	n.l.must(err)
	return l3.NextHop{Interface: n.Interface, Peer: peer}
}

// leads adds a route to a node.
func (n *nodes) leads(to netip.Prefix, at byte) {
	n.l.T.Helper()
	n.l.must(n.r.n.Gateway().VRF("red").Add(l3.Route{Prefix: to, Via: []l3.NextHop{n.hop(at)}}))
}

func (n *nodes) wrap(p packet) []byte { return wrapped(n.t, nodesVNI, p.naked().bytes()) }

// nodesOf is a site with a tunnel of a type, and node 3 at the other end, which has the
// addresses that are away.
func (l *lab) nodesOf(t encap.Type, v6 bool) (s *site, n *nodes, node *far) {
	l.T.Helper()
	s = l.site(v6, true)
	n = s.nodes(t, 1)
	n.leads(s.away.wide, 3)
	return s, n, l.farOf(t, 3)
}

// nodeRows are routes to nodes.
func nodeRows() []row {
	return slices.Concat(nodeRowsOf("7.via-ipip", encap.TypeIPIP), nodeRowsOf("7.via-gpe", encap.TypeGPE),
		inside("7.via-ipip", "the sender hears that a node is not reached", func(l *lab, v6 bool) {
			s, n, node := l.nodesOf(encap.TypeIPIP, v6)
			node.u.Close()
			p := s.fromA(s.away.ip).sentBy(s.a)
			l.quiet()
			node = l.farOf(encap.TypeIPIP, 3)
			s.a.Send(p.bytes()) // goes all the same
			s.a.Want(hostGone.about(p, s.ip(vni, gatewayHost), 0))
			s.a.Send(p.bytes())
			b := n.wrap(p.routed(gwMAC, gwMAC))
			node.want(b, b)
			l.clean()
		}),
		inside("7.via-ipip", "of several ways, as the mode of their pool says", func(l *lab, v6 bool) {
			s, n, node := l.nodesOf(encap.TypeIPIP, v6)
			red := s.n.Gateway().VRF("red")
			here, there := netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("198.51.100.0/24")
			direct := l3.NextHop{Interface: red.Interface(vni2), IP: s.b.IP}
			p := s.fromA(s.away.ip)
			for _, addr := range []netip.Prefix{here, there} {
				for mode, straight := range map[l3.Encapsulation]bool{l3.Always: false, l3.CrossSubnet: addr == here, l3.Never: true} {
					via := n.hop(3)
					if mode.Direct(addr.Addr().Next(), []netip.Prefix{here}) {
						via = direct
					}
					l.must(red.Add(l3.Route{Prefix: s.away.narrow, Via: []l3.NextHop{via}}))
					s.a.Send(p.bytes())
					if straight {
						p.reaches(s.b)
						node.want()
					} else {
						s.b.Want()
						node.want(n.wrap(p.routed(gwMAC, gwMAC)))
					}
				}
			}
			l.clean()
		}),
	)
}

// nodeRowsOf are what the types of tunnels have in common.
func nodeRowsOf(id string, t encap.Type) []row {
	rows := func(name string, test func(l *lab, s *site, n *nodes, node *far)) []row {
		return inside(id, name, func(l *lab, v6 bool) {
			s, n, node := l.nodesOf(t, v6)
			test(l, s, n, node)
			l.drops(nil)
		})
	}
	return slices.Concat(
		rows("to a node and back", func(l *lab, s *site, n *nodes, node *far) {
			p := s.fromA(s.away.ip).sentBy(s.a)
			node.want(n.wrap(p.routed(gwMAC, gwMAC)))
			p = packetOf(frame.MAC{}, s.away.ip, frame.MAC{}, s.a.IP)
			node.send(n.wrap(p))
			p.reaches(s.a)
			l.quiet()
		}),
		rows("each node by its route", func(l *lab, s *site, n *nodes, node *far) {
			n.leads(s.away.narrow, 4)
			p, other := s.fromA(s.away.ip), l.farOf(t, 4)
			s.a.Send(p.bytes())
			other.want(n.wrap(p.routed(gwMAC, gwMAC)))
			s.n.Gateway().VRF("red").Delete(s.away.narrow)
			s.a.Send(p.bytes())
			node.want(n.wrap(p.routed(gwMAC, gwMAC)))
			l.quiet()
		}),
		rows("from VXLAN on", func(l *lab, s *site, n *nodes, node *far) {
			s.behind(vni, 3)
			p := packetOf(rmac(3), s.ip(vni, 3), s.own, s.away.ip)
			s.f.send(vx(vni, p.bytes()))
			node.want(n.wrap(p.routed(gwMAC, gwMAC)))
			p = packetOf(frame.MAC{}, s.away.ip, frame.MAC{}, s.ip(vni, 3))
			node.send(n.wrap(p))
			s.f.want(vx(vni, p.routed(s.own, rmac(3)).bytes()))
			l.quiet()
		}),
		rows("from node to node", func(l *lab, s *site, n *nodes, node *far) {
			n.leads(s.away.narrow, 4)
			p, other := packetOf(frame.MAC{}, ipOf(s.v6, 77, 1), frame.MAC{}, s.away.ip), l.farOf(t, 4)
			node.send(n.wrap(p))
			other.want(n.wrap(p.routed(gwMAC, gwMAC)))
			l.quiet()
		}),
		rows("TTL 1 is answered through the tunnel", func(l *lab, s *site, n *nodes, node *far) {
			p := packetOf(frame.MAC{}, s.away.ip, frame.MAC{}, s.a.IP).naked()
			p.ttl = 1
			node.send(n.wrap(p))
			node.want(wrapped(t, nodesVNI, exceeded.about(p, s.ip(vni, gatewayHost), 0)))
			l.quiet()
		}),
		rows("an echo request for the gateway is answered", func(l *lab, s *site, n *nodes, node *far) {
			p := packetOf(frame.MAC{}, s.away.ip, frame.MAC{}, s.ip(vni2, gatewayHost)).asEcho()
			node.send(n.wrap(p))
			node.want(n.wrap(p.replied()))
			l.quiet()
		}),
		rows("the sender hears what fits the way to a node", func(l *lab, s *site, n *nodes, node *far) {
			l.Net.SetLink(l.addr(1), l.addr(3), memory.Link{PathMTU: 1400})
			fits := l.fits(t, 1400)
			p := s.fromA(s.away.ip).long(fits + 1)
			s.a.Send(p.bytes()) // lost, and the VTEP told
			l.quiet()
			s.a.Send(p.bytes())
			s.a.Want(tooLong.about(p, s.ip(vni, gatewayHost), fits))
			p = p.long(fits).sentBy(s.a)
			node.want(n.wrap(p.routed(gwMAC, gwMAC)))
			l.quiet()
		}),
		inside(id, "62 between hosts of two nodes", func(l *lab, v6 bool) { nodesPing(l, t, v6) }),
	)
}

// nodesPing has a segment of hosts at each of two nodes.
func nodesPing(l *lab, t encap.Type, v6 bool) {
	r, o := l.router(1), l.router(2)
	r.gate(vni, true)
	o.gate(vni2, true)
	r.nodes(t, 1).leads(prefixOf(v6, vni2), 2)
	o.nodes(t, 2).leads(prefixOf(v6, vni), 1)
	a, b := guest(r.Node, vni, ipOf(v6, vni, 1)), guest(o.Node, vni2, ipOf(v6, vni2, 2))
	ping(a, b, gwMAC, 62, gwMAC, gwMAC)
	l.clean()
}
