package encap

import "github.com/vxswitch/vxswitch/setting"

// Type is an encapsulation.
type Type uint8

// Types of encapsulation.
const (
	TypeVXLAN Type = iota // Ethernet in VXLAN in UDP (RFC 7348)
	TypeGPE               // Ethernet or IP in VXLAN-GPE in UDP (draft-ietf-nvo3-vxlan-gpe-13)
	TypeIPIP              // IP in IP (RFC 2003, RFC 4213, RFC 2473)
	TypeFOU               // IP in UDP: what Linux calls fou, and the backend udp of flannel; the version of the packet says which IP
)

var typeNames = []string{TypeVXLAN: "vxlan", TypeGPE: "gpe", TypeIPIP: "ipip", TypeFOU: "fou"}

// Valid reports whether t is one of the types.
func (t Type) Valid() bool { return int(t) < len(typeNames) }

// String returns the word for the type in settings.
func (t Type) String() string {
	if t == TypeOwn {
		return "own"
	}
	return setting.Name(typeNames, t)
}

// MarshalText implements [encoding.TextMarshaler].
func (t Type) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// UnmarshalText reads what String writes.
func (t *Type) UnmarshalText(text []byte) error { return setting.Parse(t, typeNames, text) }

// Lengths of headers in bytes.
const (
	ipv4Len     = 20
	ipv6Len     = 40
	udpLen      = 8
	EthernetLen = 14 // destination, source, EtherType
	VLANTagLen  = 4
)

// Bare reports whether packets have no header after IP and UDP: one network, and IP without Ethernet.
func (t Type) Bare() bool { return t == TypeIPIP || t == TypeFOU }

// Port returns the UDP port that IANA assigned to the encapsulation, 0 for IP-in-IP and IP in UDP.
func (t Type) Port() uint16 {
	switch t {
	case TypeVXLAN:
		return VXLANPort
	case TypeGPE:
		return GPEPort
	}
	return 0
}

// Header returns the length of the header after IP and UDP, without that of TypeOwn.
func (t Type) Header() int {
	if t.Bare() || t == TypeOwn {
		return 0
	}
	return VXLANLen
}

// Used returns the bits of the header, as a big endian number, that the encapsulation uses; with gbp also those of group
// policy. It returns 0 for one without a header.
func (t Type) Used(gbp bool) uint64 {
	switch {
	case t == TypeGPE:
		return uint64(^GPEReservedMask)
	case t == TypeVXLAN && gbp:
		return uint64(^ReservedMask | GBPMask)
	case t == TypeVXLAN:
		return uint64(^ReservedMask)
	}
	return 0
}

// Outer returns the length of all headers before the inner packet: outer IP, UDP and tunnel header. If the inner packet
// is IP, it is the difference between the MTUs of underlay and overlay.
func (t Type) Outer(ipv6 bool) int {
	n := ipv4Len
	if ipv6 {
		n = ipv6Len
	}
	if t == TypeIPIP {
		return n
	}
	return n + udpLen + t.Header()
}

// Overhead returns the difference between the MTUs of underlay and overlay: Outer plus the inner Ethernet header, except
// for those without. Each inner VLAN tag takes another [VLANTagLen].
func (t Type) Overhead(ipv6 bool) int {
	if t.Bare() {
		return t.Outer(ipv6)
	}
	return t.Outer(ipv6) + EthernetLen
}
