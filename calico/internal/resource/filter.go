package resource

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/vxswitch/vxswitch/bgp"
)

// A Filter is a BGPFilter, as package bgp has it, without its name.
type Filter struct {
	bgp.Filter
	NotCarried string // fields of a rule that say more than package bgp does, "" for none
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
		to    *[]bgp.FilterRule
	}{
		{"spec.importV4", r.Spec.ImportV4, false, &f.ImportV4}, {"spec.importV6", r.Spec.ImportV6, true, &f.ImportV6},
		{"spec.exportV4", r.Spec.ExportV4, false, &f.ExportV4}, {"spec.exportV6", r.Spec.ExportV6, true, &f.ExportV6},
	} {
		for i := range part.rules {
			x, more, err := part.rules[i].read(part.ipv6)
			if err != nil {
				return nil, fmt.Errorf("%s[%d].%w", part.field, i, err)
			}
			f.NotCarried = cmp.Or(f.NotCarried, strings.Join(more, " and "))
			*part.to = append(*part.to, x)
		}
	}
	return f, nil
}

// read returns fields that say more than package bgp does as more.
func (r *rawRule) read(ipv6 bool) (x bgp.FilterRule, more []string, err error) {
	if err := cmp.Or(one("action", r.Action, "Accept", "Reject"), oneOrNone("source", r.Source, "RemotePeers"), oneOrNone("peerType", r.PeerType, "eBGP", "iBGP")); err != nil {
		return x, nil, err
	}
	x = bgp.FilterRule{
		Source: map[string]bgp.Source{"RemotePeers": bgp.RemotePeers}[r.Source], PeerType: map[string]bgp.PeerType{"eBGP": bgp.External, "iBGP": bgp.Internal}[r.PeerType],
		Action: map[string]bgp.Action{"Reject": bgp.Reject}[r.Action], ASPathPrefix: numbers(r.ASPathPrefix),
	}
	if (r.CIDR == "") != (r.MatchOperator == "") {
		return x, nil, wrong("matchOperator", r.MatchOperator, "must be there with cidr, and only then")
	}
	if r.Interface != "" {
		more = append(more, "interface")
	}
	if r.CIDR != "" {
		all, err := r.prefix(ipv6, &x)
		if err != nil {
			return x, nil, err
		}
		if !all {
			more = append(more, "prefixLength")
		}
	} else if r.PrefixLength != nil {
		return x, nil, wrong("prefixLength", "", "must be there only with cidr")
	}
	if r.Communities != nil {
		if len(r.Communities.Values) != 1 {
			return x, nil, wrong("communities.values", "", "must have one value, not %d", len(r.Communities.Values))
		}
		x.Community = r.Communities.Values[0]
	}
	if r.Priority != nil {
		if x.Priority, err = priority("priority", *r.Priority); err != nil {
			return x, nil, err
		}
	}
	for i := range r.Operations {
		o, err := r.Operations[i].read()
		if err != nil {
			return x, nil, fmt.Errorf("operations[%d].%w", i, err)
		}
		x.Operations = append(x.Operations, o)
	}
	return x, more, nil
}

func (r *rawOperation) read() (o bgp.Operation, err error) {
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

// prefix reads what the prefix of a route is compared with, and reports whether that is all that a rule says of it.
func (r *rawRule) prefix(ipv6 bool, x *bgp.FilterRule) (all bool, err error) {
	if err := one("matchOperator", r.MatchOperator, "Equal", "NotEqual", "In", "NotIn"); err != nil {
		return false, err
	}
	x.Operator = map[string]bgp.Operator{"In": bgp.In, "NotIn": bgp.NotIn, "Equal": bgp.Equal, "NotEqual": bgp.NotEqual}[r.MatchOperator]
	if x.Prefix, err = prefix("cidr", r.CIDR); err != nil {
		return false, err
	}
	if x.Prefix.Addr().Is4() == ipv6 {
		return false, wrong("cidr", r.CIDR, "must be an %s prefix", familyName(!ipv6))
	}
	l := r.PrefixLength
	if l == nil {
		return true, nil
	}
	least, most := x.Prefix.Bits(), x.Prefix.Addr().BitLen()
	x.Max = most
	if l.Min != nil {
		x.Min = *l.Min
	}
	if l.Max != nil {
		x.Max = *l.Max
	}
	switch {
	case x.Min < 0 || x.Max > most || x.Min > x.Max:
		return false, wrong("prefixLength", fmt.Sprintf("%d to %d", x.Min, x.Max), "must be in 0 to %d, the least first", most)
	case x.Max < least || x.Operator == bgp.Equal || x.Operator == bgp.NotEqual: // of no network in the prefix, or beside an operator that has one length
		return false, nil
	case x.Min < least:
		x.Min = 0 // that of the prefix, as in Calico
	}
	return true, nil
}
