package vectors

import (
	"slices"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/packets"
	"github.com/vxswitch/vxswitch/l3"
	vswitch "github.com/vxswitch/vxswitch/switch"
	"github.com/vxswitch/vxswitch/underlay/memory"
)

// long is a packet of n bytes of IP.
func (p packet) long(n int) packet {
	if p.payload = n - 28; p.src.Is6() {
		p.payload = n - 48
	}
	return p
}

// pieces cuts an IPv4 packet, as routed, into what an MTU has room for.
func (p packet) pieces(mtu int) (all [][]byte) {
	data := p.naked().bytes()[20:]
	step := (mtu - 20) / 8 * 8
	if 20+len(data) <= mtu {
		step = len(data)
	}
	for at := 0; at < len(data); at += step {
		ip := &layers.IPv4{
			Version: 4, TTL: p.ttl, Id: p.id, Protocol: layers.IPProtocolUDP, SrcIP: p.src.AsSlice(), DstIP: p.dst.AsSlice(), FragOffset: uint16(at / 8),
		}
		if at+step < len(data) {
			ip.Flags = layers.IPv4MoreFragments
		}
		eth := &layers.Ethernet{SrcMAC: p.from[:], DstMAC: p.to[:], EthernetType: layers.EthernetTypeIPv4}
		piece := data[at:min(at+step, len(data))]
		all = append(all, packets.Of(eth, ip, gopacket.Payload(piece))[:14+20+len(piece)]) // gopacket pads
	}
	return all
}

// short starts a site over an underlay of 1500 bytes, host 3 of VNI 200 behind the far end.
func (l *lab) short(v6 bool) *site {
	l.T.Helper()
	l.bigger(1500)
	s := l.site(v6, true)
	s.behind(vni2, 3)
	return s
}

