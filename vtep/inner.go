package vtep

import (
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/wire"
)

// innerIP is the fields of the inner IP header that the outer header may copy. They are valid if isIP is set.
type innerIP struct {
	at       int // where the IP header begins
	isIP     bool
	is4      bool
	tos, ttl uint8
	df       bool
}

// find finds the IP header of a frame, behind up to two VLAN tags, unless it is truncated. It sets the fields in
// place, which is faster than returning a struct of small fields.
func (in *innerIP) find(f *frame.Frame) {
	in.isIP = false
	b := f.Bytes()
	var etherType uint16
	var at int
	switch f.Kind {
	case frame.Ethernet:
		e, ok := wire.ParseEthernet(b)
		if !ok {
			return
		}
		etherType, at = e.Type(), wire.EthernetLen
		if etherType == wire.TypeVLAN || etherType == wire.TypeQinQ {
			etherType, at = e.Network()
		}
	case frame.IPv4:
		etherType = wire.TypeIPv4
	case frame.IPv6:
		etherType = wire.TypeIPv6
	}
	switch {
	case etherType == wire.TypeIPv4 && len(b) >= at+wire.IPv4Len && b[at]>>4 == 4:
		in.isIP, in.is4, in.df = true, true, b[at+6]&0x40 != 0
		in.at, in.tos, in.ttl = at, b[at+1], b[at+8]
	case etherType == wire.TypeIPv6 && len(b) >= at+wire.IPv6Len && b[at]>>4 == 6:
		in.isIP, in.is4, in.df = true, false, false
		in.at, in.tos, in.ttl = at, b[at]<<4|b[at+1]>>4, b[at+7]
	}
}
