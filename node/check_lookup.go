package node

import (
	"net/netip"
	"slices"
)

// lookup is what many parts of a configuration ask of one segment, found without a walk through it.
type lookup struct {
	members, tunnels map[string]bool
	bare             bool
	nets             map[netip.Prefix]bool // of the gateway's addresses
	bits             []int                 // their lengths
}

// of returns the look-ups of a segment.
func (k *checker) of(g *Segment) *lookup {
	if l := k.lookups[g]; l != nil {
		return l
	}
	l := &lookup{members: map[string]bool{}, tunnels: map[string]bool{}, bare: g.bare(k.wanted), nets: map[netip.Prefix]bool{}}
	for _, m := range g.Members {
		l.members[m.Port] = true
	}
	for _, x := range g.in() {
		l.tunnels[x.Tunnel] = true
	}
	if g.Gateway != nil {
		for _, p := range g.Gateway.Addresses {
			l.nets[p.Masked()] = true
			if !slices.Contains(l.bits, p.Bits()) {
				l.bits = append(l.bits, p.Bits())
			}
		}
	}
	k.lookups[g] = l
	return l
}

// around returns the networks of a segment's gateway that an address is in; if it is in none, any one,
// for what is said of an address in whatever network.
func (k *checker) around(g *Segment, ip netip.Addr) (list []netip.Prefix) {
	if g.Gateway == nil {
		return nil
	}
	l := k.of(g)
	for _, bits := range l.bits {
		if p, err := ip.Unmap().Prefix(bits); err == nil && l.nets[p] {
			list = append(list, p)
		}
	}
	if len(list) == 0 {
		list = g.Gateway.Addresses[:min(1, len(g.Gateway.Addresses))]
	}
	return list
}
