package datagrams

import (
	"fmt"
	"net/netip"

	"github.com/vxswitch/vxswitch/internal/hostaddr"
)

// Errors here begin with the name of the calling package.

// Local checks an address to listen on, that of one host or the wildcard, and returns it unmapped.
func Local(pkg string, local netip.AddrPort) (netip.AddrPort, error) {
	a := local.Addr().Unmap()
	if err := hostaddr.Check(a); err != nil && !a.IsUnspecified() {
		return netip.AddrPort{}, fmt.Errorf("%s: local address %v: %w", pkg, a, err)
	}
	return netip.AddrPortFrom(a, local.Port()), nil
}

// Group checks the address of a multicast group, for an underlay of IPv4 or IPv6.
func Group(pkg string, group netip.Addr, is4 bool) ([16]byte, error) {
	a := group.Unmap()
	switch {
	case !a.IsMulticast():
		return [16]byte{}, fmt.Errorf("%s: %v: must be a multicast group", pkg, group)
	case a.Zone() != "":
		return [16]byte{}, fmt.Errorf("%s: multicast group %v: must have no zone; the underlay selects the interface", pkg, group)
	case a.Is4() != is4:
		return [16]byte{}, fmt.Errorf("%s: multicast group %v: is of another address family than the underlay", pkg, group)
	}
	return a.As16(), nil
}

// NotJoined returns the error of a Leave without a Join.
func NotJoined(pkg string, group netip.Addr) error {
	return fmt.Errorf("%s: multicast group %v: not a member", pkg, group)
}
