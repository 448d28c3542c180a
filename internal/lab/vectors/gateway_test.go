package vectors

import (
	"context"
	"net/netip"
	"slices"

	"github.com/vxswitch/vxswitch/arp"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/mem"
	"github.com/vxswitch/vxswitch/l3"
	"github.com/vxswitch/vxswitch/node"
	vswitch "github.com/vxswitch/vxswitch/switch"
	"github.com/vxswitch/vxswitch/underlay/memory"
	"github.com/vxswitch/vxswitch/vtep"
)

var gatewayRows = slices.Concat(ownRows(), hopRows(), placeRows(), symmetricRows(), resolveRows(), routeRows(), portRows(), nodeRows(), martianRows(),
	routedNeighbourRows(), routedBigRows())

// Segments of the gateway's rows beside VNI 100, and the segment between routers.
const (
	vni2  = 200
	l3vni = 5000
)

// ipOf returns host n's address in a subnet, which is numbered as the segment it is in.
func ipOf(v6 bool, subnet, n byte) netip.Addr {
	if v6 {
		return netip.AddrFrom16([16]byte{0x20, 1, 0xd, 0xb8, 7: subnet, 15: n})
	}
	return netip.AddrFrom4([4]byte{10, 0, subnet, n})
}

// prefixOf returns a subnet.
func prefixOf(v6 bool, subnet byte) netip.Prefix {
	bits := pick(v6, 24, 64)
	return netip.PrefixFrom(ipOf(v6, subnet, 0), bits)
}

// gateAddrs are a gateway's addresses in a subnet, of both families.
func gateAddrs(subnet byte) (addrs []netip.Prefix) {
	for _, v6 := range []bool{false, true} {
		addrs = append(addrs, netip.PrefixFrom(ipOf(v6, subnet, gatewayHost), prefixOf(v6, subnet).Bits()))
	}
	return addrs
}

// A router is a node with a gateway.
type router struct {
	*mem.Node
	l   *lab
	n   *node.Node
	own frame.MAC // the VTEP's, which an anycast gateway speaks with to other VTEPs
}

// router starts the node with underlay address k; the first one is that under test.
func (l *lab) router(k byte) *router {
	l.T.Helper()
	var u *memory.Underlay
	n, err := node.New(&node.Options{Listen: func(t *node.Tunnel) (_ vtep.Underlay, err error) {
		u, err = l.Listen(t.Local, t.Type)
		return u, err
	}})
	l.must(err)
	t := node.Tunnel{Local: l.addr(k)}
	if l.vc != nil {
		t.Config = *l.vc
	}
	v := check.Must(n.Tunnel("vtep", t))(l.T)
	go n.Run(context.Background())
	r := &router{Node: l.NodeOf(n.Switch(), v, u), l: l, n: n, own: frame.MAC{2, 0xaa, 0, 0, 0, k}}
	if l.Node == nil {
		l.Node = r.Node
	}
	return r
}

// vsi returns the router's segment of a VNI.
func (r *router) vsi(n frame.VNI) *node.VSI {
	r.l.T.Helper()
	v, err := r.n.Segment(n, nil)
	r.l.must(err)
	return v
}

// configure changes the settings of a segment.
func (r *router) configure(n frame.VNI, edit func(*node.Segment)) {
	r.l.T.Helper()
	r.l.must(r.vsi(n).Update(func(s *node.Segment) error { edit(s); return nil }))
}

// iface puts the router into a segment. An interface without addresses has no neighbours.
func (r *router) iface(vrf string, n frame.VNI, g node.Gateway, mode arp.Mode) *l3.Interface {
	r.l.T.Helper()
	if g.Anycast {
		g.VTEPMAC = r.own
	}
	r.l.must(r.vsi(n).Gateway(vrf, g))
	if len(g.Addresses) > 0 {
		r.configure(n, func(s *node.Segment) { s.Neighbours = &node.Neighbours{Config: arp.Config{Mode: mode}} })
	}
	return r.n.Gateway().VRF(vrf).Interface(n)
}

// bare puts the router into a segment without MACs, on a port or tunnel for IP.
func (r *router) bare(c l3.InterfaceConfig) *l3.Interface {
	r.l.T.Helper()
	v := r.Segment(c.VNI)
	c.Send = v.Send
	i, err := r.n.Gateway().VRF("red").NewInterface(&c)
	r.l.must(err)
	r.l.must(v.Configure(vswitch.VSIConfig{Slots: vswitch.Slots{Gateway: i, TooBig: i.PathMTU()}}))
	return i
}

