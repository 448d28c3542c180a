package bgp

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/vxswitch/vxswitch/setting"
)

func (c *Config) checkFilters(w *setting.Check) {
	seen := map[string]int{}
	for i := range c.Filters {
		f := &c.Filters[i]
		at := fmt.Sprintf("Filters[%d].", i)
		if f.Name == "" {
			w.Want(at+"Name", f.Name, "a name")
		} else if first, ok := seen[f.Name]; ok {
			w.Wrong(at+"Name", f.Name, "filters[%d] has it already", first)
		}
		seen[f.Name] = i
		for _, l := range f.lists() {
			for i := range l.rules {
				l.rules[i].check(w, fmt.Sprintf("%s%s[%d].", at, l.name, i), l.v6)
			}
		}
	}
}

type filterList struct {
	name   string
	v6     bool
	export bool
	rules  []FilterRule
}

func (f *Filter) lists() []filterList {
	return []filterList{{"ImportV4", false, false, f.ImportV4}, {"ExportV4", false, true, f.ExportV4}, {"ImportV6", true, false, f.ImportV6}, {"ExportV6", true, true, f.ExportV6}}
}

// check adds the errors of a rule.
func (r *FilterRule) check(w *setting.Check, at string, v6 bool) {
	r.checkPrefix(w, at, v6)
	if r.Source > RemotePeers {
		w.Want(at+"Source", r.Source, `"any" or "remote-peers"`)
	}
	if r.PeerType > Internal {
		w.Want(at+"PeerType", r.PeerType, `"any", "ebgp" or "ibgp"`)
	}
	if r.Community != "" && !isCommunity(r.Community) {
		w.Want(at+"Community", r.Community, `as "65000:100" or "65000:100:1"`)
	}
	checkPath(w, at+"ASPathPrefix", r.ASPathPrefix)
	if r.Priority >= priorities {
		w.Want(at+"Priority", r.Priority, "1 to %d", priorities-1)
	}
	if r.Interface != "" {
		w.Wrong(at+"Interface", r.Interface, "cannot be had: routes have segments here, and no interfaces")
	}
	if r.Action > Reject {
		w.Want(at+"Action", r.Action, `"accept" or "reject"`)
	}
	r.checkOperations(w, at)
}

func (r *FilterRule) checkPrefix(w *setting.Check, at string, v6 bool) {
	family := map[bool]string{false: "IPv4", true: "IPv6"}[v6]
	switch {
	case r.Operator > NotEqual:
		w.Want(at+"Operator", r.Operator, `"in", "not-in", "equal" or "not-equal"`)
	case !r.Prefix.IsValid():
		if r.Operator != In || r.Min != 0 || r.Max != 0 {
			w.Wrong(at+"Prefix", nil, "required with an operator, min and max")
		}
	case !checkPrefix(w, at+"Prefix", r.Prefix):
	case r.Prefix.Addr().Is6() != v6:
		w.Want(at+"Prefix", r.Prefix, "an %s prefix", family)
	case r.Operator == Equal || r.Operator == NotEqual:
		if r.Min != 0 || r.Max != 0 {
			w.Wrong(at+"Operator", r.Operator, `min and max are for "in" and "not-in"`)
		}
	default:
		checkLengths(w, at, r.Prefix, r.Min, r.Max)
	}
}

func (r *FilterRule) checkOperations(w *setting.Check, at string) {
	if len(r.Operations) > 0 && r.Action == Reject {
		w.Wrong(at+"Operations", nil, "a route that is rejected is not changed")
	}
	if len(r.Operations) > 10 {
		w.Want(at+"Operations", len(r.Operations), "at most 10")
	}
	var all []uint32
	for i, o := range r.Operations {
		at := fmt.Sprintf("%sOperations[%d]", at, i)
		n := 0
		for _, set := range []bool{o.AddCommunity != "", len(o.PrependASPath) > 0, o.SetPriority != 0} {
			if set {
				n++
			}
		}
		if n != 1 {
			w.Wrong(at, nil, "one of addCommunity, prependASPath and setPriority is required")
			continue
		}
		if o.AddCommunity != "" && !isCommunity(o.AddCommunity) {
			w.Want(at+".AddCommunity", o.AddCommunity, `as "65000:100" or "65000:100:1"`)
		}
		checkPath(w, at+".PrependASPath", o.PrependASPath)
		if o.SetPriority >= priorities {
			w.Want(at+".SetPriority", o.SetPriority, "1 to %d", priorities-1)
		}
		all = append(all, o.PrependASPath...)
		if len(r.ASPathPrefix) > 0 && len(slices.Compact(slices.Clone(all))) > 1 {
			w.Wrong(at+".PrependASPath", all, "cannot be had with asPathPrefix unless all numbers are the same")
		}
	}
}

func checkPath(w *setting.Check, at string, path []uint32) {
	if len(path) > 10 {
		w.Want(at, len(path), "at most 10 numbers")
	}
	if slices.Contains(path, 0) {
		w.Want(at, path, "numbers from 1 to 4294967295")
	}
}

// isCommunity reports whether text is a community of two numbers of 16 bits (RFC 1997), or a large one of three of 32 bits (RFC 8092).
func isCommunity(text string) bool {
	parts := strings.Split(text, ":")
	bits := map[int]int{2: 16, 3: 32}[len(parts)]
	if bits == 0 {
		return false
	}
	for _, p := range parts {
		if n, err := strconv.ParseUint(p, 10, bits); err != nil || strconv.FormatUint(n, 10) != p {
			return false
		}
	}
	return true
}

// checkFiltered adds the errors of the filters of a peer: that there are such, and that the engine can do for it what they say.
func (c *Config) checkFiltered(w *setting.Check, at string, p *Peer) {
	external := p.AS != c.AS
	for i, name := range p.Filters {
		at := fmt.Sprintf("%s.Filters[%d]", at, i)
		f := c.filter(name)
		switch {
		case f == nil:
			w.Wrong(at, name, "there is no such filter")
			continue
		case slices.Contains(p.Filters[:i], name):
			w.Wrong(at, name, "the peer has it already")
		}
		for _, l := range f.lists() {
			for k := range l.rules {
				if r := &l.rules[k]; r.PeerType.is(external) {
					r.checkFor(w, at, fmt.Sprintf("%s[%d] of %s", strings.ToLower(l.name[:1])+l.name[1:], k, name), l.export, external, c.AS, p)
				}
			}
		}
	}
}

// checkFor adds what of a rule cannot be had for a peer.
func (r *FilterRule) checkFor(w *setting.Check, at, rule string, export, external bool, as uint32, p *Peer) {
	if external && !export && r.Priority != 0 {
		w.Wrong(at, rule, "priority cannot be had in imports of another AS, whose routes have none")
	}
	for _, o := range r.Operations {
		if other := slices.ContainsFunc(o.PrependASPath, func(n uint32) bool { return n != as }); external && export && other {
			w.Wrong(at, rule, "prependASPath cannot be had in exports to another AS with numbers other than ours, %d, which comes first", as)
		}
	}
	if export && p.AllPaths && (r.Community != "" || len(r.ASPathPrefix) > 0 || r.Priority != 0) {
		w.Wrong(at, rule, "community, asPathPrefix and priority cannot be had in exports with allPaths: a route that changes would not be withdrawn")
	}
}
