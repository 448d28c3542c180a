package bgp

import (
	"net"
	"net/netip"
	"strconv"
)

// withIndex returns an address with the number of its interface in place of the name. The caller is where the interface is: package net
// remembers the names of all namespaces in one table.
func withIndex(a netip.Addr) netip.Addr {
	if i, err := net.InterfaceByName(a.Zone()); a.Zone() != "" && err == nil {
		return a.WithZone(strconv.Itoa(i.Index))
	}
	return a
}

// peerOf returns the peer that has connected, nil if it is none. A link-local address is a peer's only on the peer's interface.
func (b *BGP) peerOf(c net.Conn) (found *peer) {
	addr := c.RemoteAddr().(*net.TCPAddr).AddrPort().Addr().Unmap()
	if addr.Zone() == "" {
		return (*b.peers.Load())[addr]
	}
	b.conf.In(func() {
		addr = addr.WithZone(zoneOf(c))
		for _, p := range *b.peers.Load() {
			if at := p.location().addr; at.WithZone("") == addr.WithZone("") && withIndex(at) == addr {
				found = p
			}
		}
	})
	return found
}
