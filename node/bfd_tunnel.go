package node

import (
	"cmp"
	"errors"
	"net/netip"
	"slices"
	"sync/atomic"
	"time"

	"github.com/vxswitch/vxswitch/bfd"
	"github.com/vxswitch/vxswitch/bfd/vxlan"
	"github.com/vxswitch/vxswitch/fdb"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/l3"
	vswitch "github.com/vxswitch/vxswitch/switch"
)

// A probedTunnel is what the sessions with the peers of one tunnel share.
type probedTunnel struct {
	t    *tunnel
	port uint16   // of the tunnel on the switch; 0 = in no segment
	udp  *bfd.UDP // of IP-in-IP over raw sockets

	// Of other tunnels: the segment of the management VNI, in which nothing is forwarded.
	vni  frame.VNI
	vsi  *vswitch.VSI
	at   *vswitch.Attachment
	path *vxlan.Path

	peers map[uint16]bfd.Peer // with sessions
	out   passage
}

// A passage counts the frames that the switch was given for a tunnel, and, as their egress stage, those that a worker has
// passed on to it.
type passage struct{ given, sent atomic.Uint64 }

// Process implements [vswitch.Stage].
func (p *passage) Process(*frame.Frame, frame.At) frame.Verdict {
	p.sent.Add(1)
	return frame.Continue
}

// wait waits until all are sent. Some may have been dropped, so it does not wait for long.
func (p *passage) wait() {
	for deadline := time.Now().Add(100 * time.Millisecond); p.sent.Load() < p.given.Load() && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
}

// tunnels adds the sessions with the peers of tunnels. p.mu and n.mu are held.
func (p *prober) tunnels(want wantedSessions, told map[string]string) {
	for t, l := range p.probed {
		if t.cfg.BFD == nil || p.n.tunnels[t.cfg.Name] != t || l.udp != t.udp || l.path != nil && l.vni != t.cfg.BFD.vni() {
			p.removeTunnel(t)
		}
	}
	for _, t := range p.n.tunnels {
		if t.cfg.BFD == nil {
			continue
		}
		l := p.probed[t]
		if l == nil {
			var err error
			if l, err = p.openTunnel(t); err != nil {
				p.warn(told, "no BFD", "tunnel", t.cfg.Name, err)
				continue
			}
			p.probed[t] = l
		}
		l.port = 0
		for _, s := range p.n.segments {
			if a := s.tunnels[t.cfg.Name]; a != nil {
				l.port = a.Dest(0).Port()
			}
		}
		for _, peer := range p.n.sessions(l) {
			want.add(peer, t.cfg.BFD, effect{tunnel: t})
		}
	}
}

func (c *BFD) vni() frame.VNI { return cmp.Or(c.VNI, vxlan.VNI) }

// openTunnel prepares a tunnel for sessions.
func (p *prober) openTunnel(t *tunnel) (*probedTunnel, error) {
	l := &probedTunnel{t: t, vni: t.cfg.BFD.vni()}
	if t.cfg.Type.Bare() {
		if l.udp = t.udp; l.udp == nil && !t.cfg.shared {
			return nil, errors.New("it has no sockets for BFD")
		}
		return l, nil
	}
	l.path = vxlan.New(p.start(), func(peer uint16, f *frame.Frame) bool {
		l.out.given.Add(1) // before a worker counts it as sent
		if !l.vsi.Send(l.at.Dest(peer), f) {
			l.out.given.Add(^uint64(0))
			return false
		}
		return true
	})
	var err error
	l.vsi, err = p.n.sw.VSI(l.vni, &vswitch.VSIConfig{NoLearn: true, NoFlood: vswitch.Broadcast | vswitch.Multicast | vswitch.UnknownUnicast})
	if err == nil {
		l.at, err = l.vsi.AttachWith(t.v, uint32(l.vni), &vswitch.AttachConfig{NoLearn: true, KeepOpen: true, Slots: vswitch.Slots{Ingress: l.path, Egress: &l.out}})
		if err != nil && len(l.vsi.Attachments()) == 0 {
			_ = l.vsi.Delete()
		}
	}
	return l, err
}

// closing ends the sessions of a tunnel that is about to be closed. p.mu is not held.
func (p *prober) closing(t *tunnel) {
	defer p.leave()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.removeTunnel(t)
}

// freeVNIs ends the sessions in VNIs that segments are about to have.
func (p *prober) freeVNIs(w wanted) {
	defer p.leave()
	p.mu.Lock()
	defer p.mu.Unlock()
	for t, l := range p.probed {
		if l.path == nil {
			continue
		}
		_, taken := w.segments[l.vni]
		for _, c := range w.segments {
			taken = taken || slices.ContainsFunc(c.in(), func(x SegmentTunnel) bool { return x.Tunnel == t.cfg.Name && x.VNI == l.vni })
		}
		if taken {
			p.removeTunnel(t)
		}
	}
}

