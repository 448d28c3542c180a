package arp

import (
	"encoding/binary"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/wire"
)

// OnlyIP is a stage for a switch's slot Ingress, beside a [Responder] in mode [Access]. It
// lets IPv4, IPv6 and ARP from access ports pass and drops every other EtherType as
// frame.EtherType. Frames from tunnels pass.
type OnlyIP struct{}

// Process returns frame.Continue, or frame.Drop(frame.EtherType).
func (OnlyIP) Process(f *frame.Frame, _ frame.At) frame.Verdict {
	if f.Kind != frame.Ethernet || f.Tunnel {
		return frame.Continue
	}
	if b := f.Bytes(); len(b) >= wire.EthernetLen {
		switch binary.BigEndian.Uint16(b[12:]) {
		case wire.TypeIPv4, wire.TypeIPv6, wire.TypeARP:
			return frame.Continue
		}
	}
	return frame.Drop(frame.EtherType)
}
