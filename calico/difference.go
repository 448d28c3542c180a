package calico

import (
	"cmp"
	"maps"
	"net/netip"
	"reflect"

	"github.com/vxswitch/vxswitch/policy"
)

// differences are those of pairs of configs, which many ports have in common.
type differences map[[2]*policy.Config]*difference

// A difference is what changes one config into another.
type difference struct {
	members *policy.SetChanges // nil if other things than members of sets change
	config  *policy.Config     // for an Update: nil takes the place of sets that stay
}

// of returns the difference of two configs. Nothing is known of the first one if it is nil.
func (d differences) of(a, b *policy.Config) *difference {
	if a == nil {
		return &difference{config: b}
	}
	pair := [2]*policy.Config{a, b}
	c, ok := d[pair]
	if !ok {
		c = &difference{members: changes(a, b), config: changed(a, b)}
		d[pair] = c
	}
	return c
}

// changed returns b without the sets that it has in common with a.
func changed(a, b *policy.Config) *policy.Config {
	c := *b
	c.Sets, c.PortSets = others(a.Sets, b.Sets), others(a.PortSets, b.PortSets)
	return &c
}

func others[T any](a, b map[string][]T) map[string][]T {
	c := maps.Clone(b)
	for name, list := range a {
		if is, ok := b[name]; ok && same(list, is) {
			c[name] = nil
		}
	}
	return c
}

// changes returns what changes a into b, nil if that is not only members of sets.
func changes(a, b *policy.Config) *policy.SetChanges {
	if a.Default != b.Default || !reflect.DeepEqual(a.Rules, b.Rules) || !sameNames(a.Sets, b.Sets) || !sameNames(a.PortSets, b.PortSets) || !same(a.Tiers, b.Tiers) && !reflect.DeepEqual(a.Tiers, b.Tiers) {
		return nil
	}
	c := &policy.SetChanges{
		Add: map[string][]netip.Prefix{}, Delete: map[string][]netip.Prefix{}, AddPorts: map[string][]policy.Endpoint{}, DeletePorts: map[string][]policy.Endpoint{},
	}
	compare(a.Sets, b.Sets, c.Add, c.Delete, netip.Prefix.Compare)
	compare(a.PortSets, b.PortSets, c.AddPorts, c.DeletePorts, func(x, y policy.Endpoint) int {
		return cmp.Or(x.Addr.Compare(y.Addr), cmp.Compare(x.Protocol, y.Protocol), cmp.Compare(x.Port, y.Port))
	})
	return c
}

func sameNames[T any](a, b map[string][]T) bool {
	for name := range a {
		if _, ok := b[name]; !ok {
			return false
		}
	}
	return len(a) == len(b)
}

// same reports whether two lists are one.
func same[T any](a, b []T) bool { return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0]) }

// compare notes what sets get and lose. Their members are in order.
func compare[T any](a, b, add, del map[string][]T, order func(x, y T) int) {
	for name, was := range a {
		is := b[name]
		if same(was, is) {
			continue
		}
		for len(was) > 0 || len(is) > 0 {
			switch {
			case len(was) == 0 || len(is) > 0 && order(is[0], was[0]) < 0:
				add[name] = append(add[name], is[0])
				is = is[1:]
			case len(is) == 0 || order(is[0], was[0]) > 0:
				del[name] = append(del[name], was[0])
				was = was[1:]
			default:
				was, is = was[1:], is[1:]
			}
		}
	}
}
