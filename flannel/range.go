package flannel

import (
	"iter"
	"net/netip"
	"slices"

	"github.com/vxswitch/vxswitch/internal/hostaddr"
	"github.com/vxswitch/vxswitch/setting"
)

// A Range says which subnets of one family the nodes of a network get. The zero value is none.
//
//	Network   10.230.0.0/16
//	First     10.230.1.0/24      that of .0 is left out: its address would be that of the network
//	Last      10.230.255.0/24
type Range struct {
	Network     netip.Prefix
	First, Last netip.Prefix // of the same length
}

// IsValid reports whether there is a network of this family.
func (r *Range) IsValid() bool { return r.Network.IsValid() }

// Len is the prefix length of subnets in bits.
func (r *Range) Len() int { return r.First.Bits() }

// Suits reports whether a subnet is one of the range. No subnet suits no range.
func (r *Range) Suits(p netip.Prefix) bool {
	if !r.IsValid() || !p.IsValid() {
		return r.IsValid() == p.IsValid()
	}
	return p.Bits() == r.Len() && p == p.Masked() && p.Addr().Is4() == r.Network.Addr().Is4() &&
		r.First.Addr().Compare(p.Addr()) <= 0 && p.Addr().Compare(r.Last.Addr()) <= 0
}

// contains reports whether a subnet is a part of the network. No subnet is part of no network.
func (r *Range) contains(p netip.Prefix) bool {
	if !r.IsValid() || !p.IsValid() {
		return r.IsValid() == p.IsValid()
	}
	return p == p.Masked() && p.Bits() >= r.Network.Bits() && r.Network.Contains(p.Addr())
}

// Free iterates over the subnets that overlap none of taken, in order. Its time is that of sorting taken, however large the range.
func (r *Range) Free(taken []netip.Prefix) iter.Seq[netip.Prefix] {
	taken = slices.Clone(taken)
	slices.SortFunc(taken, func(a, b netip.Prefix) int { return a.Masked().Addr().Compare(b.Masked().Addr()) })
	return func(yield func(netip.Prefix) bool) {
		left := taken
		for p, ok := r.First, r.IsValid(); ok && p.Addr().Compare(r.Last.Addr()) <= 0; {
			for len(left) > 0 && last(left[0]).Compare(p.Addr()) < 0 {
				left = left[1:]
			}
			if i := slices.IndexFunc(left, func(t netip.Prefix) bool { return last(t).Compare(p.Addr()) >= 0 }); i >= 0 && left[i].Overlaps(p) {
				p, ok = next(netip.PrefixFrom(later(last(left[i]), last(p)), p.Bits()).Masked())
				continue
			}
			if !yield(p) {
				return
			}
			p, ok = next(p)
		}
	}
}

// next returns the prefix after p, and false if p is the last of its family.
func next(p netip.Prefix) (netip.Prefix, bool) {
	a := last(p).Next()
	if !a.IsValid() {
		return p, false
	}
	return netip.PrefixFrom(a, p.Bits()), true
}

func later(a, b netip.Addr) netip.Addr {
	if a.Compare(b) > 0 {
		return a
	}
	return b
}

// last returns the last address of a prefix.
func last(p netip.Prefix) netip.Addr {
	b := p.Addr().AsSlice()
	for i := p.Bits(); i < len(b)*8; i++ {
		b[i/8] |= 0x80 >> (i % 8)
	}
	a, _ := netip.AddrFromSlice(b)
	return a
}

// A family is IPv4 or IPv6, with flannel's names and limits.
type family struct {
	bits, least, usual         int // of an address; of the smallest subnet; of a subnet by default
	example                    string
	network, low, high, length string
}

var (
	ipv4 = family{32, 30, 24, "10.230.0.0/16", "Network", "SubnetMin", "SubnetMax", "SubnetLen"}
	ipv6 = family{128, 126, 64, "fd00:230::/48", "IPv6Network", "IPv6SubnetMin", "IPv6SubnetMax", "IPv6SubnetLen"}

	families = [...]family{ipv4, ipv6}
)

