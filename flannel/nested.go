package flannel

import (
	"net/netip"
	"slices"
)

// A length is that of prefixes, in bits, of addresses with so many bits.
type length struct{ prefix, addr int }

func lengthOf(p netip.Prefix) length { return length{p.Bits(), p.Addr().BitLen()} }

// around returns the lease in whose subnet a prefix of a younger one is: of several the oldest, nil if there is none. Where all
// subnets have one length, it has nothing to look up.
func (m *Mapper) around(l *mapped, p netip.Prefix) (by *mapped) {
	for n := range m.lengths {
		if n.addr != p.Addr().BitLen() || n.prefix >= p.Bits() {
			continue
		}
		outer := netip.PrefixFrom(p.Addr(), n.prefix).Masked()
		set := m.byFirst[outer.Addr()]
		if len(set) == 0 || !set[0].older(l) || by != nil && by.older(set[0]) {
			continue
		}
		if set[0].lease.Subnet.prefix(familyOf(p.Addr())).Bits() <= n.prefix {
			by = set[0]
		}
	}
	return by
}

// hasNested reports whether subnets may begin or cease to be inside of others when the lease with a prefix comes or goes.
func (m *Mapper) hasNested(l *mapped, p netip.Prefix) bool {
	if set := m.byFirst[p.Addr()]; l.created > m.newest || len(set) > 0 && set[0].older(l) {
		return false // nobody is younger, or another one decides
	}
	for n := range m.lengths {
		if n.addr == p.Addr().BitLen() && n.prefix != p.Bits() {
			return true
		}
	}
	return false
}

// refusedFor reports whether a lease is refused for a reason, in one family or both.
func (l *mapped) refusedFor(r Reason) bool {
	return slices.ContainsFunc(l.refused, func(x *Refusal) bool { return x.Reason == r })
}

// decideNested decides about the leases that are, or were, inside of others, once for all changes of a call.
func (m *Mapper) decideNested() {
	if !m.nested {
		return
	}
	m.nested = false
	for first, set := range m.byFirst {
		l := set[0] // others are refused for it
		if l.refusedFor(SameSubnet) || m.around(l, l.lease.Subnet.prefix(familyOf(first))) != nil {
			m.decide(l)
		}
	}
}
