package gobgp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/osrg/gobgp/v4/api"
	"github.com/osrg/gobgp/v4/pkg/apiutil"
	"github.com/osrg/gobgp/v4/pkg/packet/bgp"
	"github.com/osrg/gobgp/v4/pkg/server"

	"github.com/vxswitch/vxswitch/bgp/internal/engine"
)

// BGP is an [engine.Engine].
type BGP struct {
	conf engine.Config

	mu     sync.Mutex
	server *server.BgpServer // while Run runs
	peers  map[string]engine.Peer
	said   map[netip.Prefix]netip.Addr

	whyMu sync.Mutex
	why   map[netip.Addr]string // sessions ended
	tried map[netip.Addr]string // there was none yet

	up sync.Map // netip.Addr of peers with a session: why we end it, "" if we do not
}

var _ engine.Engine = (*BGP)(nil)

// New opens nothing.
func New(c engine.Config) *BGP {
	return &BGP{conf: c, peers: map[string]engine.Peer{}, said: map[netip.Prefix]netip.Addr{}, why: map[netip.Addr]string{}, tried: map[netip.Addr]string{}}
}

// Run implements [engine.Engine].
func (b *BGP) Run(ctx context.Context, h engine.Handler) error {
	s := server.NewBgpServer(server.LoggerOption(slog.New(&ear{b: b}), nil))
	go s.Serve()
	defer s.Stop()
	watch, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	if err := b.begin(watch, s, h); err != nil {
		return fmt.Errorf("bgp: %w", err)
	}
	<-ctx.Done()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.server = nil
	return nil
}

// begin starts a server with all that is known.
func (b *BGP) begin(ctx context.Context, s *server.BgpServer, h engine.Handler) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	g := &api.Global{Asn: b.conf.AS, RouterId: b.conf.RouterID.String(), ListenPort: -1, UseMultiplePaths: true}
	if len(b.conf.Listen) > 0 {
		g.ListenPort = int32(b.conf.Port)
		for _, a := range b.conf.Listen {
			g.ListenAddresses = append(g.ListenAddresses, a.String())
		}
	}
	if err := s.StartBgp(ctx, &api.StartBgpRequest{Global: g}); err != nil {
		return err
	}
	if err := b.watch(ctx, s, h); err != nil {
		return err
	}
	for p, nextHop := range b.said {
		if err := announce(s, p, nextHop); err != nil {
			return err
		}
	}
	b.server = s
	if err := b.assign(); err != nil {
		return err
	}
	return b.addAll(slices.Collect(maps.Values(b.peers)))
}

// watch has h hear of best paths and sessions.
func (b *BGP) watch(ctx context.Context, s *server.BgpServer, h engine.Handler) error {
	routes := b.loads()
	return s.WatchEvent(ctx, server.WatchEventMessageCallbacks{
		OnPathUpdate: func(paths []*apiutil.Path, _ time.Time) { routes.heard(paths) },
		OnBestPath:   func(paths []*apiutil.Path, _ time.Time) { tell(h, paths) },
		OnPeerUpdate: func(e *apiutil.WatchEventMessage_PeerEvent, _ time.Time) {
			if e.Type == apiutil.PEER_EVENT_STATE {
				routes.down(e.Peer.State.NeighborAddress)
				b.session(h, &e.Peer.State)
			}
		},
	}, server.WatchUpdate(false, "", ""), server.WatchBestPath(true), server.WatchPeer())
}

// dead is why Reset ends a session.
const dead = "the path is dead"

// maxWhy is how many reasons are kept: addresses of a prefix may be many.
const maxWhy = 4096

