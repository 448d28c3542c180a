package encap

// Type is a way to carry packets through a tunnel.
type Type uint8

// Types of encapsulation.
const (
	TypeVXLAN Type = iota // Ethernet in VXLAN in UDP
)

// Lengths of headers in bytes.
const (
	ipv4Len     = 20
	ipv6Len     = 40
	udpLen      = 8
	EthernetLen = 14 // destination, source, EtherType
	VLANTagLen  = 4
)

// Outer returns how many bytes of the underlay's IP packet come before the inner
// packet: the outer IP and UDP headers and the tunnel's own.
func (t Type) Outer(ipv6 bool) int {
	if ipv6 {
		return ipv6Len + udpLen + VXLANLen
	}
	return ipv4Len + udpLen + VXLANLen
}

// Overhead returns the difference between the MTU of the underlay and that of the
// overlay, both counted in IP packets: Outer, and the inner Ethernet header where
// there is one. Each inner VLAN tag costs [VLANTagLen] more.
func (t Type) Overhead(ipv6 bool) int { return t.Outer(ipv6) + EthernetLen }
