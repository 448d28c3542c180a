package encap

import (
	"encoding/binary"

	"github.com/vxswitch/vxswitch/frame"
)

// GPEPort is the UDP destination port IANA assigned to VXLAN-GPE.
const GPEPort = 4790

// GPE is a VXLAN-GPE header as a big endian number (draft-ietf-nvo3-vxlan-gpe-13, section
// 3):
//
//	bit 63     61  59                56 55           40 39           32 31       8 7        0
//	   |R|R|Ver|I|P|B|O| reserved 16 bits | next protocol |   VNI    | reserved |
type GPE uint64

// Bits of a [GPE] header.
const (
	GPEVersionMask  GPE = 3 << 60
	GPEFlagVNI      GPE = 1 << 59 // I: the VNI field is valid
	GPEFlagProtocol GPE = 1 << 58 // P: the next protocol field is valid
	GPEFlagBUM      GPE = 1 << 57 // B: a copy made by head-end replication
	GPEFlagOAM      GPE = 1 << 56 // O: for the tunnel end point itself
	GPEReservedMask GPE = ^(GPEVersionMask | GPEFlagVNI | GPEFlagProtocol | GPEFlagBUM | GPEFlagOAM | 0xff<<32 | GPE(maskVNI))
)

// GPENextAt is where the next protocol is in a [GPE] header on the wire.
const GPENextAt = 3

// NextProtocol is the type of the packet after a [GPE] header.
type NextProtocol uint8

// Next protocols (section 3.2 of the draft).
const (
	NextIPv4     NextProtocol = 1
	NextIPv6     NextProtocol = 2
	NextEthernet NextProtocol = 3
	NextNSH      NextProtocol = 4
)

// VNI returns the network identifier.
func (h GPE) VNI() frame.VNI { return frame.VNI(h>>8) & frame.MaxVNI }

// Next returns the next protocol.
func (h GPE) Next() NextProtocol { return NextProtocol(h >> 32) }

// Kind returns the kind of the packet after the header, and false if it is neither Ethernet nor IP.
func (h GPE) Kind() (frame.Kind, bool) {
	switch h.Next() {
	case NextEthernet:
		return frame.Ethernet, true
	case NextIPv4:
		return frame.IPv4, true
	case NextIPv6:
		return frame.IPv6, true
	}
	return 0, false
}

// Reserved returns the reserved bits that are set.
func (h GPE) Reserved() GPE { return h & GPEReservedMask }

var nextOf = [...]NextProtocol{frame.Ethernet: NextEthernet, frame.IPv4: NextIPv4, frame.IPv6: NextIPv6}

// PutGPE writes the header for a packet in vni to b[:VXLANLen], with P and, for a copy of a flooded frame, B. It panics if
// b is shorter.
func PutGPE(b []byte, vni frame.VNI, kind frame.Kind, bum bool) {
	h := GPEFlagVNI | GPEFlagProtocol | GPE(nextOf[kind])<<32 | GPE(vni&frame.MaxVNI)<<8
	if bum {
		h |= GPEFlagBUM
	}
	binary.BigEndian.PutUint64(b, uint64(h))
}

// ParseGPE reads the header at the start of b. It returns, in this order, frame.Short if b is shorter than a header,
// frame.GPEVersion for a version other than 0, frame.NoVNIFlag without I, and frame.GPEOAM with O. The caller handles a
// header without P: by the draft the payload is Ethernet, as in VXLAN; Linux drops it.
func ParseGPE(b []byte) (GPE, frame.Reason) {
	if len(b) < VXLANLen {
		return 0, frame.Short
	}
	h := GPE(binary.BigEndian.Uint64(b))
	switch {
	case h&GPEVersionMask != 0:
		return h, frame.GPEVersion
	case h&GPEFlagVNI == 0:
		return h, frame.NoVNIFlag
	case h&GPEFlagOAM != 0:
		return h, frame.GPEOAM
	}
	return h, frame.NotDropped
}