// session tells what has become of a session.
func (b *BGP) session(h engine.Handler, st *apiutil.PeerState) {
	peer := st.NeighborAddress
	if st.SessionState == bgp.BGP_FSM_ESTABLISHED {
		b.up.Store(peer, "")
		h.Session(peer, true, "")
		return
	}
	was, up := b.up.LoadAndDelete(peer)
	why := st.DisconnectMessage
	if by, _ := was.(string); by != "" {
		why = by
	} else if why == sent(bgp.BGP_ERROR_CEASE, bgp.BGP_ERROR_SUB_ADMINISTRATIVE_RESET) { // by Reset, and nobody else
		why = dead
	}
	switch st.DisconnectReason {
	case api.PeerState_DISCONNECT_REASON_UNSPECIFIED, api.PeerState_DISCONNECT_REASON_IDLE_TIMER_EXPIRED: // before the next attempt
	case api.PeerState_DISCONNECT_REASON_ADMIN_DOWN: // end has said why
	default:
		b.keep(b.why, peer, why)
	}
	if up {
		h.Session(peer, false, cmp.Or(why, ours))
	}
}

// ours is why a session has ended of which nothing else says so.
const ours = "ended here: the peer has other settings, or is none any more"

// ends notes why we end a session, if there is one.
func (b *BGP) ends(peer netip.Addr, why string) {
	b.up.CompareAndSwap(peer, "", why)
	b.keep(b.why, peer, why)
}

// keep keeps why a session has ended, or why there is none yet.
func (b *BGP) keep(list map[netip.Addr]string, peer netip.Addr, why string) {
	b.whyMu.Lock()
	defer b.whyMu.Unlock()
	if len(list) >= maxWhy {
		clear(list)
	}
	list[peer] = why
}

// forget is for a peer with new settings, or none.
func (b *BGP) forget(peer netip.Addr) {
	b.whyMu.Lock()
	defer b.whyMu.Unlock()
	delete(b.why, peer)
	delete(b.tried, peer)
}

// tell passes paths on in runs of those that are learned and those that are withdrawn.
func tell(h engine.Handler, paths []*apiutil.Path) {
	var list []engine.Path
	withdrawal := false
	flush := func() {
		switch {
		case len(list) == 0:
		case withdrawal:
			h.Withdrawn(list)
		default:
			h.Learned(list)
		}
		list = list[:0]
	}
	for _, p := range paths {
		x, ok := pathOf(p)
		if !ok {
			continue
		}
		if p.Withdrawal != withdrawal {
			flush()
			withdrawal = p.Withdrawal
		}
		list = append(list, x)
	}
	flush()
}

// pathOf returns a path of a peer.
func pathOf(p *apiutil.Path) (x engine.Path, ok bool) {
	if p == nil || !p.PeerAddress.IsValid() {
		return x, false // nothing is left, or it is ours
	}
	n, ok := p.Nlri.(*bgp.IPAddrPrefix)
	if !ok {
		return x, false
	}
	x = engine.Path{Source: engine.Source{Peer: p.PeerAddress, ID: p.RemoteID}, Prefix: n.Prefix}
	for _, a := range p.Attrs {
		switch a := a.(type) {
		case *bgp.PathAttributeNextHop:
			x.NextHop = a.Value
		case *bgp.PathAttributeMpReachNLRI:
			x.NextHop = a.Nexthop
		case *bgp.PathAttributeExtendedCommunities:
			x.Bandwidth = bandwidth(a.Value)
		}
	}
	return x, true
}

// bandwidth returns that of the link of a path, 0 if it has none.
func bandwidth(list []bgp.ExtendedCommunityInterface) float32 {
	for _, c := range list {
		if l, ok := c.(*bgp.LinkBandwidthExtended); ok {
			return l.Bandwidth
		}
	}
	return 0
}

// Paths implements [engine.Engine].
func (b *BGP) Paths() (list []engine.Path) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.server == nil {
		return nil
	}
	for _, f := range families {
		_ = b.server.ListPath(apiutil.ListPathRequest{TableType: api.TableType_TABLE_TYPE_GLOBAL, Family: f}, func(_ bgp.NLRI, paths []*apiutil.Path) {
			for _, p := range paths {
				if x, ok := pathOf(p); ok && p.Best {
					list = append(list, x)
				}
			}
		})
	}
	return list
}

