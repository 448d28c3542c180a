package encap

import "github.com/vxswitch/vxswitch/setting"

// Type is a way to carry packets through a tunnel.
type Type uint8

// Types of encapsulation.
const (
	TypeVXLAN Type = iota // Ethernet in VXLAN in UDP (RFC 7348)
	TypeGPE               // Ethernet or IP in VXLAN-GPE in UDP (draft-ietf-nvo3-vxlan-gpe-13)
	TypeIPIP              // IP in IP (RFC 2003, RFC 4213, RFC 2473)
)

var typeNames = []string{TypeVXLAN: "vxlan", TypeGPE: "gpe", TypeIPIP: "ipip"}

// Valid reports whether t is one of the types.
func (t Type) Valid() bool { return int(t) < len(typeNames) }

// String returns the type as settings call it.
func (t Type) String() string { return setting.Name(typeNames, t) }

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

// Port returns the UDP port that IANA has given to the encapsulation, 0 to one without UDP.
func (t Type) Port() uint16 {
	switch t {
	case TypeVXLAN:
		return VXLANPort
	case TypeGPE:
		return GPEPort
	}
	return 0
}

// Header returns the length of the tunnel's own header, behind IP and UDP.
func (t Type) Header() int {
	if t == TypeIPIP {
		return 0
	}
	return VXLANLen
}

// Outer returns how many bytes of the underlay's IP packet come before the inner
// packet: the outer IP and UDP headers and the tunnel's own. It is the difference of the
// two MTUs, both counted in IP packets, where the inner packet is IP.
func (t Type) Outer(ipv6 bool) int {
	n := ipv4Len
	if ipv6 {
		n = ipv6Len
	}
	if t == TypeIPIP {
		return n
	}
	return n + udpLen + VXLANLen
}

// Overhead returns the difference between the MTU of the underlay and that of the
// overlay, both counted in IP packets, where the inner packet is an Ethernet frame: Outer,
// and the inner Ethernet header. Each inner VLAN tag costs [VLANTagLen] more. IP-in-IP
// carries no Ethernet: there it is Outer.
func (t Type) Overhead(ipv6 bool) int {
	if t == TypeIPIP {
		return t.Outer(ipv6)
	}
	return t.Outer(ipv6) + EthernetLen
}