// familyOf returns the family of an address.
func familyOf(a netip.Addr) family {
	if a.Is4() {
		return ipv4
	}
	return ipv6
}

// isHost reports whether an address is that of one host, of the family.
func (f family) isHost(a netip.Addr) bool { return f.is(a) && hostaddr.Neighbour(a) == nil }

// name returns the name of the family, for errors.
func (f family) name() string {
	if f == ipv4 {
		return "IPv4"
	}
	return "IPv6"
}

// is reports whether an address is of the family.
func (f family) is(a netip.Addr) bool { return a.BitLen() == f.bits && !a.Is4In6() && a.Zone() == "" }

// parse reads the settings of a family.
func (f family) parse(w *setting.Check, network, low, high texts, length uint) (r Range) {
	p, lo, hi, ok := f.read(w, network, low, high)
	switch {
	case !ok:
		return r
	case !p.IsValid() || p.Bits() == 0:
		w.Want(f.network, network.String(), "a prefix such as %s", f.example)
		return r
	case p.Addr().IsMulticast() || p.Addr().IsLoopback() || p.Addr().IsUnspecified():
		w.Want(f.network, p, "a network of hosts")
		return r
	}
	n := int(min(length, 1000))
	switch {
	case n > f.least:
		w.Want(f.length, n, "at most %d: a node needs addresses for a tunnel and a bridge", f.least)
		return r
	case n != 0 && n < p.Bits()+2:
		w.Want(f.length, n, "%d or more: the network must have four subnets", p.Bits()+2)
		return r
	case n == 0 && p.Bits() > f.least-2:
		w.Want(f.network, p, "a prefix of at most %d bits", f.least-2)
		return r
	case n == 0:
		n = max(f.usual, p.Bits()+2)
	}
	r = Range{Network: p}
	zero := netip.PrefixFrom(p.Addr(), n)
	r.First, _ = next(zero)
	r.Last = netip.PrefixFrom(last(p), n).Masked()
	set := func(name string, a netip.Addr, to *netip.Prefix) {
		if !a.IsValid() || a.IsUnspecified() {
			return
		}
		x := netip.PrefixFrom(a, n)
		switch {
		case !p.Contains(a):
			w.Want(name, a, "an address of %v", p)
		case x != x.Masked():
			w.Want(name, a, "the first address of a subnet, such as %v", x.Masked().Addr())
		}
		*to = x
	}
	set(f.low, lo, &r.First)
	set(f.high, hi, &r.Last)
	if p.Contains(r.First.Addr()) && p.Contains(r.Last.Addr()) && r.First.Addr().Compare(r.Last.Addr()) > 0 {
		w.Want(f.low, r.First.Addr(), "at most %v, which is %s", r.Last.Addr(), f.high)
	}
	return r
}

// readable checks the settings of a family that is off.
func (f family) readable(w *setting.Check, network, low, high texts) { f.read(w, network, low, high) }

func (f family) read(w *setting.Check, network, low, high texts) (p netip.Prefix, lo, hi netip.Addr, ok bool) {
	ok = true
	for _, t := range network {
		var err error
		if p, err = netip.ParsePrefix(string(t)); err != nil || !f.is(p.Addr()) {
			w.Want(f.network, t, "an %s prefix such as %s", f.name(), f.example)
			ok = false
		}
		p = p.Masked()
	}
	addr := func(name string, list texts) (a netip.Addr) {
		for _, t := range list {
			var err error
			if a, err = netip.ParseAddr(string(t)); err != nil || !f.is(a) {
				w.Want(name, t, "an %s address", f.name())
				ok = false
			}
		}
		return a
	}
	return p, addr(f.low, low), addr(f.high, high), ok
}

// json returns the range as flannel has it.
func (r *Range) json() (network, low, high texts, length uint) {
	of := func(s string) texts { return texts{text(s)} }
	return of(r.Network.String()), of(r.First.Addr().String()), of(r.Last.Addr().String()), uint(r.Len())
}
