package node

import (
	"net/netip"

	"github.com/vxswitch/vxswitch/arp"
	"github.com/vxswitch/vxswitch/bfd"
	"github.com/vxswitch/vxswitch/l3"
)

// received takes a packet to an address of a gateway.
func (p *prober) received(d l3.Datagram) {
	if s := p.speaker.Load(); s != nil {
		s.Receive(bfd.Peer{Path: gatewayPath{d.Interface}, Local: d.Dst.Addr(), Remote: d.Src.Addr()}, d.TTL, d.Payload)
	}
}

// A gatewayPath sends from an interface of a gateway.
type gatewayPath struct{ i *l3.Interface }

// Send implements [bfd.Path].
func (g gatewayPath) Send(p *bfd.Packet) error {
	return g.i.SendUDP(netip.AddrPortFrom(p.Peer.Local, p.SrcPort), netip.AddrPortFrom(p.Peer.Remote, p.DstPort), 255, p.Payload)
}

// gateways adds the sessions with next hops on interfaces.
func (p *prober) gateways(want wantedSessions) {
	hops := map[*l3.VRF]map[l3.NextHop]bool{}
	for _, s := range p.n.segments {
		if s.iface == nil || s.bfd == nil {
			continue
		}
		vrf := s.iface.VRF()
		if hops[vrf] == nil {
			hops[vrf] = vrf.NextHops()
		}
		for h := range hops[vrf] {
			if h.Interface != s.iface || !h.IP.IsValid() {
				continue
			}
			peer := bfd.Peer{Path: gatewayPath{s.iface}, Local: s.localFor(h.IP), Remote: h.IP}
			if peer.Check() == nil {
				want.add(peer, s.bfd, effect{vrf: vrf, hop: h})
			}
		}
	}
}

// localFor returns the address of the gateway to speak to a neighbour from.
func (s *segment) localFor(ip netip.Addr) netip.Addr {
	c := s.iface.Config()
	for _, a := range c.Addresses {
		if a.Contains(ip) {
			return a.Addr()
		}
	}
	if ip.Is6() && ip.IsLinkLocalUnicast() {
		return arp.LinkLocal(c.MAC)
	}
	return netip.Addr{}
}
