package gobgp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/osrg/gobgp/v4/api"

	"github.com/vxswitch/vxswitch/bgp/internal/engine"
)

// Names of the policies: what we take of peers, and what they get from us.
const (
	imports = "imports"
	exports = "exports"
)

// assign makes the policies. They keep their names, by which gobgp knows where they are assigned. b.mu is held.
func (b *BGP) assign() error {
	if err := b.policies(); err != nil {
		return err
	}
	set := func(name string, d api.PolicyDirection, usual api.RouteAction) error {
		return b.server.SetPolicyAssignment(context.Background(), &api.SetPolicyAssignmentRequest{Assignment: &api.PolicyAssignment{
			Name: "global", Direction: d, Policies: []*api.Policy{{Name: name}}, DefaultAction: usual,
		}})
	}
	return errors.Join(set(imports, api.PolicyDirection_POLICY_DIRECTION_IMPORT, api.RouteAction_ROUTE_ACTION_ACCEPT),
		set(exports, api.PolicyDirection_POLICY_DIRECTION_EXPORT, api.RouteAction_ROUTE_ACTION_REJECT))
}

// policies replaces what the policies say, at once. b.mu is held.
func (b *BGP) policies() error {
	c := compiler{as: b.conf.AS, takes: true}
	for _, p := range b.peers {
		c.reflects, c.takes = c.reflects || p.Client, c.takes && len(p.Import) == 0
	}
	for _, g := range b.groups() {
		c.group(&g)
	}
	c.export("")
	return b.server.SetPolicies(context.Background(), &api.SetPoliciesRequest{DefinedSets: c.sets, Policies: []*api.Policy{
		{Name: imports, Statements: c.imports}, {Name: exports, Statements: c.exports},
	}})
}

// again has the routes of sessions that go on judged anew if the rules of the peer were other ones. b.mu is held.
func (b *BGP) again(was map[string]engine.Peer) error {
	var errs []error
	for key, p := range b.peers {
		old, ok := was[key]
		if !ok {
			continue
		}
		for direction, same := range map[api.ResetPeerRequest_Direction]bool{
			api.ResetPeerRequest_DIRECTION_IN:  reflect.DeepEqual(p.Import, old.Import),
			api.ResetPeerRequest_DIRECTION_OUT: reflect.DeepEqual(p.Export, old.Export) && reflect.DeepEqual(p.NextHops, old.NextHops),
		} {
			if same {
				continue
			}
			for _, addr := range b.sessions(&p) {
				errs = append(errs, b.server.ResetPeer(context.Background(), &api.ResetPeerRequest{Address: addr, Soft: true, Direction: direction}))
			}
		}
	}
	return errors.Join(errs...)
}

// sessions returns the address of a peer, or those that have connected from its prefix. b.mu is held.
func (b *BGP) sessions(p *engine.Peer) (list []string) {
	if !p.Prefix.IsValid() {
		return []string{name(p)}
	}
	_ = b.server.ListPeer(context.Background(), &api.ListPeerRequest{}, func(x *api.Peer) {
		if x.Conf.GetPeerGroup() == name(p) {
			list = append(list, x.State.GetNeighborAddress())
		}
	})
	return list
}

// A group is peers that have the same rules and next hops of ours, and are addresses or prefixes of one length.
type group struct {
	*engine.Peer // one of them
	bits         int
	external     bool
	list         []string
}

// groups returns peers by their rules and our next hops, none if there is none of these. Of prefixes that have an address the longest comes first.
func (b *BGP) groups() (list []group) {
	at, ruled := map[string]int{}, false
	for _, p := range b.peers {
		q := p.Prefix
		if !q.IsValid() {
			q = netip.PrefixFrom(p.Addr, p.Addr.BitLen())
		}
		g := group{Peer: &p, bits: q.Bits(), external: p.AS != b.conf.AS}
		key := fmt.Sprint(g.bits, g.external, p.Import, p.Export, p.NextHops == nil, p.NextHops)
		i, ok := at[key]
		if !ok {
			i, at[key] = len(list), len(list)
			list = append(list, g)
		}
		list[i].list = append(list[i].list, q.String())
		ruled = ruled || len(p.Import)+len(p.Export) > 0 || p.NextHops != nil
	}
	if !ruled {
		return nil
	}
	slices.SortFunc(list, func(a, b group) int { return cmp.Compare(b.bits, a.bits) })
	return list
}

