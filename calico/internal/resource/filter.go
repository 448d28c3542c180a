package resource

import (
	"cmp"
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
	Min, Max int          // lengths of prefixes of In and NotIn; 0 = that of Prefix, and that of the family
	Source   string       // "RemotePeers": routes of peers only
	PeerType string       // "eBGP" or "iBGP": for such peers only

	Community string   // that the route has, "" = any
	ASPath    []uint32 // that its path begins with
	Priority  uint32   // that it has, 0 = any

	Accept     bool
	Operations []Operation

	// More are fields that say more, which nothing here does.
	More []string
}

// An Operation changes a route. One of its fields is set.
type Operation struct {
	AddCommunity  string
	PrependASPath []uint32
	SetPriority   uint32
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
	Source        string `json:"source"`
	Interface     string `json:"interface"`
	MatchOperator string `json:"matchOperator"`
	PeerType      string `json:"peerType"`
	Communities   *struct {
		Values []string `json:"values"`
	} `json:"communities"`
	ASPathPrefix []asNumber     `json:"asPathPrefix"`
	Priority     *int64         `json:"priority"`
	Action       string         `json:"action"`
	Operations   []rawOperation `json:"operations"`
}

type rawOperation struct {
	AddCommunity *struct {
		Value string `json:"value"`
	} `json:"addCommunity"`
	PrependASPath *struct {
		Prefix []asNumber `json:"prefix"`
	} `json:"prependASPath"`
	SetPriority *struct {
		Value int64 `json:"value"`
	} `json:"setPriority"`
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
	x = Rule{IPv6: ipv6, Operator: r.MatchOperator, Source: r.Source, PeerType: r.PeerType, Accept: r.Action == "Accept", ASPath: numbers(r.ASPathPrefix)}
	if err := cmp.Or(one("action", r.Action, "Accept", "Reject"), oneOrNone("source", r.Source, "RemotePeers"), oneOrNone("peerType", r.PeerType, "eBGP", "iBGP")); err != nil {
		return x, err
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
			return x, wrong("cidr", r.CIDR, "must be an %s prefix", familyName(!ipv6))
		}
	}
	if err := r.lengths(&x); err != nil {
		return x, err
	}
	if r.Interface != "" {
		x.More = append(x.More, "interface")
	}
	if r.Communities != nil {
		if len(r.Communities.Values) != 1 {
			return x, wrong("communities.values", "", "must have one value, not %d", len(r.Communities.Values))
		}
		x.Community = r.Communities.Values[0]
	}
	if r.Priority != nil {
		if x.Priority, err = priority("priority", *r.Priority); err != nil {
			return x, err
		}
	}
	for i := range r.Operations {
		o, err := r.Operations[i].read()
		if err != nil {
			return x, fmt.Errorf("operations[%d].%w", i, err)
		}
		x.Operations = append(x.Operations, o)
	}
	return x, nil
}

func (r *rawOperation) read() (o Operation, err error) {
	n := 0
	if r.AddCommunity != nil {
		o.AddCommunity, n = r.AddCommunity.Value, n+1
	}
	if r.PrependASPath != nil {
		o.PrependASPath, n = numbers(r.PrependASPath.Prefix), n+1
	}
	if r.SetPriority != nil {
		n++
		if o.SetPriority, err = priority("setPriority.value", r.SetPriority.Value); err != nil {
			return o, err
		}
	}
	if n != 1 {
		return o, wrong("addCommunity, prependASPath, setPriority", "", "one is required, not %d", n)
	}
	return o, nil
}

// priority reads that of a route.
func priority(field string, n int64) (uint32, error) {
	if n < 1 || n >= 1<<31-1 {
		return 0, wrong(field, fmt.Sprint(n), "must be 1 to %d", 1<<31-2)
	}
	return uint32(n), nil
}

// An asNumber is one of a path.
type asNumber uint32

func (a *asNumber) UnmarshalJSON(b []byte) error { return readAS("AS number", b, (*uint32)(a)) }

func numbers(list []asNumber) (out []uint32) {
	for _, n := range list {
		out = append(out, uint32(n))
	}
	return out
}

func (r *rawRule) lengths(x *Rule) error {
	l := r.PrefixLength
	if l == nil {
		return nil
	}
	if r.CIDR == "" {
		return wrong("prefixLength", "", "must be there only with cidr")
	}
	least, most := x.Prefix.Bits(), x.Prefix.Addr().BitLen()
	x.Max = most
	if l.Min != nil {
		x.Min = *l.Min
	}
	if l.Max != nil {
		x.Max = *l.Max
	}
	if x.Min < 0 || x.Max > most || x.Min > x.Max {
		return wrong("prefixLength", fmt.Sprintf("%d to %d", x.Min, x.Max), "must be in 0 to %d, the least first", most)
	}
	if x.Max < least || x.Operator == "Equal" || x.Operator == "NotEqual" {
		x.More = append(x.More, "prefixLength") // of no network in the prefix, or beside an operator that has one length
	} else if x.Min < least {
		x.Min = 0 // that of the prefix, as in Calico
	}
	return nil
}
