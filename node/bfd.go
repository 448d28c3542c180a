package node

import (
	"cmp"
	"context"
	"net/netip"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/vxswitch/vxswitch/arp"
	"github.com/vxswitch/vxswitch/bfd"
	"github.com/vxswitch/vxswitch/fdb"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/l3"
)

// BFD probes paths by Bidirectional Forwarding Detection: of a gateway, those to the next hops of routes on its
// interface (RFC 5881); of a tunnel, those to its listed peers, inside the tunnel (RFC 8971), for IP-in-IP beside it,
// through the host's sockets. Routes pass over what is dead while they have another next hop, and groups of peers over
// dead members. A path is not dead before its far end has been heard.
type BFD struct {
	bfd.SessionConfig

	VNI frame.VNI `json:"vni,omitzero"` // of a tunnel: the management VNI, which no segment has; default 1
}

// prober runs the BFD sessions of a node. They follow the routes and the peers.
type prober struct {
	n    *Node
	kick chan struct{}

	speaker atomic.Pointer[bfd.Speaker] // nil before the first session, and after close

	mu       sync.Mutex // after Node.mu; not held for long, so that what sessions find is carried out at once
	closed   bool
	sessions map[bfd.Peer]*session
	probed   map[*tunnel]*probedTunnel
	down     map[effect]bool // next hops behind dead peers
}

// A session is one of the prober's, with what it decides on.
type session struct {
	cfg  bfd.SessionConfig
	down bool
	on   []effect
}

// An effect is what a session decides on: a next hop, or the peer of a tunnel.
type effect struct {
	vrf    *l3.VRF
	hop    l3.NextHop
	tunnel *tunnel
}

// wantedSessions are the sessions that routes and peers ask for.
type wantedSessions map[bfd.Peer]*session

// add adds what a session decides on. If two have the same path, the first has the settings.
func (w wantedSessions) add(peer bfd.Peer, c *BFD, e effect) {
	if w[peer] == nil {
		w[peer] = &session{cfg: c.SessionConfig}
	}
	w[peer].on = append(w[peer].on, e)
}

func newProber(n *Node) *prober {
	return &prober{n: n, kick: make(chan struct{}, 1), sessions: map[bfd.Peer]*session{}, probed: map[*tunnel]*probedTunnel{}}
}

// look has run compare the sessions with the routes and peers.
func (p *prober) look() {
	select {
	case p.kick <- struct{}{}:
	default:
	}
}

