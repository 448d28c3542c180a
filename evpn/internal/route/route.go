package route

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"

	"github.com/vxswitch/vxswitch/frame"
)

// Kind is a route type (RFC 7432, section 7; RFC 9136, section 3).
type Kind uint8

const (
	AutoDiscovery Kind = 1 + iota // Ethernet auto-discovery, of an Ethernet segment or of one of its networks
	MACIP                         // MAC/IP advertisement
	Multicast                     // inclusive multicast Ethernet tag
	Segment                       // Ethernet segment
	Prefix                        // IP prefix
)

// RD is a route distinguisher (RFC 4364, section 4.2).
type RD [8]byte

// RDFrom returns the route distinguisher addr:n (type 1).
func RDFrom(addr netip.Addr, n uint16) (d RD) {
	d[1] = 1
	a := addr.As4()
	copy(d[2:], a[:])
	binary.BigEndian.PutUint16(d[6:], n)
	return d
}

// String returns "65000:5", "192.0.2.1:5" or, of a type that RFC 4364 does not have, hexadecimal digits.
func (d RD) String() string {
	switch binary.BigEndian.Uint16(d[:]) {
	case 0:
		return fmt.Sprintf("%d:%d", binary.BigEndian.Uint16(d[2:]), binary.BigEndian.Uint32(d[4:]))
	case 1:
		return fmt.Sprintf("%v:%d", netip.AddrFrom4([4]byte(d[2:6])), binary.BigEndian.Uint16(d[6:]))
	case 2:
		return fmt.Sprintf("%d:%d", binary.BigEndian.Uint32(d[2:]), binary.BigEndian.Uint16(d[6:]))
	}
	return fmt.Sprintf("%x", d[:])
}

// ParseRD reads what String writes of types 0 to 2.
func ParseRD(s string) (d RD, err error) {
	t, err := ParseTarget(s)
	if err != nil {
		return d, errors.New("must be a route distinguisher such as 192.0.2.1:5 or 65000:5" + numbers)
	}
	copy(d[2:], t[2:])
	d[1] = t[0]
	return d, nil
}

// Key is what identifies a route: another with the same key, of the same peer, replaces it. Fields that a kind does not have
// are zero.
type Key struct {
	Kind    Kind
	Bits    uint8 // Prefix: its length
	RD      RD
	Tag     uint32    // Ethernet tag, but for Segment
	MAC     frame.MAC // MACIP
	IP      Addr      // MACIP: of the host, or none; Prefix: its address; Multicast, Segment: the originator
	Segment ESI       // AutoDiscovery, Segment
}

// Route is a route as a peer sent it, sound in form. What it says may still be nonsense.
type Route struct {
	Key
	ESI         ESI       // MACIP, Prefix
	Labels      [2]uint32 // 24 bits each, VNIs as they are (RFC 8365, section 5.1.3); of Multicast that of the tunnel (PMSI)
	NumLabels   uint8
	NextHop     Addr
	Gateway     Addr // Prefix: overlay index, or none
	Tunnel      Addr // Multicast: end point of the PMSI tunnel attribute
	TunnelType  uint8
	TunnelFlags uint8
	Communities Communities // extended ones
}

// Communities are extended communities, eight bytes each (RFC 4360). Those of many routes are equal and share memory.
type Communities string

// Len returns how many there are.
func (c Communities) Len() int { return len(c) / 8 }

// At returns the i-th.
func (c Communities) At(i int) (b Community) {
	copy(b[:], c[8*i:])
	return b
}
