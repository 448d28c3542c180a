package flannel

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// A Subnet is what a node has a lease of: an IPv4 prefix, an IPv6 prefix or both. The zero value is none.
type Subnet struct {
	IPv4, IPv6 netip.Prefix // invalid = none
}

// IsValid reports whether there is a prefix.
func (s Subnet) IsValid() bool { return s.IPv4.IsValid() || s.IPv6.IsValid() }

// prefix returns the prefix of a family.
func (s Subnet) prefix(f family) netip.Prefix {
	if f == ipv4 {
		return s.IPv4
	}
	return s.IPv6
}

// prefixes returns the prefixes that there are.
func (s Subnet) prefixes() (list []netip.Prefix) {
	for _, p := range []netip.Prefix{s.IPv4, s.IPv6} {
		if p.IsValid() {
			list = append(list, p)
		}
	}
	return list
}

// String returns the prefixes, as in "10.230.33.0/24, fd00:230:33::/64".
func (s Subnet) String() string {
	if !s.IsValid() {
		return "none"
	}
	var list []string
	for _, p := range s.prefixes() {
		list = append(list, p.String())
	}
	return strings.Join(list, ", ")
}

// none4 is what flannel writes in place of an IPv4 prefix if there is none.
const none4 = "0.0.0.0-0"

// Key returns the last part of a lease's key in the store. A subnet without IPv4 has 0.0.0.0-0 in its place.
//
//	10.230.33.0-24
//	10.230.33.0-24&fd00:230:33::-64
func (s Subnet) Key() string {
	part := func(p netip.Prefix) string { return p.Addr().String() + "-" + strconv.Itoa(p.Bits()) }
	key := none4
	if s.IPv4.IsValid() {
		key = part(s.IPv4)
	}
	if s.IPv6.IsValid() {
		key += "&" + part(s.IPv6)
	}
	return key
}

const (
	maxKey  = 80  // longer than the longest key
	maxName = 253 // of a node of Kubernetes
)

// ParseKey reads what [Subnet.Key] writes, and nothing else: each subnet has one key. The error is a [*Refusal], with
// [HostBits] if the address is not the first of the subnet, or else [BadKey].
func ParseKey(key string) (Subnet, error) {
	s, err := readKey(key)
	if err != nil {
		return Subnet{}, refusal(key, BadKey, "%v", err)
	}
	for _, p := range s.prefixes() {
		if m := p.Masked(); m != p {
			return Subnet{}, refusal(key, HostBits, "%v: must be %v", p, m)
		}
	}
	return s, nil
}

// readKey is ParseKey for keys with host bits, too.
func readKey(key string) (s Subnet, err error) {
	if len(key) > maxKey {
		return s, fmt.Errorf("%d bytes: must be at most %d", len(key), maxKey)
	}
	four, six, dual := strings.Cut(key, "&")
	if four != none4 || !dual {
		if s.IPv4, err = ipv4.parseKey(four); err != nil {
			return s, fmt.Errorf("%q: %v", four, err)
		}
	}
	if dual {
		if s.IPv6, err = ipv6.parseKey(six); err != nil {
			return s, fmt.Errorf("%q: %v", six, err)
		}
	}
	return s, nil
}

// parseKey reads ADDRESS-LENGTH.
func (f family) parseKey(s string) (p netip.Prefix, err error) {
	addr, bits, ok := strings.Cut(s, "-")
	a, err := netip.ParseAddr(addr)
	n, err2 := strconv.Atoi(bits)
	switch {
	case !ok || err != nil || err2 != nil:
		return p, fmt.Errorf("must be ADDRESS-LENGTH")
	case !f.is(a):
		return p, fmt.Errorf("must be an %s address", f.name())
	case n < 1 || n > f.least:
		return p, fmt.Errorf("the length must be 1 to %d", f.least)
	case addr != a.String() || bits != strconv.Itoa(n):
		return p, fmt.Errorf("must be written %v-%d", a, n)
	}
	return netip.PrefixFrom(a, n), nil
}

// clip returns at most n bytes of s.
func clip(s string, n int) string {
	if len(s) > n {
		return s[:n]
	}
	return s
}
