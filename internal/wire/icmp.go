package wire

import "encoding/binary"

// ICMPLen is the length of the header that ICMP (RFC 792) and ICMPv6 (RFC 4443)
// messages have in common: type, code, checksum and four bytes that depend on the
// type.
const ICMPLen = 8

// ICMP types and codes.
const (
	ICMPUnreachable    = 3
	ICMPFragNeeded     = 4 // code of ICMPUnreachable: fragmentation needed and DF set
	ICMPSourceQuench   = 4
	ICMPRedirect       = 5
	ICMPEcho           = 8
	ICMPTimeExceeded   = 11
	ICMPParameter      = 12
	ICMPEchoReply      = 0
	ICMPv6Unreachable  = 1
	ICMPv6PacketTooBig = 2
	ICMPv6TimeExceeded = 3
	ICMPv6Parameter    = 4
	icmpv6FirstInfo    = 128 // types below are errors (RFC 4443, section 2.1)
	ICMPv6Echo         = 128
	ICMPv6EchoReply    = 129
	ICMPv6Redirect     = 137 // RFC 4861, section 4.5
)

// ICMPIsError reports whether a type of ICMP is an error message (RFC 1122, section
// 3.2.2).
func ICMPIsError(t uint8) bool {
	switch t {
	case ICMPUnreachable, ICMPSourceQuench, ICMPRedirect, ICMPTimeExceeded, ICMPParameter:
		return true
	}
	return false
}

// ICMPv6IsError reports whether a type of ICMPv6 is one that no error message may
// answer: an error, or a redirect (RFC 4443, section 2.4, e.1 and e.2).
func ICMPv6IsError(t uint8) bool { return t < icmpv6FirstInfo || t == ICMPv6Redirect }

// PutICMP writes the header of the message b, whose body is in place behind it, and
// the checksum over all of it. The four bytes behind the checksum are rest. A message
// of ICMPv6 has the sum of its pseudo header in pseudo, one of ICMP has 0.
func PutICMP(b []byte, typ, code uint8, rest uint32, pseudo uint64) {
	b[0], b[1], b[2], b[3] = typ, code, 0, 0
	binary.BigEndian.PutUint32(b[4:], rest)
	binary.BigEndian.PutUint16(b[2:], Checksum(Sum(b, pseudo)))
}
