package policy

import (
	"iter"
	"strconv"
)

// A Tier is a group of rules. The first one that matches decides; one with Pass leaves the decision to the next tier, or
// behind the last to the rules of the policy.
type Tier struct {
	Name      string    `json:"name"`               // needed: names the counter of its default, and those of its rules without a name: NAME#0, NAME#1, ...
	Direction Direction `json:"direction,omitzero"` // which frames it applies to, seen from the switch
	Rules     []Rule    `json:"rules,omitempty"`    // in order
	Default   *Action   `json:"default,omitempty"`  // what happens to frames that none of its rules decides on, other than ARP and ND: allow, deny or pass; default pass
}

// AllRules returns the rules of the tiers, and Rules behind them.
func (c *Config) AllRules() iter.Seq[*Rule] {
	return func(yield func(*Rule) bool) {
		for t := range c.Tiers {
			for i := range c.Tiers[t].Rules {
				if !yield(&c.Tiers[t].Rules[i]) {
					return
				}
			}
		}
		for i := range c.Rules {
			if !yield(&c.Rules[i]) {
				return
			}
		}
	}
}

// A line is a rule as it is compiled: in one list of all, with a name. Its ports are in a list or in a set, not in either.
type line struct {
	Rule
	after uint16 // the line that goes on behind Log or Pass, 0 for those that decide
}

// lines returns what a valid Config compiles to.
func (c *Config) lines() []line {
	list := make([]line, 0, c.count())
	for i := range c.Tiers {
		t, first := &c.Tiers[i], len(list)
		for i := range t.Rules {
			list = appendRule(list, t.Rules[i], t.Name+nameOfRule(&Rule{}, i), t.Direction)
		}
		if t.Default != nil && *t.Default != Pass {
			list = appendRule(list, Rule{Action: *t.Default}, t.Name, t.Direction)
		}
		passOn(list[first:], len(list))
	}
	first := len(list)
	for i := range c.Rules {
		list = appendRule(list, c.Rules[i], nameOfRule(&Rule{}, i), Both)
	}
	passOn(list[first:], len(list))
	return list
}

// count returns the number of lines.
func (c *Config) count() (n int) {
	for r := range c.AllRules() {
		n += variants(r)
	}
	for i := range c.Tiers {
		if c.Tiers[i].Default != nil {
			n++
		}
	}
	return n
}

// variants returns how many lines a rule has: its ports are in a list or in a set, at either end.
func variants(r *Rule) int {
	n := 1
	if len(r.SrcPorts) != 0 && len(r.SrcPortSets) != 0 {
		n *= 2
	}
	if len(r.DstPorts) != 0 && len(r.DstPortSets) != 0 {
		n *= 2
	}
	return n
}

func appendRule(list []line, r Rule, name string, of Direction) []line {
	if r.Name == "" {
		r.Name = name
	}
	switch {
	case r.Direction == Both:
		r.Direction = of
	case of != Both && of != r.Direction:
		return list
	}
	first, n := len(list), variants(&r)
	for v := range n {
		x := line{Rule: r}
		bySet := v
		if len(r.SrcPorts) != 0 && len(r.SrcPortSets) != 0 {
			if bySet&1 == 0 {
				x.SrcPortSets = nil
			} else {
				x.SrcPorts = nil
			}
			bySet >>= 1
		}
		if len(r.DstPorts) != 0 && len(r.DstPortSets) != 0 {
			if bySet == 0 {
				x.DstPortSets = nil
			} else {
				x.DstPorts = nil
			}
		}
		list = append(list, x)
	}
	if r.Action == Log {
		for i := first; i < len(list); i++ {
			list[i].after = uint16(len(list))
		}
	}
	return list
}

// passOn notes where the lines of a tier with Pass lead to.
func passOn(list []line, end int) {
	for i := range list {
		if list[i].Action == Pass {
			list[i].after = uint16(end)
		}
	}
}

// nameOfRule returns the name of a rule's counter.
func nameOfRule(r *Rule, i int) string {
	if r.Name != "" {
		return r.Name
	}
	return "#" + strconv.Itoa(i)
}
