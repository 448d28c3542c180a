package node

import (
	"cmp"
	"context"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/vxswitch/vxswitch/bfd"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/l3"
)

// BFD probes paths by Bidirectional Forwarding Detection: of a gateway, those to the next hops of routes on its
// interface that have an IP address (RFC 5881); of a tunnel, those to its listed peers, inside the tunnel (RFC 8971),
// for IP-in-IP beside it, through the host's sockets or from the gateway that shares its address. Routes pass over what
// is dead while they have another next hop, and groups of peers over dead members. A path is not dead before its far end
// has been heard.
type BFD struct {
	bfd.SessionConfig

	VNI frame.VNI `json:"vni,omitzero"` // of a tunnel: the management VNI, which no segment has; default 1
}

// prober runs the BFD sessions of a node. They follow the routes and the peers.
type prober struct {
	n    *Node
	kick chan struct{}

	speaker atomic.Pointer[bfd.Speaker] // nil before the first session, and after close

	// mu comes after Node.mu. It is not held for long, so that what sessions find is carried out at once.
	mu       sync.Mutex
	closed   bool
	sessions map[bfd.Peer]*session
	probed   map[*tunnel]*probedTunnel
	leaving  []*probedTunnel // without sessions, still in their management VNIs
	down     map[effect]bool // next hops behind dead peers

	warned map[string]string // why there is no session, as the last update has told
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
	defer p.leave()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || !p.configured() {
		return
	}
	s := p.start()
	told := p.warned
	p.warned = map[string]string{}
	want := wantedSessions{}
	p.gateways(want)
	p.tunnels(want, told)
	for peer, old := range p.sessions {
		now := want[peer]
		if now == nil {
			_ = s.Remove(peer)
			delete(p.sessions, peer)
			now = new(session)
		}
		was := *old
		old.cfg, old.on = now.cfg, now.on
		if p.sessions[peer] == old && !reflect.DeepEqual(old.cfg, was.cfg) {
			_ = s.Change(peer, p.config(old))
		}
		if !old.down {
			continue
		}
		for _, e := range was.on {
			if !slices.Contains(old.on, e) {
				p.set(peer, e, false)
			}
		}
		for _, e := range old.on {
			if !slices.Contains(was.on, e) {
				p.set(peer, e, true)
			}
		}
	}
	for _, l := range p.probed {
		if l.path != nil {
			l.path.SetPeers(l.peers) // after the last packets of sessions with others
		}
	}
	for peer, x := range want {
		if p.sessions[peer] != nil {
			continue
		}
		if err := s.Add(peer, p.config(x)); err != nil {
			p.warn(told, "BFD session not begun", "peer", peer.String(), err)
			continue
		}
		p.sessions[peer] = x
	}
	p.updateRoutes() // to next hops that have come
}

// warn says why there is no session, unless told has the same reason. p.mu is held.
func (p *prober) warn(told map[string]string, text, what, name string, err error) {
	key := what + " " + name
	if p.warned[key] = err.Error(); told[key] != p.warned[key] {
		p.n.log.Warn(text, what, name, "err", err)
	}
}

// start returns the speaker, made with the first session. p.mu is held.
func (p *prober) start() *bfd.Speaker {
	if p.speaker.Load() == nil {
		p.speaker.Store(bfd.New())
		_ = p.n.gateway.Listen(bfd.Port, p.received)
	}
	return p.speaker.Load()
}

// configured reports whether there may be sessions. p.mu and n.mu are held.
func (p *prober) configured() bool {
	return p.speaker.Load() != nil ||
		slices.ContainsFunc(p.n.cfg.Tunnels, func(t Tunnel) bool { return t.BFD != nil }) ||
		slices.ContainsFunc(p.n.cfg.Segments, func(s Segment) bool { return s.Gateway != nil && s.Gateway.BFD != nil })
}

// config returns the settings of a session.
func (p *prober) config(x *session) *bfd.SessionConfig {
	c := x.cfg
	c.Notify = func(c bfd.Change) { p.changed(x, c) }
	return &c
}

// changed carries out what a session has found.
func (p *prober) changed(x *session, c bfd.Change) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.sessions[c.Peer] != x { // it was removed meanwhile
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
	p.updateRoutes()
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

// A BFDSession is a session of BFD, and what it is for.
type BFDSession struct {
	bfd.Session
	Tunnel string    // with a peer of this tunnel, or
	VRF    string    // with a next hop of routes of this VRF
	VNI    frame.VNI // on the interface of this segment
}

// BFD returns the sessions of the node, in the order of their addresses.
func (n *Node) BFD() []BFDSession {
	p := n.prober
	s := p.speaker.Load()
	if s == nil {
		return nil
	}
	list, _ := s.Sessions() // fails after Close
	all := make([]BFDSession, len(list))
	p.mu.Lock()
	for i, x := range list {
		all[i].Session = x
		if own := p.sessions[x.Peer]; own != nil {
			for _, e := range own.on {
				if e.tunnel != nil {
					all[i].Tunnel = e.tunnel.cfg.Name
				} else {
					all[i].VRF, all[i].VNI = e.vrf.Name(), e.hop.Interface.VNI()
				}
			}
		}
	}
	p.mu.Unlock()
	slices.SortFunc(all, func(a, b BFDSession) int {
		return cmp.Or(a.Peer.Local.Compare(b.Peer.Local), a.Peer.Remote.Compare(b.Peer.Remote),
			cmp.Compare(a.Tunnel, b.Tunnel), cmp.Compare(a.VRF, b.VRF))
	})
	return all
}
