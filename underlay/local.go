package underlay

import (
	"fmt"
	"net/netip"
)

// anotherLocal checks an address that is to take the place of another, and returns it
// unmapped. The family stays: peers of the other could not be reached any more.
func anotherLocal(old, addr netip.Addr) (netip.Addr, error) {
	ap, err := localAddress(netip.AddrPortFrom(addr, 0))
	if err != nil {
		return addr, err
	}
	if addr = ap.Addr(); addr.Is4() != old.Is4() {
		return addr, fmt.Errorf("underlay: local address %v is not of the family of %v", addr, old)
	}
	return addr, nil
}