var families = []bgp.Family{bgp.RF_IPv4_UC, bgp.RF_IPv6_UC}

// Announce implements [engine.Engine].
func (b *BGP) Announce(p netip.Prefix, nextHop netip.Addr) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.said[p] = nextHop
	if b.server == nil {
		return nil
	}
	return announce(b.server, p, nextHop)
}

func announce(s *server.BgpServer, p netip.Prefix, nextHop netip.Addr) error {
	x, err := own(p, nextHop)
	if err == nil {
		_, err = s.AddPath(apiutil.AddPathRequest{Paths: []*apiutil.Path{x}})
	}
	if err != nil {
		return fmt.Errorf("bgp: announce %v: %w", p, err)
	}
	return nil
}

// own returns a path of ours.
func own(p netip.Prefix, nextHop netip.Addr) (*apiutil.Path, error) {
	n, err := bgp.NewIPAddrPrefix(p)
	if err != nil {
		return nil, err
	}
	family := bgp.RF_IPv4_UC
	if p.Addr().Is6() {
		family = bgp.RF_IPv6_UC
	}
	reach, err := bgp.NewPathAttributeMpReachNLRI(family, []bgp.PathNLRI{{NLRI: n}}, nextHop)
	if err != nil {
		return nil, err
	}
	return &apiutil.Path{Family: family, Nlri: n, Attrs: []bgp.PathAttributeInterface{bgp.NewPathAttributeOrigin(bgp.BGP_ORIGIN_ATTR_TYPE_IGP), reach}}, nil
}

// Withdraw implements [engine.Engine].
func (b *BGP) Withdraw(p netip.Prefix) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	nextHop, ok := b.said[p]
	if b.server != nil && ok {
		x, err := own(p, nextHop)
		if err == nil {
			err = b.server.DeletePath(apiutil.DeletePathRequest{Paths: []*apiutil.Path{x}})
		}
		if err != nil {
			return fmt.Errorf("bgp: withdraw %v: %w", p, err)
		}
	}
	delete(b.said, p) // after a failure the next try has it
	return nil
}

// SetPeers implements [engine.Engine].
func (b *BGP) SetPeers(list []engine.Peer) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	was := maps.Clone(b.peers)
	clear(b.peers)
	var fresh []engine.Peer
	kept := map[string]engine.Peer{}
	for _, p := range list {
		b.peers[name(&p)] = p
		if old, ok := was[name(&p)]; ok && sameSession(old, p) {
			kept[name(&p)] = old
			delete(was, name(&p))
		} else {
			fresh = append(fresh, p)
		}
	}
	if b.server == nil {
		return nil
	}
	var errs []error
	for _, p := range was {
		errs = append(errs, b.remove(&p))
	}
	return errors.Join(append(errs, b.policies(), b.addAll(fresh), b.again(kept))...)
}

// sameSession reports whether peers differ in nothing but what policies say.
func sameSession(a, b engine.Peer) bool {
	a.Import, a.Export, a.NextHops, b.Import, b.Export, b.NextHops = nil, nil, nil, nil, nil, nil
	return reflect.DeepEqual(a, b)
}

// Reset implements [engine.Engine]. A peer that may restart is removed and added: gobgp would keep its routes, and would not tell of
// those that come back as they were.
func (b *BGP) Reset(peer netip.Addr) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.server == nil {
		return
	}
	why := dead
	p, ok := b.peers[peer.String()]
	if !ok || !p.Restarts {
		_ = b.server.ResetPeer(context.Background(), &api.ResetPeerRequest{Address: peer.String(), Communication: why}) // or it is down
		return
	}
	b.ends(peer, why)
	if err := errors.Join(b.remove(&p), b.add(&p)); err != nil {
		why = err.Error()
	}
	b.keep(b.why, peer, why)
}
