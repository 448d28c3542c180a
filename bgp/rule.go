package bgp

import (
	"fmt"
	"net/netip"

	"github.com/vxswitch/vxswitch/setting"
)

// An Action is what a Rule does with the routes that it matches.
type Action uint8

// Actions of a Rule.
const (
	Accept Action = iota
	Reject
)

var actions = []string{Accept: "accept", Reject: "reject"}

// String returns the word for a.
func (a Action) String() string { return setting.Name(actions, a) }

// MarshalText implements [encoding.TextMarshaler].
func (a Action) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (a *Action) UnmarshalText(text []byte) error { return setting.Parse(a, actions, text) }

// A Rule matches routes by their prefix. Of a list of rules, the first that matches counts.
type Rule struct {
	Prefix netip.Prefix `json:"prefix"`          // that has all addresses of the route; needed
	Min    int          `json:"min,omitzero"`    // least length of the route's prefix; default that of prefix
	Max    int          `json:"max,omitzero"`    // greatest length; default 32 or 128
	Action Action       `json:"action,omitzero"` // "accept" or "reject"; default "accept"
}

// matches reports whether a rule is about a prefix.
func (r *Rule) matches(p netip.Prefix) bool {
	return within(p, r.Prefix) && p.Bits() >= r.Min && (r.Max == 0 || p.Bits() <= r.Max)
}

// match returns what the first rule that is about a prefix does; ok is false if none is.
func match(rules []Rule, p netip.Prefix) (a Action, ok bool) {
	for i := range rules {
		if rules[i].matches(p) {
			return rules[i].Action, true
		}
	}
	return 0, false
}

func checkRules(w *setting.Check, field string, rules []Rule) {
	for i, r := range rules {
		at := fmt.Sprintf("%s[%d]", field, i)
		if !checkPrefix(w, at+".Prefix", r.Prefix) {
			continue
		}
		checkLengths(w, at+".", r.Prefix, r.Min, r.Max)
		if r.Action > Reject {
			w.Want(at+".Action", r.Action, `"accept" or "reject"`)
		}
	}
}

// checkLengths adds the errors of the least and greatest length of prefixes in p, of which 0 are not set.
func checkLengths(w *setting.Check, at string, p netip.Prefix, low, high int) {
	least, most := p.Bits(), p.Addr().BitLen()
	if low != 0 && (low < least || low > most) {
		w.Want(at+"Min", low, "%d to %d", least, most)
	}
	if high != 0 && (high < max(least, low) || high > most) {
		w.Want(at+"Max", high, "%d to %d", max(least, low), most)
	}
}

// checkPrefix adds an error and returns false if p is not the prefix of a network.
func checkPrefix(w *setting.Check, at string, p netip.Prefix) bool {
	switch {
	case !p.IsValid():
		w.Wrong(at, nil, "a prefix such as 10.65.0.0/16 is required")
	case p.Addr().Is4In6():
		w.Want(at, p, "an IPv4 or IPv6 prefix, not an IPv4-mapped one")
	case p != p.Masked():
		w.Want(at, p, "without host bits, as in %v", p.Masked())
	default:
		return true
	}
	return false
}
