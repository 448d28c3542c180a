package bgp

import (
	"net/netip"

	"github.com/vxswitch/vxswitch/bgp/internal/engine"
	"github.com/vxswitch/vxswitch/setting"
)

// A Filter is rules about the routes of peers that have it, as a BGPFilter of Calico: import is about routes of the peer, before the best
// are chosen and Config.Import is asked, and export about what it gets from us. The first rule that matches counts. With none,
// a route is imported, and exported if it is ours, or one that we reflect.
type Filter struct {
	Name     string       `json:"name"`               // by which peers have it; needed
	ImportV4 []FilterRule `json:"importV4,omitempty"` // for IPv4 routes of the peer, in order
	ExportV4 []FilterRule `json:"exportV4,omitempty"` // for IPv4 routes that the peer gets, in order
	ImportV6 []FilterRule `json:"importV6,omitempty"` // for IPv6 routes of the peer, in order
	ExportV6 []FilterRule `json:"exportV6,omitempty"` // for IPv6 routes that the peer gets, in order
}

// A FilterRule matches routes that all its conditions are true of; without conditions, all.
type FilterRule struct {
	Prefix   netip.Prefix `json:"prefix,omitzero"`   // compared with the route's by operator; default any
	Operator Operator     `json:"operator,omitzero"` // "in", "not-in", "equal" or "not-equal"; default "in"
	Min      int          `json:"min,omitzero"`      // least length of the route's prefix, with "in" and "not-in", which is true of shorter ones in prefix too; default that of prefix
	Max      int          `json:"max,omitzero"`      // greatest length, likewise; default 32 or 128

	Source       Source   `json:"source,omitzero"`        // "remote-peers": only routes of peers, none of ours; default "any"
	PeerType     PeerType `json:"peerType,omitzero"`      // "ebgp" or "ibgp": only for peers of another AS, or of ours; default "any"
	Community    string   `json:"community,omitzero"`     // that the route has, such as "65000:100", or a large one, "65000:100:1"; default any
	ASPathPrefix []uint32 `json:"asPathPrefix,omitempty"` // AS numbers that the route's path begins with, up to 10; default any
	Priority     uint32   `json:"priority,omitzero"`      // of the route, which is 2147483647 less LOCAL_PREF, 100 if it has none; not for imports of another AS; default any
	Interface    string   `json:"interface,omitzero"`     // refused: routes here have segments, not interfaces

	Action     Action      `json:"action,omitzero"`      // "accept" or "reject"; default "accept"
	Operations []Operation `json:"operations,omitempty"` // on routes that the rule accepts, up to 10
}

// An Operation changes a route. One of its fields is set.
type Operation struct {
	AddCommunity  string   `json:"addCommunity,omitzero"`   // such as "65000:100", or a large one, "65000:100:1"
	PrependASPath []uint32 `json:"prependASPath,omitempty"` // put before the path in this order, up to 10; in exports to another AS only ours
	SetPriority   uint32   `json:"setPriority,omitzero"`    // as LOCAL_PREF, 2147483647 less it, which peers of another AS are not told
}

// An Operator compares prefixes.
type Operator uint8

// Operators of a FilterRule.
const (
	In       Operator = iota // all of the route's addresses are in the prefix
	NotIn                    // not so
	Equal                    // it is the prefix
	NotEqual                 // not so
)

var operators = []string{In: "in", NotIn: "not-in", Equal: "equal", NotEqual: "not-equal"}

// String returns the word for o.
func (o Operator) String() string { return setting.Name(operators, o) }

// MarshalText implements [encoding.TextMarshaler].
func (o Operator) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (o *Operator) UnmarshalText(text []byte) error { return setting.Parse(o, operators, text) }

// A Source says where routes come from.
type Source uint8

// Sources of a FilterRule.
const (
	AnySource   Source = iota
	RemotePeers        // peers have announced it
)

var sources = []string{AnySource: "any", RemotePeers: "remote-peers"}

// String returns the word for s.
func (s Source) String() string { return setting.Name(sources, s) }

// MarshalText implements [encoding.TextMarshaler].
func (s Source) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (s *Source) UnmarshalText(text []byte) error { return setting.Parse(s, sources, text) }

// A PeerType says which AS a peer is of.
type PeerType uint8

// Types of peers of a FilterRule.
const (
	AnyPeer  PeerType = iota
	External          // of another AS
	Internal          // of ours
)

var peerTypes = []string{AnyPeer: "any", External: "ebgp", Internal: "ibgp"}

// String returns the word for t.
func (t PeerType) String() string { return setting.Name(peerTypes, t) }

// MarshalText implements [encoding.TextMarshaler].
func (t PeerType) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (t *PeerType) UnmarshalText(text []byte) error { return setting.Parse(t, peerTypes, text) }

// is reports whether a rule for peers of a type is about a peer.
func (t PeerType) is(external bool) bool { return t == AnyPeer || external == (t == External) }

// A priority p is a LOCAL_PREF of priorities - p, as nodes of Calico have it.
const priorities = 1<<31 - 1

// filter returns the filter with a name, nil if there is none.
func (c *Config) filter(name string) *Filter {
	for i := range c.Filters {
		if c.Filters[i].Name == name {
			return &c.Filters[i]
		}
	}
	return nil
}

// rules returns what the filters of a peer say of it, with our next hops for it. Between the families there is no order.
func (c *Config) rules(p *Peer, ours []netip.Addr) (imports, exports []engine.Rule) {
	external := p.AS != c.AS
	add := func(to *[]engine.Rule, list []FilterRule, v6 bool, nextHop netip.Addr) {
		for i := range list {
			if list[i].PeerType.is(external) {
				*to = append(*to, list[i].rule(v6, nextHop))
			}
		}
	}
	for _, name := range p.Filters {
		f := c.filter(name)
		if f == nil {
			continue
		}
		add(&imports, f.ImportV4, false, netip.Addr{})
		add(&imports, f.ImportV6, true, netip.Addr{})
		v4, v6 := netip.Addr{}, netip.Addr{}
		if external {
			v4, v6 = engine.OfFamily(ours, true), engine.OfFamily(ours, false)
		}
		add(&exports, f.ExportV4, false, v4)
		add(&exports, f.ExportV6, true, v6)
	}
	return imports, exports
}

// rule returns a rule as the engine has it.
func (r *FilterRule) rule(v6 bool, nextHop netip.Addr) engine.Rule {
	e := engine.Rule{
		IPv6: v6, Prefix: r.Prefix, Not: r.Operator == NotIn || r.Operator == NotEqual, Remote: r.Source == RemotePeers, Community: r.Community, ASPath: r.ASPathPrefix,
		Reject: r.Action == Reject, NextHop: nextHop,
	}
	if r.Prefix.IsValid() {
		if e.Least, e.Most = max(r.Min, r.Prefix.Bits()), r.Max; e.Most == 0 {
			e.Most = r.Prefix.Addr().BitLen()
		}
		if r.Operator == Equal || r.Operator == NotEqual {
			e.Most = r.Prefix.Bits()
		}
	}
	if r.Priority != 0 {
		e.Preference = priorities - r.Priority
	}
	for _, o := range r.Operations {
		switch {
		case o.AddCommunity != "":
			e.AddCommunities = append(e.AddCommunities, o.AddCommunity)
		case o.SetPriority != 0:
			e.SetPreference = priorities - o.SetPriority
		default:
			e.Prepend = append(o.PrependASPath[:len(o.PrependASPath):len(o.PrependASPath)], e.Prepend...)
		}
	}
	return e
}
