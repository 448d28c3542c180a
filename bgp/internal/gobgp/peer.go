package gobgp

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"strings"
	"time"

	"github.com/osrg/gobgp/v4/api"
	"github.com/osrg/gobgp/v4/pkg/apiutil"
	"github.com/osrg/gobgp/v4/pkg/packet/bgp"

	"github.com/vxswitch/vxswitch/bgp/internal/engine"
)

// name is what tells peers apart, and the peer group of those of a prefix.
func name(p *engine.Peer) string {
	if p.Prefix.IsValid() {
		return p.Prefix.String()
	}
	return p.Addr.String()
}

// addAll begins sessions with peers. Those that fail are none, so that they are added when the peers are set again. b.mu is held.
func (b *BGP) addAll(list []engine.Peer) error {
	var errs []error
	for _, byPrefix := range []bool{false, true} { // who has an address is not to come by a prefix first
		for i := range list {
			if p := &list[i]; p.Prefix.IsValid() == byPrefix {
				err := b.add(p)
				if err != nil {
					delete(b.peers, name(p))
				}
				errs = append(errs, err)
			}
		}
	}
	b.move()
	return errors.Join(errs...)
}

// add begins sessions with a peer. b.mu is held.
func (b *BGP) add(p *engine.Peer) (err error) {
	ctx := context.Background()
	if p.Prefix.IsValid() {
		err = b.server.AddPeerGroup(ctx, &api.AddPeerGroupRequest{PeerGroup: b.group(p)})
		if err == nil {
			err = b.server.AddDynamicNeighbor(ctx, &api.AddDynamicNeighborRequest{DynamicNeighbor: &api.DynamicNeighbor{Prefix: name(p), PeerGroup: name(p)}})
		}
	} else {
		b.forget(p.Addr)
		for range 3 {
			if err = b.server.AddPeer(ctx, &api.AddPeerRequest{Peer: b.peer(p)}); err == nil {
				return nil
			}
			_ = b.server.DeletePeer(ctx, &api.DeletePeerRequest{Address: name(p)}) // who has come by a prefix, and may come again meanwhile
		}
	}
	if err != nil {
		return fmt.Errorf("peer %s: %w", name(p), err)
	}
	return nil
}

// move ends the sessions of who has come by a prefix, and is now a peer by a longer one. b.mu is held.
func (b *BGP) move() {
	var list []string
	_ = b.server.ListPeer(context.Background(), &api.ListPeerRequest{}, func(x *api.Peer) {
		addr := parse(x.State.GetNeighborAddress())
		if by := x.Conf.GetPeerGroup(); by != "" && addr.IsValid() {
			if p := b.peerOf(addr); name(&p) != by {
				list = append(list, addr.String())
			}
		}
	})
	for _, addr := range list {
		_ = b.server.DeletePeer(context.Background(), &api.DeletePeerRequest{Address: addr}) // or it has gone
	}
}

// peerOf returns the peer that an address is: the one with it, or of the smallest prefix that has it; one without both if it is none. b.mu is
// held.
func (b *BGP) peerOf(addr netip.Addr) (peer engine.Peer) {
	addr = addr.WithZone("")
	for _, p := range b.peers {
		if p.Addr == addr {
			return p
		}
		if p.Prefix.Contains(addr) && (!peer.Prefix.IsValid() || p.Prefix.Bits() > peer.Prefix.Bits()) {
			peer = p
		}
	}
	return peer
}

// remove ends sessions with a peer. b.mu is held.
func (b *BGP) remove(p *engine.Peer) error {
	ctx := context.Background()
	if !p.Prefix.IsValid() {
		b.forget(p.Addr)
		return b.server.DeletePeer(ctx, &api.DeletePeerRequest{Address: name(p)})
	}
	errs := []error{b.server.DeleteDynamicNeighbor(ctx, &api.DeleteDynamicNeighborRequest{Prefix: name(p), PeerGroup: name(p)})}
	for _, addr := range b.sessions(p) {
		_ = b.server.DeletePeer(ctx, &api.DeletePeerRequest{Address: addr}) // or it has gone
	}
	return errors.Join(append(errs, b.server.DeletePeerGroup(ctx, &api.DeletePeerGroupRequest{Name: name(p)}))...)
}

func (b *BGP) peer(p *engine.Peer) *api.Peer {
	return &api.Peer{
		Conf:            &api.PeerConf{NeighborAddress: name(p), PeerAsn: p.AS, AuthPassword: p.Password, AllowOwnAsn: uint32(p.OwnAS)},
		Timers:          timers(p),
		Transport:       transport(p),
		RouteReflector:  b.reflector(p),
		EbgpMultihop:    multihop(b.conf.AS, p),
		GracefulRestart: restart(p),
		AfiSafis:        afiSafis(p),
	}
}

func (b *BGP) group(p *engine.Peer) *api.PeerGroup {
	return &api.PeerGroup{
		Conf:            &api.PeerGroupConf{PeerGroupName: name(p), PeerAsn: p.AS, AuthPassword: p.Password, AllowOwnAsn: uint32(p.OwnAS)},
		Timers:          timers(p),
		Transport:       transport(p),
		RouteReflector:  b.reflector(p),
		EbgpMultihop:    multihop(b.conf.AS, p),
		GracefulRestart: restart(p),
		AfiSafis:        afiSafis(p),
	}
}

