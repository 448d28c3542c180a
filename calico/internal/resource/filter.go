package resource

import (
	"encoding/json"
	"fmt"
	"net/netip"
)

// A Filter is a BGPFilter: what peers with its name in their filters may say, and what they are told.
type Filter struct {
	Import, Export []Rule // those of IPv4, then those of IPv6
}

// A Rule is about some routes. The first that is about a route counts.
type Rule struct {
	IPv6     bool
	Prefix   netip.Prefix // with Operator; else it is about all prefixes
	Operator string       // Equal, NotEqual, In or NotIn
	Min, Max int          // lengths of prefixes of In and NotIn; those of the family if there are none
	Source   string       // "RemotePeers": routes of peers only
	PeerType string       // "eBGP" or "iBGP": for such peers only
	Accept   bool

	// More are fields that say more: about interfaces, communities, paths or priorities, or change the route.
	More []string
}

type rawFilter struct {
	Spec struct {
		ExportV4 []rawRule `json:"exportV4"`
		ImportV4 []rawRule `json:"importV4"`
		ExportV6 []rawRule `json:"exportV6"`
		ImportV6 []rawRule `json:"importV6"`
	} `json:"spec"`
}

type rawRule struct {
	CIDR         string `json:"cidr"`
	PrefixLength *struct {
		Min *int `json:"min"`
		Max *int `json:"max"`
	} `json:"prefixLength"`
	Source        string          `json:"source"`
	Interface     string          `json:"interface"`
	MatchOperator string          `json:"matchOperator"`
	PeerType      string          `json:"peerType"`
	Communities   json.RawMessage `json:"communities"`
	ASPathPrefix  json.RawMessage `json:"asPathPrefix"`
	Priority      json.RawMessage `json:"priority"`
	Action        string          `json:"action"`
	Operations    json.RawMessage `json:"operations"`
}

func (r *rawFilter) read() (*Filter, error) {
	f := new(Filter)
	for _, part := range []struct {
		field string
		rules []rawRule
		ipv6  bool
		to    *[]Rule
	}{
		{"spec.importV4", r.Spec.ImportV4, false, &f.Import}, {"spec.importV6", r.Spec.ImportV6, true, &f.Import},
		{"spec.exportV4", r.Spec.ExportV4, false, &f.Export}, {"spec.exportV6", r.Spec.ExportV6, true, &f.Export},
	} {
		for i := range part.rules {
			x, err := part.rules[i].read(part.ipv6)
			if err != nil {
				return nil, fmt.Errorf("%s[%d].%w", part.field, i, err)
			}
			*part.to = append(*part.to, x)
		}
	}
	return f, nil
}

func (r *rawRule) read(ipv6 bool) (x Rule, err error) {
	x = Rule{IPv6: ipv6, Operator: r.MatchOperator, Source: r.Source, PeerType: r.PeerType, Accept: r.Action == "Accept", Max: 32}
	if ipv6 {
		x.Max = 128
	}
	if err := one("action", r.Action, "Accept", "Reject"); err != nil {
		return x, err
	}
	if r.Source != "" {
		if err := one("source", r.Source, "RemotePeers"); err != nil {
			return x, err
		}
	}
	if r.PeerType != "" {
		if err := one("peerType", r.PeerType, "eBGP", "iBGP"); err != nil {
			return x, err
		}
	}
	if (r.CIDR == "") != (r.MatchOperator == "") {
		return x, wrong("matchOperator", r.MatchOperator, "must be there with cidr, and only then")
	}
	if r.CIDR != "" {
		if err := one("matchOperator", r.MatchOperator, "Equal", "NotEqual", "In", "NotIn"); err != nil {
			return x, err
		}
		if x.Prefix, err = prefix("cidr", r.CIDR); err != nil {
			return x, err
		}
		if x.Prefix.Addr().Is4() == ipv6 {
			return x, wrong("cidr", r.CIDR, "must be of the other family")
		}
	}
	if err := r.lengths(&x); err != nil {
		return x, err
	}
	for _, f := range []struct {
		name string
		is   bool
	}{{"interface", r.Interface != ""}, {"communities", given(r.Communities)}, {"asPathPrefix", given(r.ASPathPrefix)},
		{"priority", given(r.Priority)}, {"operations", given(r.Operations)}} {
		if f.is {
			x.More = append(x.More, f.name)
		}
	}
	return x, nil
}

func (r *rawRule) lengths(x *Rule) error {
	l := r.PrefixLength
	if l == nil {
		return nil
	}
	if r.CIDR == "" {
		return wrong("prefixLength", "", "must be there only with cidr")
	}
	most := x.Max
	if l.Min != nil {
		x.Min = *l.Min
	}
	if l.Max != nil {
		x.Max = *l.Max
	}
	if x.Min < 0 || x.Max > most || x.Min > x.Max {
		return wrong("prefixLength", fmt.Sprintf("%d to %d", x.Min, x.Max), "must be in 0 to %d, the least first", most)
	}
	return nil
}
