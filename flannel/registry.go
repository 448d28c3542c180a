package flannel

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"time"
)

// A Registry is the [Store] of nodes that choose their subnets themselves, as flanneld does with etcd.
type Registry struct {
	KV KV // needed

	// Rand returns a number from 0 to n-1, the free subnet to take; nil = rand.IntN. By chance nodes that start together seldom
	// want the same.
	Rand func(n int) int
}

const (
	tries = 10  // to get a subnet, while others are faster
	offer = 100 // free subnets to choose from
)

// Network implements [Store].
func (s *Registry) Network(ctx context.Context) (*Network, error) {
	b, err := s.KV.Config(ctx)
	if err != nil {
		return nil, err
	}
	return ParseNetwork(b)
}

// Acquire implements [Store]. In this order, the node gets
//
//	a lease with its PublicIP, changed in place; first that of Previous, then by key
//	of each family, its part of Previous, or of a lease that does not suit the network, if no lease overlaps it
//	or else one of the first hundred free subnets, by chance
//
// Leases with its PublicIP that do not suit the network are removed, but reservations; so is one of two families if an older one
// overlaps it. The PublicIP is the IPv6 one only for a network without IPv4.
func (s *Registry) Acquire(ctx context.Context, n *Network, r Request) (own *Own, err error) {
	for range tries {
		if own, err = s.try(ctx, n, r); !errors.Is(err, ErrTaken) && !errors.Is(err, ErrLost) {
			return own, err
		}
	}
	return nil, fmt.Errorf("flannel: no lease after %d tries: %w", tries, err)
}

func (s *Registry) try(ctx context.Context, n *Network, r Request) (*Own, error) {
	records, err := s.KV.List(ctx)
	if err != nil {
		return nil, err
	}
	mine, taken := n.split(records, r)
	var former []Lease
	for _, m := range mine {
		former = append(former, m.Lease)
	}
	if r.Attrs, err = r.Complete(n, former...); err != nil {
		return nil, err
	}
	for _, m := range mine {
		// One that Create made, and whose answer was lost, checkAlone has not looked at.
		if n.Suits(m.Subnet) && (!m.Record.Expires || olderOverlap(records, m.Record, m.Subnet) == "") {
			begun := time.Now()
			m.Record, err = s.KV.Update(ctx, m.Record, r.Attrs.Value())
			return s.own(m.Subnet, r.Attrs, m.Record, begun, err)
		}
	}
	for _, m := range mine {
		if !m.Record.Expires {
			taken = append(taken, m.Subnet.prefixes()...)
		} else if err := s.KV.Delete(ctx, m.Record); err != nil {
			return nil, err
		}
	}
	for _, m := range mine {
		r.Previous.IPv4, r.Previous.IPv6 = cmp.Or(r.Previous.IPv4, m.Subnet.IPv4), cmp.Or(r.Previous.IPv6, m.Subnet.IPv6)
	}
	subnet, err := s.choose(n, r.Previous, taken)
	if err != nil {
		return nil, err
	}
	begun := time.Now()
	rec, err := s.KV.Create(ctx, subnet.Key(), r.Attrs.Value())
	if err == nil && subnet.IPv4.IsValid() && subnet.IPv6.IsValid() {
		err = s.checkAlone(ctx, subnet, rec)
	}
	return s.own(subnet, r.Attrs, rec, begun, err)
}

// own makes the lease of this node of what was written.
func (s *Registry) own(subnet Subnet, a Attrs, r Record, begun time.Time, err error) (*Own, error) {
	if err != nil {
		return nil, err
	}
	o := &Own{Lease: Lease{subnet, a}}
	s.hold(o, r, begun)
	return o, nil
}

// hold notes the record of a lease that was asked for at a time.
func (s *Registry) hold(own *Own, r Record, begun time.Time) {
	if own.Record = r; r.Expires {
		own.Until = begun.Add(s.KV.TTL())
	}
}

// checkAlone removes a lease that an older one overlaps, and then returns ErrTaken.
func (s *Registry) checkAlone(ctx context.Context, subnet Subnet, r Record) error {
	records, err := s.KV.List(ctx)
	if err != nil {
		return err
	}
	if key := olderOverlap(records, r, subnet); key != "" {
		if err := s.KV.Delete(ctx, r); err != nil {
			return err
		}
		return fmt.Errorf("flannel: %v: part of it is that of %s: %w", subnet, key, ErrTaken)
	}
	return nil
}

