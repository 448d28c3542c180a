package rig

import (
	"encoding/binary"

	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/frame"
)

// MAC returns the i-th MAC of a side: 0 local, 1 remote.
func MAC(side byte, i int) frame.MAC {
	m := frame.MAC{2, side}
	binary.BigEndian.PutUint32(m[2:], uint32(i))
	return m
}

// Packet returns an Ethernet frame with a UDP packet in it, size bytes long.
func Packet(dst, src frame.MAC, size int) []byte {
	b := make([]byte, size)
	b[12] = 8
	b[14], b[23] = 0x45, 17
	Address(b, dst, src)
	return b
}

// Address writes addresses into a frame that Packet made: the MACs, and IP addresses
// made of them.
func Address(b []byte, dst, src frame.MAC) {
	copy(b, dst[:])
	copy(b[6:], src[:])
	copy(b[26:], src[2:])
	copy(b[30:], dst[2:])
}

// Tunnelled returns p as it comes out of the underlay.
func Tunnelled(p []byte, vni frame.VNI) []byte {
	b := make([]byte, encap.VXLANLen, encap.VXLANLen+len(p))
	encap.PutVXLAN(b, vni)
	return append(b, p...)
}
