// Package geneve is Geneve (RFC 8926) as a stranger's module would add it: an encap.Encapsulation, for tests. Ethernet frames that it
// sends have one option, which nobody knows and which is not critical, and IP packets none; packets with critical options are refused.
package geneve

import (
	"encoding/binary"

	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/frame"
)

// Port is the UDP port of Geneve.
const Port = 6081

// Geneve is the encapsulation.
type Geneve struct{}

const (
	fixed    = 8
	option   = 8 // bytes of the option sent
	critical = 0x40
	oam      = 0x80
)

// Header implements [encap.Encapsulation].
func (Geneve) Header() int { return fixed + option }

var etherTypes = [...]uint16{frame.Ethernet: 0x6558, frame.IPv4: 0x800, frame.IPv6: 0x86dd}

// Put implements [encap.Encapsulation].
func (Geneve) Put(b []byte, p encap.Packet) (n int, drop frame.Reason) {
	b[0], b[1] = 0, 0
	binary.BigEndian.PutUint16(b[2:], etherTypes[p.Kind])
	binary.BigEndian.PutUint32(b[4:], uint32(p.VNI)<<8)
	if p.Kind != frame.Ethernet {
		return fixed, frame.NotDropped
	}
	b[0] = option / 4
	copy(b[fixed:], "\xff\xff\x01\x01vxsw") // class for experiments, type 1, one word
	return fixed + option, frame.NotDropped
}

// Parse implements [encap.Encapsulation].
func (Geneve) Parse(b []byte) (p encap.Packet, n int, drop frame.Reason) {
	if len(b) < fixed {
		return p, 0, frame.Short
	}
	n = fixed + 4*int(b[0]&0x3f)
	p.VNI = frame.VNI(binary.BigEndian.Uint32(b[4:]) >> 8)
	switch {
	case b[0]>>6 != 0:
		return p, n, frame.GPEVersion
	case len(b) < n:
		return p, n, frame.Short
	case b[1]&(critical|oam) != 0:
		return p, n, frame.GPEOAM
	}
	for kind, t := range etherTypes {
		if binary.BigEndian.Uint16(b[2:]) == t {
			p.Kind = frame.Kind(kind)
			return p, n, frame.NotDropped
		}
	}
	return p, n, frame.GPEProtocol
}