// A compiler writes rules as statements of policies.
type compiler struct {
	as       uint32
	reflects bool // routes of our AS to clients
	takes    bool // all of all peers: there are no rules for imports
	sets     []*api.DefinedSet
	imports  []*api.Statement
	exports  []*api.Statement
}

// set makes a set of which one member is to match.
func (c *compiler) set(t api.DefinedType, list ...string) *api.MatchSet {
	s := &api.DefinedSet{DefinedType: t, Name: "set" + strconv.Itoa(len(c.sets)), List: list}
	c.sets = append(c.sets, s)
	return &api.MatchSet{Type: api.MatchSet_TYPE_ANY, Name: s.Name}
}

// group adds the rules of peers, and what becomes of routes that none matches.
func (c *compiler) group(g *group) {
	peers := c.set(api.DefinedType_DEFINED_TYPE_NEIGHBOR, g.list...).Name
	for i := range g.Import {
		c.imports = append(c.imports, c.rule(&g.Import[i], peers, 0)...)
	}
	if !c.takes {
		c.imports = append(c.imports, &api.Statement{Conditions: conditions(peers), Actions: accept()})
	}
	if g.NextHops != nil {
		c.nextHop(peers, api.Family_AFI_IP, engine.OfFamily(g.NextHops, true))
		c.nextHop(peers, api.Family_AFI_IP6, engine.OfFamily(g.NextHops, false))
	}
	as := uint32(0)
	if g.external {
		as = c.as
	}
	for i := range g.Export {
		c.exports = append(c.exports, c.rule(&g.Export[i], peers, as)...)
	}
	c.export(peers)
}

// nextHop has peers get our own routes of a family with a next hop, or none of them without one.
func (c *compiler) nextHop(peers string, afi api.Family_Afi, a netip.Addr) {
	x, do := conditions(peers), &api.Actions{}
	x.RouteType, x.AfiSafiIn = api.Conditions_ROUTE_TYPE_LOCAL, []*api.Family{{Afi: afi, Safi: api.Family_SAFI_UNICAST}}
	if a.IsValid() {
		do.Nexthop = &api.NexthopAction{Address: a.String()} // and the next statement
	} else {
		do.RouteAction = api.RouteAction_ROUTE_ACTION_REJECT
	}
	c.exports = append(c.exports, &api.Statement{Conditions: x, Actions: do})
}

// export has peers get our own routes, and those of our AS if we are a route reflector; never those of another AS.
func (c *compiler) export(peers string) {
	types := []api.Conditions_RouteType{api.Conditions_ROUTE_TYPE_LOCAL}
	if c.reflects {
		types = append(types, api.Conditions_ROUTE_TYPE_INTERNAL)
	}
	for _, t := range types {
		x := conditions(peers)
		x.RouteType = t
		c.exports = append(c.exports, &api.Statement{Conditions: x, Actions: accept()})
	}
	if peers != "" {
		c.exports = append(c.exports, &api.Statement{Conditions: conditions(peers), Actions: &api.Actions{RouteAction: api.RouteAction_ROUTE_ACTION_REJECT}})
	}
}

func accept() *api.Actions { return &api.Actions{RouteAction: api.RouteAction_ROUTE_ACTION_ACCEPT} }

// conditions are that a route is of some peers, or for them; "" = all.
func conditions(peers string) *api.Conditions {
	if peers == "" {
		return &api.Conditions{}
	}
	return &api.Conditions{NeighborSet: &api.MatchSet{Type: api.MatchSet_TYPE_ANY, Name: peers}}
}

