// Package hostaddr checks whether an address can be that of one host, by the same rules for all settings.
package hostaddr

import (
	"errors"
	"fmt"
	"iter"
	"net/netip"
	"slices"
)

// Errors follow the address and a colon.
var (
	errNone      = errors.New("must be the address of one host")
	errThis      = errors.New("is in 0.0.0.0/8; must be the address of one host")
	errUnknown   = errors.New("is the unspecified address; must be the address of one host")
	errGroup     = errors.New("is a multicast group; must be the address of one host")
	errLimited   = errors.New("is the broadcast address; must be the address of one host")
	errNetwork   = errors.New("is the address of its network; must be the address of one host")
	errNotOnLink = errors.New("is not valid on a network; must be the address of one host")
	errBroadcast = errors.New("is the broadcast address of its network; must be the address of one host")
)

// Check returns why a cannot be the address of one host, or nil (RFC 1122, section 3.2.1.3; RFC 4291, sections 2.5.2 and
// 2.7). It accepts loopback addresses. IPv4-mapped addresses count as IPv4.
func Check(a netip.Addr) error {
	if ordinary(a) {
		return nil
	}
	a = a.Unmap()
	switch {
	case !a.IsValid():
		return errNone
	case a.IsUnspecified():
		return errUnknown
	case a.IsMulticast():
		return errGroup
	case !a.Is4():
		return nil
	}
	switch b := a.As4(); {
	case b[0] == 0:
		return errThis
	case b == [4]byte{255, 255, 255, 255}:
		return errLimited
	}
	return nil
}

// Neighbour is Check for the addresses in ARP and ND: not loopback, without a zone, and not IPv4-mapped.
func Neighbour(a netip.Addr) error {
	if ordinary(a) {
		return nil
	}
	if err := Check(a); err != nil {
		return err
	}
	if a.IsLoopback() || a.Zone() != "" || a.Is4In6() {
		return errNotOnLink
	}
	return nil
}

var (
	errListen = errors.New("must be an address of the host, or 0.0.0.0 or :: for all")
	errTwice  = errors.New("it is in the list twice")
	errAll    = errors.New("0.0.0.0 or :: in the list has all addresses of its family; must be alone then")
)

var errSecond = errors.New("there is another address of the family; must be at most one")

// Families yields what is wrong with a list that has at most one address of each family, by its place there: those that are no Neighbour, and
// the second of a family.
func Families(list []netip.Addr) iter.Seq2[int, error] {
	return func(yield func(int, error) bool) {
		seen := map[bool]bool{}
		for i, a := range list {
			err := Neighbour(a)
			if err == nil && seen[a.Is4()] {
				err = errSecond
			}
			if seen[a.Is4()] = seen[a.Is4()] || err == nil; err != nil && !yield(i, err) {
				return
			}
		}
	}
}

// ordinary is a quick check that accepts nearly every host's address. (As16 is slow, because it stores two halves that
// are then read in one.)
func ordinary(a netip.Addr) bool {
	if a.Is4() {
		return Is4(a.As4())
	}
	return a.IsValid() && !a.Is4In6() && a.Zone() == "" && !a.IsUnspecified() && !a.IsLoopback() && !a.IsMulticast()
}

// Is4 reports whether the address in a packet can be that of a host on a network: not this network, loopback, multicast,
// reserved or broadcast (RFC 1122, section 3.2.1.3).
func Is4(a [4]byte) bool { return a[0] != 0 && a[0] != 127 && a[0] < 224 }

// Is6 is Is4 for IPv6: not unspecified, loopback or multicast (RFC 4291, section 2).
func Is6(a [16]byte) bool {
	last := a[15]
	a[15] = 0
	return a[0] != 0xff && (a != [16]byte{} || last > 1)
}

// In is Check for a host in the network p. There the first address is the network's (RFC 1122, section 3.2.1.3; over
// IPv6 the anycast address of its routers, RFC 4291, section 2.6.1), and the last IPv4 address is the broadcast address.
// A network of two addresses has two hosts (RFC 3021, RFC 6164).
func In(p netip.Prefix, a netip.Addr) error {
	a = a.Unmap()
	if err := Check(a); err != nil || !p.IsValid() || p.Bits() >= p.Addr().BitLen()-1 || !p.Contains(a.WithZone("")) {
		return err
	}
	switch {
	case a.WithZone("") == p.Masked().Addr():
		return errNetwork
	case a.Is4() && !p.Contains(a.Next()):
		return errBroadcast
	}
	return nil
}

// never are the networks that are not routed: of loopback addresses and multicast groups.
var never = []netip.Prefix{
	netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("224.0.0.0/4"), netip.MustParsePrefix("::1/128"), netip.MustParsePrefix("ff00::/8"),
}

// Routed returns why no packet is routed to any address of the network p, or nil. Like [Check], its error follows the
// prefix and a colon.
func Routed(p netip.Prefix) error {
	for _, n := range never {
		if n.Contains(p.Addr()) && n.Bits() <= p.Bits() {
			return fmt.Errorf("is in %v, which is not routed; must be a network of hosts", n)
		}
	}
	return nil
}

// Broadcast returns the broadcast address of an IPv4 network, if it has one.
func Broadcast(p netip.Prefix) (netip.Addr, bool) {
	if !p.Addr().Is4() || p.Bits() >= 31 {
		return netip.Addr{}, false
	}
	last := p.Masked().Addr().As4()
	for i := p.Bits(); i < 32; i++ {
		last[i/8] |= 0x80 >> (i % 8)
	}
	return netip.AddrFrom4(last), true
}

// Listeners yields what is wrong with a list of addresses to listen on, with one port, by its place there.
func Listeners(list []netip.Addr) iter.Seq2[int, error] {
	return func(yield func(int, error) bool) {
		for i, a := range list {
			err := error(nil)
			switch {
			case !a.IsValid() || a.IsMulticast():
				err = errListen
			case slices.Contains(list[:i], a):
				err = errTwice
			case !a.IsUnspecified() && slices.ContainsFunc(list, func(b netip.Addr) bool { return b.IsUnspecified() && b.Is4() == a.Is4() }):
				err = errAll
			}
			if err != nil && !yield(i, err) {
				return
			}
		}
	}
}
