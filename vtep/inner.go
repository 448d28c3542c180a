package vtep

import "encoding/binary"

const (
	typeIPv4 = 0x0800
	typeIPv6 = 0x86dd
	typeVLAN = 0x8100
	typeQinQ = 0x88a8
)

// innerIP is what the outer header may take from the packet inside.
type innerIP struct {
	at       int // where the IP header begins
	isIP     bool
	is4      bool
	tos, ttl uint8
	df       bool
}

// findIP looks for the IP header of an Ethernet frame, behind up to two VLAN tags.
// One that is cut short is none.
func findIP(b []byte) (in innerIP) {
	at := 12
	for range 3 {
		if len(b) < at+2 {
			return innerIP{}
		}
		t := binary.BigEndian.Uint16(b[at:])
		if t == typeVLAN || t == typeQinQ {
			at += 4
			continue
		}
		at += 2
		switch {
		case t == typeIPv4 && len(b) >= at+20 && b[at]>>4 == 4:
			return innerIP{at: at, isIP: true, is4: true, tos: b[at+1], ttl: b[at+8], df: b[at+6]&0x40 != 0}
		case t == typeIPv6 && len(b) >= at+40 && b[at]>>4 == 6:
			return innerIP{at: at, isIP: true, tos: b[at]<<4 | b[at+1]>>4, ttl: b[at+7]}
		}
		return innerIP{}
	}
	return innerIP{}
}
