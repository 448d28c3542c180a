package sys

import (
	"encoding/binary"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A control message is a struct cmsghdr {size_t len; int level; int type} and its
// data, both padded to the size of a long (cmsg(3)). Bytes are read and written one
// by one here, so that buffers need no alignment.
const (
	long    = int(unsafe.Sizeof(uintptr(0)))
	cmsgHdr = (unix.SizeofCmsghdr + long - 1) &^ (long - 1)
)

func align(n int) int { return (n + long - 1) &^ (long - 1) }

// CmsgInt is the space of one control message that holds an int or less.
const CmsgInt = cmsgHdr + (4+long-1)&^(long-1)

// PutCmsgInt writes a control message with an int at the start of b and returns its
// length, [CmsgInt]. It panics if b is shorter.
func PutCmsgInt(b []byte, level, typ, v int) int {
	binary.NativeEndian.PutUint32(putCmsg(b, level, typ, 4), uint32(v))
	return CmsgInt
}

// PutCmsgU16 is PutCmsgInt for an option whose value is 16 bits, such as UDP_SEGMENT:
// the kernel refuses that one with an int.
func PutCmsgU16(b []byte, level, typ int, v uint16) int {
	binary.NativeEndian.PutUint16(putCmsg(b, level, typ, 2), v)
	return CmsgInt
}

// IPV6FlowInfo is the type of the control message with an IPv6 flow label (IPV6_FLOWINFO of linux/in6.h).
const IPV6FlowInfo = 11

// PutCmsgBE32 is PutCmsgInt for a value in network byte order, such as a flow label.
func PutCmsgBE32(b []byte, level, typ int, v uint32) int {
	binary.BigEndian.PutUint32(putCmsg(b, level, typ, 4), v)
	return CmsgInt
}

// putCmsg writes the header of a control message with size bytes of data, at most
// four, and returns the room for them, cleared.
func putCmsg(b []byte, level, typ, size int) []byte {
	b = b[:CmsgInt]
	n := cmsgHdr + size
	if long == 8 {
		binary.NativeEndian.PutUint64(b, uint64(n))
	} else {
		binary.NativeEndian.PutUint32(b, uint32(n))
	}
	binary.NativeEndian.PutUint32(b[long:], uint32(level))
	binary.NativeEndian.PutUint32(b[long+4:], uint32(typ))
	clear(b[cmsgHdr:])
	return b[cmsgHdr:]
}

// NextCmsg cuts the first control message off b. It reports false at the end, and
// where the rest makes no sense.
func NextCmsg(b []byte) (level, typ int, data, rest []byte, ok bool) {
	if len(b) < cmsgHdr {
		return 0, 0, nil, nil, false
	}
	var n uint64
	if long == 8 {
		n = binary.NativeEndian.Uint64(b)
	} else {
		n = uint64(binary.NativeEndian.Uint32(b))
	}
	if n < uint64(cmsgHdr) || n > uint64(len(b)) {
		return 0, 0, nil, nil, false
	}
	level = int(int32(binary.NativeEndian.Uint32(b[long:])))
	typ = int(int32(binary.NativeEndian.Uint32(b[long+4:])))
	data = b[cmsgHdr:n:n]
	return level, typ, data, b[min(align(int(n)), len(b)):], true
}

// RxInfo is what the control messages of a received datagram say.
type RxInfo struct {
	Dst      [16]byte // destination address of the IP header, IPv4 as IPv4-mapped
	HasDst   bool
	If       uint32 // interface it came in on
	TOS, TTL uint8  // or traffic class and hop limit
	Segment  int    // bytes of each datagram of a run but the last (UDP_GRO), 0 when it is none
}

// Parse overwrites r with what the control messages in b say. Those it does not
// know and those too short are skipped.
func (r *RxInfo) Parse(b []byte) {
	*r = RxInfo{}
	for {
		level, typ, d, rest, ok := NextCmsg(b)
		if !ok {
			return
		}
		b = rest
		switch level {
		case unix.IPPROTO_IP:
			switch {
			case typ == unix.IP_PKTINFO && len(d) >= 12: // ifindex, address to answer from, destination
				r.If = binary.NativeEndian.Uint32(d)
				r.Dst = [16]byte{10: 0xff, 11: 0xff, 12: d[8], 13: d[9], 14: d[10], 15: d[11]}
				r.HasDst = true
			case typ == unix.IP_TOS && len(d) >= 1: // one byte on receipt, although an int is taken for sending
				r.TOS = d[0]
			case typ == unix.IP_TTL && len(d) >= 4:
				r.TTL = uint8(binary.NativeEndian.Uint32(d))
			}
		case unix.IPPROTO_IPV6:
			switch {
			case typ == unix.IPV6_PKTINFO && len(d) >= 20: // destination, ifindex
				r.Dst = [16]byte(d)
				r.If = binary.NativeEndian.Uint32(d[16:])
				r.HasDst = true
			case typ == unix.IPV6_TCLASS && len(d) >= 4:
				r.TOS = uint8(binary.NativeEndian.Uint32(d))
			case typ == unix.IPV6_HOPLIMIT && len(d) >= 4:
				r.TTL = uint8(binary.NativeEndian.Uint32(d))
			}
		case unix.SOL_UDP:
			if typ == unix.UDP_GRO && len(d) >= 4 {
				r.Segment = int(int32(binary.NativeEndian.Uint32(d)))
			}
		}
	}
}
