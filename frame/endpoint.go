package frame

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"
)

// Endpoint is an address on the underlay. It is comparable and holds no pointer,
// so that packets carry it by value; [netip.AddrPort] appears in configuration
// and dumps only. IPv4 is held as IPv4-mapped IPv6.
type Endpoint struct {
	IP    [16]byte
	Scope uint32 // interface index of a link-local IPv6 address, else 0
	Port  uint16
}

// EndpointFrom converts a configured address. A zone may be an interface's name or
// its index. An invalid address is an error.
func EndpointFrom(ap netip.AddrPort) (Endpoint, error) {
	a := ap.Addr()
	if !a.IsValid() {
		return Endpoint{}, fmt.Errorf("frame: invalid underlay address %v", ap)
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

// IsMulticast reports whether it is a multicast group: 224.0.0.0/4, or ff00::/8.
func (e Endpoint) IsMulticast() bool {
	return e.IP[0] == 0xff || e.IP[12]&0xf0 == 0xe0 && e.Is4()
}

// IsLinkLocal reports whether it is in fe80::/10, where an address means something only
// together with an interface (RFC 4007).
func (e Endpoint) IsLinkLocal() bool { return e.IP[0] == 0xfe && e.IP[1]&0xc0 == 0x80 }

// Host returns the endpoint without its port: what identifies a peer, whose source
// port changes with every flow.
func (e Endpoint) Host() Endpoint { e.Port = 0; return e }

// WithPort returns the endpoint with another port.
func (e Endpoint) WithPort(p uint16) Endpoint { e.Port = p; return e }

// AddrPort converts back, with IPv4 unmapped and the scope as a numeric zone.
func (e Endpoint) AddrPort() netip.AddrPort {
	a := netip.AddrFrom16(e.IP).Unmap()
	if e.Scope != 0 {
		a = a.WithZone(strconv.FormatUint(uint64(e.Scope), 10))
	}
	return netip.AddrPortFrom(a, e.Port)
}

// String returns host:port.
func (e Endpoint) String() string { return e.AddrPort().String() }
