package frame

// TooBigStats counts the frames that a switch's stage for too long ones (Switch.TooBig) was
// asked about, each in one field.
type TooBigStats struct {
	Sent4       uint64 `json:"sent4"`       // answered with ICMP
	Sent6       uint64 `json:"sent6"`       // answered with ICMPv6
	Limited     uint64 `json:"limited"`     // beyond a rate
	Fragmenting uint64 `json:"fragmenting"` // IPv4 without DF
	NotIP       uint64 `json:"not_ip"`      // another protocol
	NotHost     uint64 `json:"not_host"`    // a MAC or IP address, of either end, that is no single host's
	ICMPError   uint64 `json:"icmp_error"`  // about an ICMP error or redirect, or ICMP whose type cannot be seen
	Fragment    uint64 `json:"fragment"`    // a fragment other than the first
	Malformed   uint64 `json:"malformed"`   // header fields or checksum wrong, extension headers cut short or too many
	Fits        uint64 `json:"fits"`        // the IP packet fits, what follows it in the frame does not
	TinyMTU     uint64 `json:"tiny_mtu"`    // an MTU that no IP link may have: under 68 (RFC 791) or 1280 (RFC 8200, section 5)
	Unreachable uint64 `json:"unreachable"` // from the switch itself, or from a tunnel peer that has no number
}
