package unnumbered

import (
	"encoding/binary"
	"net"
	"net/netip"
	"time"
)

const (
	typeSolicit = 133 // ICMPv6
	typeAdvert  = 134
	solicitLen  = 8   // without options
	advertLen   = 16  // likewise
	hopLimit    = 255 // what has it was not routed

	optionSource = 1 // link-layer address of the sender
)

// lifetime is how long an advertisement of ours counts: three intervals, as FRR's.
const lifetime = 3 * interval

// advert returns a router advertisement (RFC 4861, section 4.2) that says nothing of the network. The kernel fills in the checksum.
func advert(counts time.Duration, mac net.HardwareAddr) []byte {
	b := make([]byte, advertLen, advertLen+8)
	b[0], b[4] = typeAdvert, 64 // the hop limit that hosts are to use
	binary.BigEndian.PutUint16(b[6:], uint16(counts/time.Second))
	if len(mac) == 6 {
		b = append(append(b, optionSource, 1), mac...)
	}
	return b
}

// solicitation asks routers for an advertisement (RFC 4861, section 4.1).
func solicitation() []byte { return append([]byte{typeSolicit}, make([]byte, solicitLen-1)...) }

// solicits reports whether a message asks us for an advertisement. Whoever asks, all are answered.
func solicits(b []byte, hops int) bool {
	return len(b) >= solicitLen && b[0] == typeSolicit && b[1] == 0 && hops == hopLimit
}

// parse returns the lifetime in a router advertisement that came from an address with a hop limit, if nodes are to take it (RFC 4861,
// section 6.1.2). The kernel has looked at the checksum.
func parse(b []byte, from netip.Addr, hops int) (counts time.Duration, ok bool) {
	if len(b) < advertLen || b[0] != typeAdvert || b[1] != 0 || hops != hopLimit || !from.Is6() || from.Is4In6() || !from.IsLinkLocalUnicast() {
		return 0, false
	}
	for o := b[advertLen:]; len(o) > 0; o = o[int(o[1])*8:] {
		if len(o) < 2 || o[1] == 0 || int(o[1])*8 > len(o) {
			return 0, false
		}
	}
	return time.Duration(binary.BigEndian.Uint16(b[6:])) * time.Second, true
}