// olderOverlap returns the key of a lease that overlaps a subnet of two families and was there before, "" if there is none: two nodes
// may have chosen the same IPv6 subnet with different IPv4 subnets, which are different keys.
func olderOverlap(records []Record, r Record, subnet Subnet) string {
	if !subnet.IPv4.IsValid() || !subnet.IPv6.IsValid() {
		return ""
	}
	for _, x := range records {
		if x.Key != r.Key && x.Created < r.Created && overlaps(prefixesOf(x.Key), subnet) {
			return x.Key
		}
	}
	return ""
}

// split returns the leases with the PublicIP of a request, the previous one first, and the prefixes of all others.
func (n *Network) split(records []Record, r Request) (mine []*Own, taken []netip.Prefix) {
	f := ipv4
	if !n.IPv4.IsValid() {
		f = ipv6
	}
	ip := r.Attrs.end(f).PublicIP
	for _, rec := range records {
		a, err := parseAttrs(rec.Key, rec.Value)
		subnet, err2 := ParseKey(rec.Key)
		if err == nil && err2 == nil && a.end(f).PublicIP == ip {
			mine = append(mine, &Own{Lease: Lease{subnet, a}, Record: rec})
			continue
		}
		taken = append(taken, prefixesOf(rec.Key)...)
	}
	slices.SortFunc(mine, func(a, b *Own) int {
		if p := a.Subnet == r.Previous; p != (b.Subnet == r.Previous) {
			if p {
				return -1
			}
			return 1
		}
		return cmp.Compare(a.Record.Key, b.Record.Key)
	})
	return mine, taken
}

// prefixesOf returns what a key takes, even one that nobody should write.
func prefixesOf(key string) []netip.Prefix {
	s, err := readKey(key)
	if err != nil {
		return nil
	}
	return Subnet{s.IPv4.Masked(), s.IPv6.Masked()}.prefixes()
}

// overlaps reports whether a prefix of a subnet overlaps one of taken.
func overlaps(taken []netip.Prefix, s Subnet) bool {
	return slices.ContainsFunc(s.prefixes(), func(p netip.Prefix) bool { return slices.ContainsFunc(taken, p.Overlaps) })
}

// choose returns a free subnet: of each family the previous one, if it suits.
func (s *Registry) choose(n *Network, previous Subnet, taken []netip.Prefix) (Subnet, error) {
	pick := func(r *Range, p netip.Prefix) (netip.Prefix, bool) {
		if !r.IsValid() {
			return netip.Prefix{}, true
		}
		if p.IsValid() && r.Suits(p) && !slices.ContainsFunc(taken, p.Overlaps) {
			return p, true
		}
		var free []netip.Prefix
		for p := range r.Free(taken) {
			if free = append(free, p); len(free) == offer {
				break
			}
		}
		if len(free) == 0 {
			return netip.Prefix{}, false
		}
		f := s.Rand
		if f == nil {
			f = rand.IntN
		}
		return free[f(len(free))], true
	}
	four, ok4 := pick(&n.IPv4, previous.IPv4)
	six, ok6 := pick(&n.IPv6, previous.IPv6)
	if !ok4 || !ok6 {
		return Subnet{}, fmt.Errorf("flannel: network %v: %w", n, ErrFull)
	}
	return Subnet{four, six}, nil
}

// Renew implements [Store].
func (s *Registry) Renew(ctx context.Context, own *Own) error {
	begun := time.Now()
	r, err := s.KV.Update(ctx, own.Record, own.Value())
	if err == nil {
		s.hold(own, r, begun)
	}
	return err
}

// Release implements [Store].
func (s *Registry) Release(ctx context.Context, own *Own) error {
	if !own.Record.Expires {
		return nil
	}
	return s.KV.Delete(ctx, own.Record)
}

// Watch implements [Store].
func (s *Registry) Watch(ctx context.Context, f func(Change)) error { return s.KV.Watch(ctx, f) }