// gate is iface for a segment and the subnet of its number, with gwMAC.
func (r *router) gate(n frame.VNI, anycast bool) *l3.Interface {
	r.l.T.Helper()
	return r.iface("red", n, node.Gateway{Addresses: gateAddrs(byte(n)), MAC: gwMAC, Anycast: anycast}, arp.Suppress)
}

// tunnel makes the router's VTEP a member of a VNI, with a flood list.
func (r *router) tunnel(n frame.VNI, peers ...byte) {
	r.l.T.Helper()
	var to []netip.Addr
	for _, i := range peers {
		if a := r.l.addr(i); a != r.Addr.Addr() {
			to = append(to, a)
		}
	}
	r.l.must(r.vsi(n).Join(r.VTEP, to...))
}

// guest puts a host with an address on a node. It has told everybody.
func guest(n *mem.Node, seg frame.VNI, ip netip.Addr) *mem.Host {
	h := n.Host(seg)
	h.IP = ip
	h.Send(here(h.MAC, ip))
	return h
}

// here is what a host at an address tells everybody.
func here(mac frame.MAC, ip netip.Addr) []byte {
	m := announces(ip.Is6(), mac, 1)
	m.sender = ip
	if m.target = ip; !ip.Is6() {
		m.solicit(ip)
	}
	return m.bytes()
}

// whoHas is what somebody asks everybody for an address.
func whoHas(ip netip.Addr, mac frame.MAC, asker netip.Addr) message {
	m := message{src: mac, sender: asker, senderMAC: mac}
	m.solicit(ip)
	return m
}

// isAt answers a question: its target is at mac.
func isAt(q message, mac frame.MAC) message {
	m := message{answer: true, src: mac, dst: q.src, sender: q.target, senderMAC: mac, target: q.sender, targetMAC: q.senderMAC}
	if q.to.IsValid() {
		m.target, m.to, m.targetMAC, m.flags = q.target, q.sender, frame.MAC{}, naSolicited|naOverride
	}
	return m
}

// gatewayAt is a gateway's answer to a question for it: to be a router is a flag of ND.
func gatewayAt(q message, mac frame.MAC) []byte {
	q = isAt(q, mac)
	if q.flags != 0 {
		q.flags |= naRouter
	}
	return q.bare()
}

// ping has host a ping b, whose gateways are both at gw: what reaches b and then a has a TTL,
// and comes from the MACs toB and toA.
func ping(a, b *mem.Host, gw frame.MAC, ttl uint8, toB, toA frame.MAC) {
	a.T().Helper()
	p := packetOf(a.MAC, a.IP, gw, b.IP).asEcho().sentBy(a)
	p.from, p.to, p.ttl = toB, b.MAC, ttl
	b.Want(p.bytes())
	p = p.replied()
	p.to = gw
	p.sentBy(b)
	p.from, p.to, p.ttl = toA, a.MAC, ttl
	a.Want(p.bytes())
}

// A site is one router with host a in VNI 100 and host b in VNI 200, and a far end which is
// in both.
type site struct {
	*router
	v6   bool
	a, b *mem.Host
	f    *far
	away away
}

func (l *lab) site(v6, anycast bool) *site {
	l.T.Helper()
	s := &site{router: l.router(1), v6: v6, away: awayOf(v6)}
	s.gate(vni, anycast)
	s.gate(vni2, anycast)
	s.tunnel(vni, 2)
	s.tunnel(vni2, 2)
	s.f = l.far(2)
	s.a, s.b = guest(s.Node, vni, s.ip(vni, 1)), guest(s.Node, vni2, s.ip(vni2, 2))
	l.forget()
	return s
}

func (s *site) ip(n frame.VNI, host byte) netip.Addr { return ipOf(s.v6, byte(n), host) }

// behind has the far end say that host n of a segment is there, with rmac(n).
func (s *site) behind(seg frame.VNI, n byte) {
	s.l.T.Helper()
	s.f.send(vx(seg, here(rmac(n), s.ip(seg, n))))
	s.l.forget()
}

// fromA is a packet of host a's that its gateway is to route.
func (s *site) fromA(dst netip.Addr) packet { return packetOf(s.a.MAC, s.a.IP, gwMAC, dst) }

// inside makes a row for each family of what is in the tunnel.
func inside(id, name string, test func(l *lab, v6 bool)) (rows []row) {
	for _, v6 := range []bool{false, true} {
		of := map[bool]string{false: ", IPv4 inside", true: ", IPv6 inside"}[v6]
		rows = append(rows, row{id: id, name: name + of, wire: func(l *lab) { test(l, v6) }})
	}
	return rows
}
