package gobgp

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/osrg/gobgp/v4/api"

	"github.com/vxswitch/vxswitch/bgp/internal/engine"
)

// name is what tells peers apart, and the peer group of those of a prefix.
func name(p *engine.Peer) string {
	if p.Prefix.IsValid() {
		return p.Prefix.String()
	}
	return p.Addr.String()
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
		err = b.server.AddPeer(ctx, &api.AddPeerRequest{Peer: b.peer(p)})
	}
	if err != nil {
		return fmt.Errorf("peer %s: %w", name(p), err)
	}
	return nil
}

// remove ends sessions with a peer. b.mu is held.
func (b *BGP) remove(p *engine.Peer) error {
	ctx := context.Background()
	if !p.Prefix.IsValid() {
		return b.server.DeletePeer(ctx, &api.DeletePeerRequest{Address: name(p)})
	}
	errs := []error{b.server.DeleteDynamicNeighbor(ctx, &api.DeleteDynamicNeighborRequest{Prefix: name(p), PeerGroup: name(p)})}
	var list []string
	errs = append(errs, b.server.ListPeer(ctx, &api.ListPeerRequest{}, func(x *api.Peer) {
		if x.Conf.GetPeerGroup() == name(p) {
			list = append(list, x.State.GetNeighborAddress())
		}
	}))
	for _, addr := range list {
		errs = append(errs, b.server.DeletePeer(ctx, &api.DeletePeerRequest{Address: addr}))
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

func afiSafis(p *engine.Peer) (list []*api.AfiSafi) {
	for _, afi := range []api.Family_Afi{api.Family_AFI_IP, api.Family_AFI_IP6} {
		f := &api.Family{Afi: afi, Safi: api.Family_SAFI_UNICAST}
		list = append(list, &api.AfiSafi{
			Config:            &api.AfiSafiConfig{Family: f, Enabled: true},
			AddPaths:          &api.AddPaths{Config: &api.AddPathsConfig{Receive: true}},
			PrefixLimits:      &api.PrefixLimit{Family: f, MaxPrefixes: p.Limit},
			MpGracefulRestart: &api.MpGracefulRestart{Config: &api.MpGracefulRestartConfig{Enabled: p.Restarts}},
		})
	}
	return list
}

// Names of policies: what peers get from us.
const (
	ourOwn    = "own"
	reflected = "reflected"
)

// policies makes the policies. b.mu is held.
func (b *BGP) policies() error {
	var errs []error
	for name, typ := range map[string]api.Conditions_RouteType{ourOwn: api.Conditions_ROUTE_TYPE_LOCAL, reflected: api.Conditions_ROUTE_TYPE_INTERNAL} {
		errs = append(errs, b.server.AddPolicy(context.Background(), &api.AddPolicyRequest{Policy: &api.Policy{Name: name, Statements: []*api.Statement{{
			Name: name, Conditions: &api.Conditions{RouteType: typ}, Actions: &api.Actions{RouteAction: api.RouteAction_ROUTE_ACTION_ACCEPT},
		}}}}))
	}
	return errors.Join(errs...)
}

// export has peers get our own routes, and those of our AS if we are a route reflector; never those of another AS. b.mu is held.
func (b *BGP) export() error {
	list := []*api.Policy{{Name: ourOwn}}
	for _, p := range b.peers {
		if p.Client {
			list = append(list, &api.Policy{Name: reflected})
			break
		}
	}
	return b.server.SetPolicyAssignment(context.Background(), &api.SetPolicyAssignmentRequest{Assignment: &api.PolicyAssignment{
		Name: "global", Direction: api.PolicyDirection_POLICY_DIRECTION_EXPORT, Policies: list, DefaultAction: api.RouteAction_ROUTE_ACTION_REJECT,
	}})
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
	_ = b.server.ListPeer(context.Background(), &api.ListPeerRequest{}, func(x *api.Peer) { list = append(list, b.status(x)) })
	return list
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
	st.Why = b.why[st.Addr]
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