func (p *prober) run(ctx context.Context) {
	for {
		p.update()
		select {
		case <-ctx.Done():
			return
		case <-p.kick:
		}
		select { // so that many changes are handled together
		case <-ctx.Done():
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// update begins and ends sessions.
func (p *prober) update() {
	p.n.mu.Lock()
	defer p.n.mu.Unlock()
	if p.n.closed {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || !p.wanted() {
		return
	}
	s := p.begin()
	want := wantedSessions{}
	p.gateways(want)
	p.tunnels(want)
	for peer, old := range p.sessions {
		x := want[peer]
		if x == nil {
			_ = s.Remove(peer)
			delete(p.sessions, peer)
			x = new(session)
		} else if p.sessions[peer], x.down = x, old.down; !reflect.DeepEqual(x.cfg, old.cfg) {
			_ = s.Change(peer, p.config(x))
		}
		for _, e := range old.on {
			if old.down && !slices.Contains(x.on, e) {
				p.set(peer, e, false)
			}
		}
		for _, e := range x.on {
			if x.down && !slices.Contains(old.on, e) {
				p.set(peer, e, true)
			}
		}
	}
	for peer, x := range want {
		if p.sessions[peer] != nil {
			continue
		}
		if err := s.Add(peer, p.config(x)); err != nil {
			p.n.log.Warn("BFD session not begun", "peer", peer.String(), "err", err)
			continue
		}
		p.sessions[peer] = x
	}
	p.spread() // to next hops that have come
}

// begin returns the speaker. p.mu is held.
func (p *prober) begin() *bfd.Speaker {
	if p.speaker.Load() == nil {
		p.speaker.Store(bfd.New())
		_ = p.n.gateway.Listen(bfd.Port, p.received)
	}
	return p.speaker.Load()
}

// wanted reports whether there may be sessions. p.mu and n.mu are held.
func (p *prober) wanted() bool {
	return p.speaker.Load() != nil ||
		slices.ContainsFunc(p.n.cfg.Tunnels, func(t Tunnel) bool { return t.BFD != nil }) ||
		slices.ContainsFunc(p.n.cfg.Segments, func(s Segment) bool { return s.Gateway != nil && s.Gateway.BFD != nil })
}

// config returns the settings of a session.
func (p *prober) config(x *session) *bfd.SessionConfig {
	c := x.cfg
	c.Notify = p.changed
	return &c
}

// changed carries out what a session has found.
func (p *prober) changed(c bfd.Change) {
	p.mu.Lock()
	defer p.mu.Unlock()
	x := p.sessions[c.Peer]
	if x == nil {
		return
	}
	x.down = c.Status == bfd.Dead
	for _, e := range x.on {
		p.set(c.Peer, e, x.down)
	}
	p.n.log.Info("BFD", "peer", c.Peer.String(), "status", c.Status.String(), "diagnostic", c.Diag.String())
}

// set has routes and groups pass over a path, or use it again. p.mu is held.
func (p *prober) set(peer bfd.Peer, e effect, down bool) {
	if e.tunnel == nil {
		_ = e.vrf.SetDown(e.hop, down) // fails if the interface is gone
		return
	}
	_ = e.tunnel.v.SetDown(peer.Remote, down)
	p.spread()
}

// spread tells the routes which next hops are behind a dead peer of a tunnel, and which are so no more. p.mu is held.
func (p *prober) spread() {
	fdbs := map[frame.VNI]*fdb.Table{}
	for _, v := range p.n.sw.VSIs() {
		fdbs[v.VNI()] = v.FDB()
	}
	down := map[effect]bool{}
	for _, v := range p.n.gateway.VRFs() {
		for h := range v.NextHops() {
			for _, l := range p.probed {
				if peer, ok := l.behind(h, fdbs[h.Interface.VNI()]); ok && l.t.v.Down(peer) {
					down[effect{vrf: v, hop: h}] = true
					_ = v.SetDown(h, true) // it may be down for another reason, which ends sooner
				}
			}
		}
	}
	for e := range p.down {
		if !down[e] {
			_ = e.vrf.SetDown(e.hop, false) // fails if the interface is gone
		}
	}
	p.down = down
}

// behind returns the peer of the tunnel that a next hop is behind.
func (l *probedTunnel) behind(h l3.NextHop, macs *fdb.Table) (peer uint16, ok bool) {
	if t := h.Interface.Config().Tunnel; t != nil {
		return h.Peer, t == l3.Tunnel(l.t.v)
	}
	if h.MAC.IsZero() || macs == nil {
		return 0, false
	}
	to, ok := macs.Lookup(h.MAC)
	return to.Peer(), ok && l.port != 0 && to.Port() == l.port && to.Peer() != 0
}

// close ends all sessions.
func (p *prober) close() {
	p.mu.Lock()
	s := p.speaker.Swap(nil)
	p.closed = true
	p.mu.Unlock()
	_ = p.n.gateway.Listen(bfd.Port, nil)
	if s != nil {
		s.Close()
	}
}

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

// BFD returns the sessions of the node, in the order of their addresses.
func (n *Node) BFD() []bfd.Session {
	s := n.prober.speaker.Load()
	if s == nil {
		return nil
	}
	list, _ := s.Sessions() // fails after Close
	slices.SortFunc(list, func(a, b bfd.Session) int {
		return cmp.Or(a.Peer.Local.Compare(b.Peer.Local), a.Peer.Remote.Compare(b.Peer.Remote))
	})
	return list
}

// passOver has routes pass over interfaces whose IP port is gone. Those of other ports have neighbours, which are
// forgotten. n.mu is held.
func (n *Node) passOver(events []frame.Event) {
	for _, e := range events {
		s := n.segments[e.VNI]
		if e.Kind != frame.EventDetached || s == nil || s.iface == nil || s.iface.Config().Port.Port() != e.Dest.Port() || e.Dest == 0 {
			continue
		}
		for h := range s.iface.VRF().NextHops() {
			if h.Interface == s.iface {
				_ = s.iface.VRF().SetDown(h, true) // until the interface is made anew, with its port
			}
		}
	}
}
