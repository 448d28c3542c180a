package frame

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"
)

// Endpoint is an address on the underlay. It is comparable and contains no pointer,
// for the data path; configuration and dumps use [netip.AddrPort]. IPv4 addresses are
// IPv4-mapped.
type Endpoint struct {
	IP    [16]byte
	Scope uint32 // interface index of a link-local IPv6 address, else 0
	Port  uint16
}

// EndpointFrom converts a configured address. A zone is the name or the index of an
// interface.
func EndpointFrom(ap netip.AddrPort) (Endpoint, error) {
	a := ap.Addr()
	if !a.IsValid() {
		return Endpoint{}, fmt.Errorf("frame: %v: an address is required", ap)
	}
	e := Endpoint{IP: a.As16(), Port: ap.Port()}
	if z := a.Zone(); z != "" {
		if n, err := strconv.ParseUint(z, 10, 32); err == nil {
			e.Scope = uint32(n)
		} else if ifi, err := net.InterfaceByName(z); err == nil {
			e.Scope = uint32(ifi.Index)
		} else {
			return Endpoint{}, fmt.Errorf("frame: zone of %v: %w", a, err)
		}
	}
	return e, nil
}

// Is4 reports whether the address is IPv4.
func (e Endpoint) Is4() bool {
	return [12]byte(e.IP[:12]) == [12]byte{10: 0xff, 11: 0xff}
}

// IsMulticast reports whether the address is a multicast group: 224.0.0.0/4, or ff00::/8.
func (e Endpoint) IsMulticast() bool {
	return e.IP[0] == 0xff || e.IP[12]&0xf0 == 0xe0 && e.Is4()
}

// IsLinkLocal reports whether the address is in fe80::/10 and so belongs to an interface
// (RFC 4007).
func (e Endpoint) IsLinkLocal() bool { return e.IP[0] == 0xfe && e.IP[1]&0xc0 == 0x80 }

// Host returns the endpoint without its port. It identifies a peer, whose source port
// differs for each flow.
func (e Endpoint) Host() Endpoint { e.Port = 0; return e }

// WithPort returns the endpoint with another port.
func (e Endpoint) WithPort(p uint16) Endpoint { e.Port = p; return e }

// AddrPort converts the endpoint back, with the scope as a numeric zone.
func (e Endpoint) AddrPort() netip.AddrPort {
	a := netip.AddrFrom16(e.IP).Unmap()
	if e.Scope != 0 {
		a = a.WithZone(strconv.FormatUint(uint64(e.Scope), 10))
	}
	return netip.AddrPortFrom(a, e.Port)
}

// String returns host:port.
func (e Endpoint) String() string { return e.AddrPort().String() }