// rule returns the statements of a rule. In exports to another AS, ours is in front of the path already, but for paths that are compared
// with those that the peer has.
func (c *compiler) rule(r *engine.Rule, peers string, as uint32) (list []*api.Statement) {
	types := []api.Conditions_RouteType{api.Conditions_ROUTE_TYPE_UNSPECIFIED}
	if r.Remote {
		types = []api.Conditions_RouteType{api.Conditions_ROUTE_TYPE_INTERNAL, api.Conditions_ROUTE_TYPE_EXTERNAL}
	}
	match := c.conditions(r, as)
	for _, t := range types {
		x := conditions(peers)
		x.PrefixSet, x.AfiSafiIn, x.CommunitySet, x.LargeCommunitySet, x.AsPathSet, x.LocalPrefEq = match.PrefixSet, match.AfiSafiIn, match.CommunitySet, match.LargeCommunitySet, match.AsPathSet, match.LocalPrefEq
		x.RouteType = t
		for _, a := range actions(r) {
			list = append(list, &api.Statement{Conditions: x, Actions: a})
		}
	}
	return list
}

func (c *compiler) conditions(r *engine.Rule, as uint32) *api.Conditions {
	x := &api.Conditions{}
	if r.Prefix.IsValid() {
		x.PrefixSet = c.set(api.DefinedType_DEFINED_TYPE_PREFIX)
		c.sets[len(c.sets)-1].Prefixes = []*api.Prefix{{IpPrefix: r.Prefix.String(), MaskLengthMin: uint32(r.Least), MaskLengthMax: uint32(r.Most)}}
		if r.Not {
			x.PrefixSet.Type = api.MatchSet_TYPE_INVERT
		}
	} else {
		afi := api.Family_AFI_IP
		if r.IPv6 {
			afi = api.Family_AFI_IP6
		}
		x.AfiSafiIn = []*api.Family{{Afi: afi, Safi: api.Family_SAFI_UNICAST}}
	}
	switch strings.Count(r.Community, ":") {
	case 1:
		x.CommunitySet = c.set(api.DefinedType_DEFINED_TYPE_COMMUNITY, r.Community)
	case 2:
		x.LargeCommunitySet = c.set(api.DefinedType_DEFINED_TYPE_LARGE_COMMUNITY, r.Community)
	}
	if len(r.ASPath) > 0 {
		path := strings.Trim(fmt.Sprint(r.ASPath), "[]")
		if as != 0 {
			path = fmt.Sprintf("(%d )?%s", as, path)
		}
		x.AsPathSet = c.set(api.DefinedType_DEFINED_TYPE_AS_PATH, "^"+path+"( |$)")
	}
	if r.Preference != 0 {
		x.LocalPrefEq = &api.LocalPrefEq{Value: r.Preference}
	}
	return x
}

// actions returns what the statements of a rule do, one for each run of the same number that is put before the path. All but the last
// leave the route to the next, whose conditions are the same: if the path is one of them, so are the numbers.
func actions(r *engine.Rule) (list []*api.Actions) {
	if r.Reject {
		return []*api.Actions{{RouteAction: api.RouteAction_ROUTE_ACTION_REJECT}}
	}
	for _, as := range slices.Backward(r.Prepend) {
		if n := len(list); n > 0 && list[n-1].AsPrepend.Asn == as {
			list[n-1].AsPrepend.Repeat++
		} else {
			list = append(list, &api.Actions{AsPrepend: &api.AsPrependAction{Asn: as, Repeat: 1}})
		}
	}
	if len(list) == 0 {
		list = append(list, &api.Actions{})
	}
	last := list[len(list)-1]
	last.RouteAction = api.RouteAction_ROUTE_ACTION_ACCEPT
	for _, s := range r.AddCommunities {
		to := &last.Community
		if strings.Count(s, ":") == 2 {
			to = &last.LargeCommunity
		}
		if *to == nil {
			*to = &api.CommunityAction{Type: api.CommunityAction_TYPE_ADD}
		}
		(*to).Communities = append((*to).Communities, s)
	}
	if r.SetPreference != 0 {
		last.LocalPref = &api.LocalPrefAction{Value: r.SetPreference}
	}
	if r.NextHop.IsValid() {
		last.Nexthop = &api.NexthopAction{Address: r.NextHop.String()}
	}
	return list
}
