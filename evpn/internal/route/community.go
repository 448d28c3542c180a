package route

import (
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"net/netip"
	"strconv"
	"strings"

	"github.com/vxswitch/vxswitch/frame"
)

// A Community is an extended community: a type, a subtype and six bytes (RFC 4360).
type Community [8]byte

// Types and subtypes (IANA's "BGP Extended Communities").
const (
	typeAS2    = 0x00
	typeIPv4   = 0x01
	typeAS4    = 0x02
	typeOpaque = 0x03
	typeEVPN   = 0x06

	subTarget  = 0x02 // of the first three
	subEncap   = 0x0c // of typeOpaque
	subGateway = 0x0d

	subMobility  = 0x00 // of typeEVPN
	subRouterMAC = 0x03
	subND        = 0x08
)

// Encapsulations (IANA's "BGP Tunnel Encapsulation Attribute Tunnel Types").
const (
	VXLAN = 8
	GPE   = 12
)

// A Target is a route target (RFC 4360, section 4).
type Target Community

// TargetFrom returns the route target as:n. An AS above 65535 leaves 16 bits for n (RFC 5668).
func TargetFrom(as, n uint32) (t Target, err error) {
	if as <= 0xffff {
		t[0], t[1] = typeAS2, subTarget
		binary.BigEndian.PutUint16(t[2:], uint16(as))
		binary.BigEndian.PutUint32(t[4:], n)
		return t, nil
	}
	if n > 0xffff {
		return t, fmt.Errorf("route target %d:%d: with an AS above 65535 the number must be at most 65535", as, n)
	}
	t[0], t[1] = typeAS4, subTarget
	binary.BigEndian.PutUint32(t[2:], as)
	binary.BigEndian.PutUint16(t[6:], uint16(n))
	return t, nil
}

// VXLANTarget is what RFC 8365, section 5.1.2.1, has beside a VNI in the number of a derived target: type 1, VXLAN.
const VXLANTarget = 1 << 28

// VNI returns the VNI that a derived route target has, whatever its AS: n of AS:n, or what RFC 8365, section 5.1.2.1, puts into the
// lowest 24 bits beside its own marks. ok is false for a target that cannot be derived from a VNI.
func (t Target) VNI() (vni frame.VNI, ok bool) {
	var n uint32
	switch t[0] {
	case typeAS2:
		n = binary.BigEndian.Uint32(t[4:])
		if n>>28 == 1 { // the domain ID is 0
			n &^= VXLANTarget
		}
	case typeAS4:
		n = uint32(binary.BigEndian.Uint16(t[6:]))
	default:
		return 0, false
	}
	vni = frame.VNI(n)
	return vni, vni.Valid()
}

// String returns "65000:100" or "192.0.2.1:100".
func (t Target) String() string {
	switch t[0] {
	case typeAS2:
		return fmt.Sprintf("%d:%d", binary.BigEndian.Uint16(t[2:]), binary.BigEndian.Uint32(t[4:]))
	case typeIPv4:
		return fmt.Sprintf("%v:%d", netip.AddrFrom4([4]byte(t[2:6])), binary.BigEndian.Uint16(t[6:]))
	}
	return fmt.Sprintf("%d:%d", binary.BigEndian.Uint32(t[2:]), binary.BigEndian.Uint16(t[6:]))
}

// Encapsulation returns the community that says how packets are to be sent (RFC 9012, section 4.1).
func Encapsulation(kind uint16) Community {
	return Community{typeOpaque, subEncap, 6: byte(kind >> 8), 7: byte(kind)}
}

// Mobility returns that of a host that has moved, or never does (RFC 7432, section 7.7).
func Mobility(sequence uint32, sticky bool) (c Community) {
	c[0], c[1] = typeEVPN, subMobility
	if sticky {
		c[2] = 1
	}
	binary.BigEndian.PutUint32(c[4:], sequence)
	return c
}

