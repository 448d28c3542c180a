package frame

// TooBigStats counts the frames in the stage of a switch for slot TooBig (Switch.TooBig), each
// in one field.
type TooBigStats struct {
	Sent4       uint64 `json:"sent4"`       // answered with ICMP
	Sent6       uint64 `json:"sent6"`       // answered with ICMPv6
	Limited     uint64 `json:"limited"`     // above a rate
	Fragmenting uint64 `json:"fragmenting"` // IPv4 without DF
	NotIP       uint64 `json:"not_ip"`      // another protocol
	NotHost     uint64 `json:"not_host"`    // a MAC or IP address that is not that of one host
	ICMPError   uint64 `json:"icmp_error"`  // ICMP error or redirect, or ICMP of unknown type
	Fragment    uint64 `json:"fragment"`    // a fragment other than the first
	Malformed   uint64 `json:"malformed"`   // wrong header or checksum; truncated or too many extension headers
	Fits        uint64 `json:"fits"`        // the IP packet fits, but not the bytes behind it
	TinyMTU     uint64 `json:"tiny_mtu"`    // an MTU below 68 (RFC 791) or 1280 (RFC 8200, section 5)
	Unreachable uint64 `json:"unreachable"` // from the switch itself, or from a peer without a number
}
