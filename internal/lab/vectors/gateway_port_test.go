package vectors

import (
	"net"
	"slices"
	"sync"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/l3"
)

// tun is an IP port whose other side is the test.
type tun struct {
	l    *lab
	in   chan []byte
	end  chan struct{}
	once sync.Once
	mtu  int

	mu  sync.Mutex
	out [][]byte
}

func (p *tun) Name() string             { return "tun" }
func (p *tun) Readers() []frame.Reader  { return []frame.Reader{p} }
func (p *tun) Writer(int) frame.Writer  { return p }
func (p *tun) Offloads() frame.Offloads { return frame.OffloadAll | frame.IPOnly }
func (p *tun) MTU(uint16) int           { return p.mtu }
func (p *tun) Close() error             { p.once.Do(func() { close(p.end) }); return nil }

func (p *tun) Read(b *frame.Batch) error {
	b.Reset()
	select {
	case x := <-p.in:
		f := b.New(len(x))
		copy(f.Bytes(), x)
		if f.Kind = frame.IPv4; x[0]>>4 == 6 {
			f.Kind = frame.IPv6
		}
		return nil
	case <-p.end:
		return net.ErrClosed
	}
}

func (p *tun) Write(out []frame.Out) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, o := range out {
		if o.F.Kind == frame.Ethernet {
			o.Drop = frame.BadKind
			continue
		}
		p.out = append(p.out, slices.Clone(o.F.Bytes()))
	}
	return nil
}

func (p *tun) send(b []byte) { p.in <- b; p.l.Settle() }

func (p *tun) want(packets ...[]byte) {
	p.l.T.Helper()
	p.l.same("IP port", p.got(), packets)
}

func (p *tun) got() [][]byte {
	p.l.Settle()
	p.mu.Lock()
	defer p.mu.Unlock()
	out := p.out
	p.out = nil
	return out
}

func (l *lab) newTun(mtu int) *tun {
	p := &tun{l: l, in: make(chan []byte), end: make(chan struct{}), mtu: mtu}
	l.ends = append(l.ends, p)
	return p
}

// tun gives the site an IP port in a segment of its own, and the default route through it.
func (s *site) tun() *tun {
	s.l.T.Helper()
	p := s.l.newTun(1500)
	at, err := s.Segment(6000).Attach(p, 0)
	s.l.must(err)
	i := s.bare(l3.InterfaceConfig{VNI: 6000, Port: at.Dest(0)})
	s.l.must(s.n.Gateway().VRF("red").Add(l3.Route{Prefix: s.away.all, Via: []l3.NextHop{{Interface: i}}}))
	return p
}

// portRows lead out of the overlay.
func portRows() []row {
	return slices.Concat(
		inside("7.direct", "out", func(l *lab, v6 bool) {
			s := l.site(v6, true)
			tun := s.tun()
			p := s.fromA(s.away.ip).sentBy(s.a)
			tun.want(p.routed(gwMAC, gwMAC).naked().bytes())
			l.clean()
		}),
		inside("7.direct", "in", func(l *lab, v6 bool) {
			s := l.site(v6, true)
			tun := s.tun()
			p := packetOf(frame.MAC{}, s.away.ip, frame.MAC{}, s.a.IP)
			tun.send(p.naked().bytes())
			p.reaches(s.a)
			l.clean()
		}),
		inside("7.direct", "errors go out as they are", func(l *lab, v6 bool) {
			s := l.site(v6, true)
			tun := s.tun()
			p := packetOf(frame.MAC{}, s.away.ip, frame.MAC{}, s.a.IP).naked()
			p.ttl = 1
			tun.send(p.bytes())
			tun.want(exceeded.about(p, s.ip(vni, gatewayHost), 0))
			l.clean()
		}),
		inside("7.direct", "an echo request for the gateway", func(l *lab, v6 bool) {
			s := l.site(v6, true)
			tun := s.tun()
			p := packetOf(frame.MAC{}, s.away.ip, frame.MAC{}, s.ip(vni2, gatewayHost)).asEcho().naked()
			tun.send(p.bytes())
			tun.want(p.replied().bytes())
			l.quiet()
		}),
		inside("7.direct", "the first ping waits for its host", func(l *lab, v6 bool) {
			s := l.site(v6, false)
			tun := s.tun()
			p := packetOf(frame.MAC{}, s.away.ip, frame.MAC{}, s.ip(vni2, 5)).asEcho()
			tun.send(p.naked().bytes())
			q := s.asks(s.ip(vni2, 5), false)
			s.b.Want(q.bytes())
			s.f.want(vx(vni2, q.bytes()))
			s.f.send(vx(vni2, isAt(q, rmac(5)).bytes()))
			s.f.want(vx(vni2, p.routed(gwMAC, rmac(5)).bytes()))
			l.clean()
		}),
		inside("7.direct", "its sender is told when there is no host", func(l *lab, v6 bool) {
			s := l.site(v6, false)
			tun := s.tun()
			p := packetOf(frame.MAC{}, s.away.ip, frame.MAC{}, s.ip(vni2, 5)).naked()
			tun.send(p.bytes())
			l.pass(3*tick + tick/2)
			told := hostGone.about(p, s.ip(vni, gatewayHost), 0)
			tun.want(told) // the one that waited in vain
			tun.send(p.bytes())
			tun.want(told)
		}),
		inside("7.other-networks", "from VXLAN and back", func(l *lab, v6 bool) {
			s := l.site(v6, false)
			s.behind(vni, 3)
			tun := s.tun()
			p := packetOf(rmac(3), s.ip(vni, 3), gwMAC, s.away.ip).asEcho()
			s.f.send(vx(vni, p.bytes()))
			p = p.routed(gwMAC, gwMAC)
			tun.want(p.naked().bytes())
			p = p.replied()
			tun.send(p.naked().bytes())
			s.f.want(vx(vni, p.routed(gwMAC, rmac(3)).bytes()))
			l.clean()
		}),
	)
}