func timers(p *engine.Peer) *api.Timers {
	return &api.Timers{Config: &api.TimersConfig{
		HoldTime: uint64(p.Hold / time.Second), KeepaliveInterval: uint64(p.Hold / time.Second / 3), ConnectRetry: uint64(p.Retry / time.Second), IdleHoldTimeAfterReset: 1,
	}}
}

func transport(p *engine.Peer) *api.Transport {
	t := &api.Transport{PassiveMode: p.Passive, RemotePort: uint32(p.Port)}
	if p.Local.IsValid() {
		t.LocalAddress = p.Local.String()
	}
	return t
}

func (b *BGP) reflector(p *engine.Peer) *api.RouteReflector {
	if !p.Client {
		return nil
	}
	return &api.RouteReflector{RouteReflectorClient: true, RouteReflectorClusterId: b.conf.RouterID.String()}
}

func multihop(as uint32, p *engine.Peer) *api.EbgpMultihop {
	if p.AS == as || p.Hops < 2 {
		return nil
	}
	return &api.EbgpMultihop{Enabled: true, MultihopTtl: uint32(p.Hops)}
}

// restart says that we help a peer that restarts, and never that we do.
func restart(p *engine.Peer) *api.GracefulRestart {
	if !p.Restarts {
		return nil
	}
	return &api.GracefulRestart{Enabled: true, HelperOnly: true}
}

// sendMax is how many paths of a prefix a peer gets with add-path: as many as gobgp can, or the best.
func sendMax(p *engine.Peer) uint32 {
	if p.AllPaths {
		return math.MaxUint8
	}
	return 0
}

func afiSafis(p *engine.Peer) (list []*api.AfiSafi) {
	for _, afi := range []api.Family_Afi{api.Family_AFI_IP, api.Family_AFI_IP6} {
		f := &api.Family{Afi: afi, Safi: api.Family_SAFI_UNICAST}
		list = append(list, &api.AfiSafi{
			Config:            &api.AfiSafiConfig{Family: f, Enabled: true},
			AddPaths:          &api.AddPaths{Config: &api.AddPathsConfig{Receive: true, SendMax: sendMax(p)}},
			MpGracefulRestart: &api.MpGracefulRestart{Config: &api.MpGracefulRestartConfig{Enabled: p.Restarts}},
		})
	}
	return list
}

// Status implements [engine.Engine].
func (b *BGP) Status() (list []engine.Status) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.server == nil {
		for _, p := range b.peers {
			if p.Addr.IsValid() {
				list = append(list, engine.Status{Addr: p.Addr, AS: p.AS, State: "idle"})
			}
		}
		return list
	}
	ruled, accepted := map[netip.Addr]bool{}, map[netip.Addr]int{}
	_ = b.server.ListPeer(context.Background(), &api.ListPeerRequest{}, func(x *api.Peer) {
		st := b.status(x)
		list = append(list, st)
		p, ok := b.peers[x.Conf.GetPeerGroup()]
		if !ok {
			p = b.peers[st.Addr.String()]
		}
		if len(p.Import) > 0 {
			ruled[st.Addr] = true
			for _, f := range x.AfiSafis {
				accepted[st.Addr] += int(f.GetState().GetAccepted())
			}
		}
	})
	if len(ruled) == 0 {
		return list
	}
	taken := b.taken()
	for i, st := range list {
		if ruled[st.Addr] {
			list[i].Filtered = max(0, accepted[st.Addr]-taken[st.Addr])
		}
	}
	return list
}

// taken counts the routes of each peer in gobgp's table, which has those that the rules of the peer let in. To have gobgp list what the
// rules reject is no way: its list of a peer's routes with the rules puts what the rules make of them in the place of what was received.
// b.mu is held.
func (b *BGP) taken() map[netip.Addr]int {
	n := map[netip.Addr]int{}
	for _, f := range families {
		_ = b.server.ListPath(apiutil.ListPathRequest{TableType: api.TableType_TABLE_TYPE_GLOBAL, Family: f}, func(_ bgp.NLRI, paths []*apiutil.Path) {
			for _, p := range paths {
				n[p.PeerAddress]++
			}
		})
	}
	return n
}

func (b *BGP) status(x *api.Peer) engine.Status {
	st := engine.Status{
		AS:    x.State.GetPeerAsn(),
		State: strings.ToLower(strings.TrimPrefix(x.State.GetSessionState().String(), "SESSION_STATE_")),
		In:    x.State.GetMessages().GetReceived().GetTotal(), Out: x.State.GetMessages().GetSent().GetTotal(),
	}
	st.Addr = parse(x.State.GetNeighborAddress(), x.Conf.GetNeighborAddress())
	if st.State == "established" {
		st.Since = x.Timers.GetState().GetUptime().AsTime()
		st.Hold = time.Duration(x.Timers.GetState().GetNegotiatedHoldTime()) * time.Second
	}
	for _, f := range x.AfiSafis {
		st.Received += int(f.GetState().GetReceived())
	}
	b.whyMu.Lock()
	defer b.whyMu.Unlock()
	if st.Why = b.why[st.Addr]; st.Why == "" && st.State != "established" {
		st.Why = b.tried[st.Addr]
	}
	return st
}

// parse returns the first address that is one.
func parse(list ...string) netip.Addr {
	for _, s := range list {
		if a, err := netip.ParseAddr(s); err == nil {
			return a
		}
	}
	return netip.Addr{}
}