// RouterMAC returns that of the router behind a VTEP (RFC 9135, section 8.1).
func RouterMAC(mac frame.MAC) (c Community) {
	c[0], c[1] = typeEVPN, subRouterMAC
	copy(c[2:], mac[:])
	return c
}

// DefaultGateway returns that of a gateway's own address (RFC 7432, section 7.8).
func DefaultGateway() Community { return Community{typeOpaque, subGateway} }

// NDFlags returns that of an IPv6 address (RFC 9047, section 2.1).
func NDFlags(router, override bool) Community {
	c := Community{typeEVPN, subND}
	if router {
		c[2] |= 1
	}
	if override {
		c[2] |= 2
	}
	return c
}

// Join returns communities in their order.
func Join(list ...Community) Communities {
	b := make([]byte, 0, 8*len(list))
	for _, c := range list {
		b = append(b, c[:]...)
	}
	return Communities(b)
}

// Targets iterates over the route targets.
func (c Communities) Targets() iter.Seq[Target] {
	return func(yield func(Target) bool) {
		for i := range c.Len() {
			if x := c.At(i); x[0] <= typeAS4 && x[1] == subTarget && !yield(Target(x)) {
				return
			}
		}
	}
}

// find returns the first community of a type and subtype.
func (c Communities) find(typ, sub byte) (x Community, ok bool) {
	for i := range c.Len() {
		if x = c.At(i); x[0] == typ && x[1] == sub {
			return x, true
		}
	}
	return Community{}, false
}

// Encapsulated reports whether packets may be sent in VXLAN: the communities say so, or nothing of it. A peer may take several kinds.
func (c Communities) Encapsulated() bool {
	any := false
	for i := range c.Len() {
		if x := c.At(i); x[0] == typeOpaque && x[1] == subEncap {
			if any = true; binary.BigEndian.Uint16(x[6:]) == VXLAN {
				return true
			}
		}
	}
	return !any
}

// Mobility returns the sequence of a host, 0 if it is not said, and whether it never moves.
func (c Communities) Mobility() (sequence uint32, sticky bool) {
	x, _ := c.find(typeEVPN, subMobility)
	return binary.BigEndian.Uint32(x[4:]), x[2]&1 != 0
}

// RouterMAC returns the MAC of the router behind the VTEP.
func (c Communities) RouterMAC() (mac frame.MAC, ok bool) {
	x, ok := c.find(typeEVPN, subRouterMAC)
	return frame.MAC(x[2:8]), ok
}

// DefaultGateway reports whether the address is a gateway's own.
func (c Communities) DefaultGateway() bool {
	_, ok := c.find(typeOpaque, subGateway)
	return ok
}

// NDFlags returns the flags R and O of the address's neighbour advertisements.
func (c Communities) NDFlags() (router, override bool) {
	x, _ := c.find(typeEVPN, subND)
	return x[2]&1 != 0, x[2]&2 != 0
}

// numbers is what the number of a route target or distinguisher may be.
const numbers = ", with a number up to 65535 behind an address or an AS above 65535, else up to 4294967295"

// ParseTarget reads what String writes: an AS below 4294967296 or an IPv4 address, a colon, and a number.
func ParseTarget(s string) (t Target, err error) {
	left, right, _ := strings.Cut(s, ":")
	n, err := strconv.ParseUint(right, 10, 32)
	if err == nil {
		if a, err := netip.ParseAddr(left); err == nil && a.Is4() && n <= 0xffff {
			t[0], t[1] = typeIPv4, subTarget
			b := a.As4()
			copy(t[2:], b[:])
			binary.BigEndian.PutUint16(t[6:], uint16(n))
			return t, nil
		}
		if as, err := strconv.ParseUint(left, 10, 32); err == nil {
			if t, err = TargetFrom(uint32(as), uint32(n)); err == nil {
				return t, nil
			}
		}
	}
	return t, errors.New("must be a route target such as 65000:100 or 192.0.2.1:100" + numbers)
}