// routedBigRows are routed packets that are too long, and connections that are told before.
func routedBigRows() []row {
	return slices.Concat([]row{
		{id: "1.gbp-carried", name: "each piece of what is too long keeps it", wire: func(l *lab) {
			l.vc = withGBP
			s := l.short(false)
			l.must(s.a.At.Configure(vswitch.AttachConfig{GBP: 0x66}))
			p := s.fromA(s.ip(vni2, 3)).long(1500)
			p.df = false
			s.a.Send(p.bytes())
			var want [][]byte
			for _, b := range p.routed(s.own, rmac(3)).pieces(l.inner(1500)) {
				want = append(want, header([8]byte{0x88, 0, 0, 0x66, 0, 0, vni2, 0}, b))
			}
			s.f.want(want...)
		}},
		{id: "9.routed-fragment", name: "without DF", wire: func(l *lab) {
			s := l.short(false)
			fits := l.inner(1500)
			for _, n := range []int{fits, fits + 1, 1500} {
				p := s.fromA(s.ip(vni2, 3)).long(n)
				p.df = false
				s.a.Send(p.bytes())
				pieces := p.routed(s.own, rmac(3)).pieces(fits)
				s.f.want(vxs(vni2, pieces)...)
			}
			l.clean()
		}},
		{id: "9.routed-fragment", name: "several of them, on a path of 608 bytes", only: "IPv4", wire: func(l *lab) {
			s := l.short(false)
			l.narrowPath(2, 608, vx(vni2, make([]byte, 1200)))
			p := s.fromA(s.ip(vni2, 3)).long(1500)
			p.df = false
			s.a.Send(p.bytes())
			pieces := p.routed(s.own, rmac(3)).pieces(558)
			check.Need(l.T, len(pieces) == 3, "%d pieces", len(pieces))
			s.f.want(vxs(vni2, pieces)...)
			l.clean()
		}},
		{id: "9.routed-fragment", name: "out of an IP port", only: "IPv4", wire: func(l *lab) {
			s := l.site(false, true)
			tun := s.tun()
			tun.mtu = 600
			p := s.fromA(s.away.ip).long(1500)
			p.df = false
			s.a.Send(p.bytes())
			var want [][]byte
			for _, b := range p.routed(gwMAC, gwMAC).pieces(600) {
				want = append(want, b[14:])
			}
			tun.want(want...)
			l.clean()
		}},
	},
		inside("9.routed", "DF, and IPv6", func(l *lab, v6 bool) {
			s := l.short(v6)
			fits := l.inner(1500)
			p := s.fromA(s.ip(vni2, 3)).long(fits).sentBy(s.a)
			s.f.want(vx(vni2, p.routed(s.own, rmac(3)).bytes()))
			p = p.long(fits + 1).sentBy(s.a)
			s.a.Want(tooLong.about(p, s.ip(vni, gatewayHost), fits))
			l.clean()
		}),
		inside("9.routed", "to a sender behind a tunnel", func(l *lab, v6 bool) {
			s := l.short(v6)
			s.behind(vni, 4)
			fits := l.inner(1500)
			p := packetOf(rmac(4), s.ip(vni, 4), s.own, s.ip(vni2, 3)).long(fits)
			l.narrowPath(2, 1400, vx(vni2, make([]byte, 1390)))
			s.f.send(vx(vni, p.bytes()))
			s.f.want(vx(vni, tooLong.about(p, s.ip(vni, gatewayHost), l.inner(1400))))
			l.clean()
		}),
		inside("9.routed", "out of an IP port", func(l *lab, v6 bool) {
			s := l.site(v6, true)
			tun := s.tun()
			tun.mtu = 1400
			p := s.fromA(s.away.ip).long(1400).sentBy(s.a)
			tun.want(p.routed(gwMAC, gwMAC).naked().bytes())
			p = p.long(1401).sentBy(s.a)
			s.a.Want(tooLong.about(p, s.ip(vni, gatewayHost), 1400))
			l.clean()
		}),
		inside("9.routed", "rate-limited", func(l *lab, v6 bool) {
			s := l.short(v6)
			p := s.fromA(s.ip(vni2, 3)).long(1500)
			s.a.Send(slices.Repeat([][]byte{p.bytes()}, l3.DefaultPerSender+1)...)
			s.a.Want(slices.Repeat([][]byte{tooLong.about(p, s.ip(vni, gatewayHost), l.inner(1500))}, l3.DefaultPerSender)...)
			l.dropped("too-big")
		}),
		inside("9.routed-path-mtu", "a router on the way to a peer", func(l *lab, v6 bool) {
			s := l.short(v6)
			l.Net.SetLink(l.addr(1), l.addr(2), memory.Link{PathMTU: 1400})
			fits := l.inner(1400)
			p := s.fromA(s.ip(vni2, 3)).long(fits + 1)
			s.a.Send(p.bytes()) // lost, and the VTEP told
			s.f.want()
			s.a.Send(p.bytes())
			s.a.Want(tooLong.about(p, s.ip(vni, gatewayHost), fits))
			p = s.fromA(s.ip(vni2, 3)).long(fits).sentBy(s.a)
			s.f.want(vx(vni2, p.routed(s.own, rmac(3)).bytes()))
			l.quiet()
		}),
		inside("9.mss-clamp", "bridged and routed, there and back", func(l *lab, v6 bool) {
			s := l.short(v6)
			s.behind(vni, 3)
			fits := l.inner(1500)
			clamp := check.Must(l3.NewMSSClamp(fits))(l.T)
			slots := vswitch.Slots{Ingress: clamp}
			l.must(s.a.At.Configure(vswitch.AttachConfig{Slots: slots}))
			for _, a := range s.Segment(vni).Attachments() {
				l.must(a.Configure(vswitch.AttachConfig{Slots: slots}))
			}
			most := pick(v6, fits-40, fits-60)
			for _, mss := range []int{1460, most + 1, most, 536} {
				is := uint16(min(mss, most))
				p := packetOf(s.a.MAC, s.a.IP, rmac(3), s.ip(vni, 3))
				p.what, p.payload, p.mss = syn, 0, uint16(mss)
				in := p.bytes()
				p.mss = is
				s.a.Send(in)
				s.f.want(vx(vni, p.bytes()))
				p.from, p.to, p.src, p.dst, p.mss = p.to, p.from, p.dst, p.src, uint16(mss)
				in = p.bytes()
				p.mss = is
				s.f.send(vx(vni, in))
				s.a.Want(p.bytes())
				p = s.fromA(s.ip(vni2, 3))
				p.what, p.payload, p.mss = syn, 0, uint16(mss)
				in = p.bytes()
				p.mss = is
				s.a.Send(in)
				s.f.want(vx(vni2, p.routed(s.own, rmac(3)).bytes()))
			}
			check.Equal(l.T, "clamped", clamp.Clamped(), 6)
			l.clean()
		}),
	)
}