// removeTunnel ends the sessions of a tunnel. p.mu is held; after it, leave is called.
func (p *prober) removeTunnel(t *tunnel) {
	l := p.probed[t]
	if l == nil {
		return
	}
	delete(p.probed, t)
	for peer, x := range p.sessions {
		if slices.Contains(x.on, effect{tunnel: t}) {
			_ = t.v.SetDown(peer.Remote, false)
		}
		x.on = slices.DeleteFunc(x.on, func(e effect) bool { return e.tunnel == t })
		if len(x.on) == 0 {
			_ = p.speaker.Load().Remove(peer)
			delete(p.sessions, peer)
		}
	}
	p.updateRoutes()
	if l.at != nil {
		p.leaving = append(p.leaving, l)
	}
}

// leave takes tunnels without sessions out of their management VNIs, after the last packets. n.mu is held, p.mu is not:
// the packets take a while, and what other sessions find does not wait for them.
func (p *prober) leave() {
	p.mu.Lock()
	list := p.leaving
	p.leaving = nil
	p.mu.Unlock()
	for _, l := range list {
		l.out.wait()
		l.t.v.Disallow(l.vni, l.t.v.Allowed(l.vni)...)
		_ = l.at.Detach()
		if len(l.vsi.Attachments()) == 0 {
			_ = l.vsi.Delete()
		}
	}
}

// setBFD opens or closes the host's sockets for the sessions of an IP-in-IP tunnel with the settings of c.
func (n *Node) setBFD(t *tunnel, c *Tunnel) (err error) {
	want := c.BFD != nil && c.Type.Bare() && c.Underlay == UnderlayUDP && n.open.bfd != nil
	if t.udp != nil && (!want || !slices.Equal(t.udpOn, c.locals())) {
		n.prober.closing(t)
		t.udp.Close()
		t.udp = nil
	}
	if !want || t.udp != nil {
		return nil
	}
	n.prober.mu.Lock()
	defer n.prober.mu.Unlock()
	t.udp, err = n.open.bfd(n.prober.start(), c)
	t.udpOn = c.locals()
	return err
}

// sessions returns those that a tunnel should have, one with each listed peer.
func (n *Node) sessions(l *probedTunnel) (list []bfd.Peer) {
	addrs := l.t.v.Listed(l.vni)
	if l.path == nil {
		for _, a := range addrs {
			if x, ok := n.outside(l, a); ok {
				list = append(list, x)
			}
		}
		return list
	}
	var allow, disallow []netip.AddrPort
	listed := make(map[netip.Addr]bool, len(addrs))
	for _, a := range addrs {
		allow, listed[a] = append(allow, netip.AddrPortFrom(a, 0)), true
	}
	for _, a := range l.t.v.Allowed(l.vni) {
		if !listed[a.Addr()] {
			disallow = append(disallow, a)
		}
	}
	_ = l.t.v.Allow(l.vni, allow...) // what it does not take has no number
	l.t.v.Disallow(l.vni, disallow...)
	l.peers = map[uint16]bfd.Peer{}
	for _, s := range l.t.v.Stats().Peers {
		if a := s.Addr.Addr(); s.VNI == 0 && listed[a] {
			x := bfd.Peer{Path: l.path, Local: l.t.cfg.beside(a), Remote: a}
			if x.Check() == nil {
				l.peers[s.Peer] = x
				list = append(list, x)
			}
		}
	}
	return list
}

// outside returns the session with a peer of an IP-in-IP tunnel, which runs beside the tunnel: through the host's sockets,
// or from the gateway that shares the tunnel's address.
func (n *Node) outside(l *probedTunnel, remote netip.Addr) (p bfd.Peer, ok bool) {
	local := l.t.cfg.beside(remote)
	if l.udp != nil {
		p, err := l.udp.Peer(local, remote, false)
		return p, err == nil
	}
	g, prefix := index(n.cfg).sharing(&l.t.cfg, local)
	if g == nil || !prefix.Contains(remote) || n.segments[g.VNI] == nil || n.segments[g.VNI].iface == nil {
		return p, false
	}
	p = bfd.Peer{Path: gatewayPath{n.segments[g.VNI].iface}, Local: local, Remote: remote}
	return p, p.Check() == nil
}

// updateRoutes tells the routes which next hops are behind a dead peer of a tunnel, and which are so no more. p.mu is held.
func (p *prober) updateRoutes() {
	fdbs := map[frame.VNI]*fdb.Table{}
	for _, v := range p.n.sw.VSIs() {
		fdbs[v.VNI()] = v.FDB()
	}
	down := map[effect]bool{}
	for _, v := range p.n.gateway.VRFs() {
		for h := range v.NextHops() {
			for _, l := range p.probed {
				if peer, ok := l.peerOf(h, fdbs[h.Interface.VNI()]); ok && l.t.v.Down(peer) {
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

// peerOf returns the peer of the tunnel that a next hop is behind.
func (l *probedTunnel) peerOf(h l3.NextHop, macs *fdb.Table) (peer uint16, ok bool) {
	if t := h.Interface.Config().Tunnel; t != nil {
		return h.Peer, t == l3.Tunnel(l.t.v)
	}
	if h.MAC.IsZero() || macs == nil {
		return 0, false
	}
	to, ok := macs.Lookup(h.MAC)
	return to.Peer(), ok && l.port != 0 && to.Port() == l.port && to.Peer() != 0
}
