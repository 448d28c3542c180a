package encap

import (
	"encoding/binary"

	"github.com/vxswitch/vxswitch/frame"
)

// VXLANPort is the UDP destination port IANA assigned to VXLAN (RFC 7348, section 8).
const VXLANPort = 4789

// LinuxVXLANPort is the UDP destination port of Linux's vxlan device without dstport (ip-link(8)); it is older than
// the assigned one.
const LinuxVXLANPort = 8472

// VXLANLen is the length of a VXLAN header in bytes.
const VXLANLen = 8

// VXLAN is a VXLAN header as a big endian number (RFC 7348, section 5):
//
//	bit 63       59         56 55              32 31            8 7        0
//	   |R|R|R|R|I|R|R|R|  reserved 24 bits  |   VNI 24 bits   | reserved |
type VXLAN uint64

// Bits of a [VXLAN] header.
const (
	FlagVNI      VXLAN = 1 << 59 // I: the VNI field is valid
	maskVNI      VXLAN = 0xffffff << 8
	ReservedMask VXLAN = ^(FlagVNI | maskVNI) // the 39 bits that are sent as zero
)

// VNI returns the network identifier.
func (h VXLAN) VNI() frame.VNI { return frame.VNI(h>>8) & frame.MaxVNI }

// Reserved returns the reserved bits that are set. RFC 7348 says to ignore them.
func (h VXLAN) Reserved() VXLAN { return h & ReservedMask }

// PutVXLAN writes the header for vni to b[:VXLANLen]. It panics if b is shorter.
func PutVXLAN(b []byte, vni frame.VNI) {
	binary.BigEndian.PutUint64(b, uint64(FlagVNI|VXLAN(vni&frame.MaxVNI)<<8))
}

// ParseVXLAN reads the header at the start of b. It returns frame.Short if b is shorter than a header, frame.NoVNIFlag if
// the I flag is not set, and otherwise frame.NotDropped.
func ParseVXLAN(b []byte) (VXLAN, frame.Reason) {
	if len(b) < VXLANLen {
		return 0, frame.Short
	}
	h := VXLAN(binary.BigEndian.Uint64(b))
	if h&FlagVNI == 0 {
		return h, frame.NoVNIFlag
	}
	return h, frame.NotDropped
}
