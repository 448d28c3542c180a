package vtep

import "github.com/vxswitch/vxswitch/internal/wire"

// innerIP is what the outer header may take from the packet inside.
type innerIP struct {
	at       int // where the IP header begins
	isIP     bool
	is4      bool
	tos, ttl uint8
	df       bool
}

// findIP looks for the IP header of a frame, behind up to two VLAN tags. One that is
// cut short is none.
func findIP(b []byte) (in innerIP) {
	e, ok := wire.ParseEthernet(b)
	if !ok {
		return innerIP{}
	}
	etherType, at := e.Type(), wire.EthernetLen
	if etherType == wire.TypeVLAN || etherType == wire.TypeQinQ {
		etherType, at = e.Network()
	}
	switch {
	case etherType == wire.TypeIPv4 && len(b) >= at+wire.IPv4Len && b[at]>>4 == 4:
		return innerIP{at: at, isIP: true, is4: true, tos: b[at+1], ttl: b[at+8], df: b[at+6]&0x40 != 0}
	case etherType == wire.TypeIPv6 && len(b) >= at+wire.IPv6Len && b[at]>>4 == 6:
		return innerIP{at: at, isIP: true, tos: b[at]<<4 | b[at+1]>>4, ttl: b[at+7]}
	}
	return innerIP{}
}
