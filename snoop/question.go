package snoop

import (
	"encoding/binary"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/wire"
)

// robustness is ours, which queries carry (RFC 3376, section 8.1).
const robustness = 2

// question returns our query about a group, or about all with the zero group: IGMPv3 or MLDv2, which hosts with older versions
// understand. Hosts have maxResp seconds to answer.
func (s *state) question(family int, g group, maxResp frame.Tick) frame.Frame {
	if family == v6 {
		return frame.Make(s.question6(g, maxResp))
	}
	return frame.Make(s.question4(g, maxResp))
}

// routerAlert4 is the IP option that has routers look at a packet (RFC 2113).
const routerAlert4 = 0x94040000

func (s *state) question4(g group, maxResp frame.Tick) []byte {
	const ipLen, length = wire.IPv4Len + 4, wire.IPv4Len + 4 + 12
	to := [4]byte{224, 0, 0, 1}
	if g != (group{}) {
		to = [4]byte(g[12:])
	}
	b := make([]byte, wire.EthernetLen+length)
	dst := frame.MAC{1, 0, 0x5e, to[1] & 0x7f, to[2], to[3]}
	s.ethernet(b, dst, wire.TypeIPv4)

	ip := b[wire.EthernetLen:]
	h := wire.IPv4Header{TOS: 0xc0, TTL: 1, Protocol: protoIGMP, TotalLen: length, Src: [4]byte(s.address()), Dst: to} // RFC 3376, section 4
	h.Put(ip)
	ip[0] = 4<<4 | ipLen/4
	binary.BigEndian.PutUint32(ip[wire.IPv4Len:], routerAlert4)
	wire.IPv4(ip).SetChecksum(0)
	wire.IPv4(ip).SetChecksum(wire.Checksum(wire.Sum(ip[:ipLen], 0)))

	m := ip[ipLen:] // RFC 3376, section 4.1
	m[0], m[1] = igmpQuery, putFloat8(uint32(maxResp)*10)
	if g != (group{}) {
		copy(m[4:], to[:])
	}
	m[8], m[9] = robustness, putFloat8(uint32(s.interval))
	binary.BigEndian.PutUint16(m[2:], wire.Checksum(wire.Sum(m, 0)))
	return b
}

func (s *state) question6(g group, maxResp frame.Tick) []byte {
	const alertLen, mldLen = 8, 28
	to := [16]byte(g)
	if g == (group{}) {
		to = allNodes
	}
	b := make([]byte, wire.EthernetLen+wire.IPv6Len+alertLen+mldLen)
	s.ethernet(b, frame.MAC{0x33, 0x33, to[12], to[13], to[14], to[15]}, wire.TypeIPv6)

	ip := b[wire.EthernetLen:]
	h := wire.IPv6Header{NextHeader: wire.ProtoHopByHop, HopLimit: 1, PayloadLen: alertLen + mldLen, Src: linkLocal(s.cfg.MAC), Dst: to}
	h.Put(ip)
	copy(ip[wire.IPv6Len:], []byte{wire.ProtoICMPv6, 0, 5, 2, 0, 0, 1, 0}) // router alert (RFC 2711), PadN

	m := ip[wire.IPv6Len+alertLen:] // RFC 3810, section 5.1
	copy(m[8:], g[:])
	m[24], m[25] = robustness, putFloat8(uint32(s.interval))
	wire.PutICMP(m, mldQuery, 0, uint32(maxResp)*1000<<16, wire.Pseudo6(ip, wire.ProtoICMPv6, mldLen))
	return b
}

// ethernet writes the header of a query.
func (s *state) ethernet(b []byte, dst frame.MAC, etherType uint16) {
	copy(b, dst[:])
	copy(b[6:], s.cfg.MAC[:])
	binary.BigEndian.PutUint16(b[wire.MACsLen:], etherType)
}

// linkLocal returns the link-local address of a MAC (RFC 4291, appendix A).
func linkLocal(m frame.MAC) [16]byte {
	return [16]byte{0xfe, 0x80, 8: m[0] ^ 2, 9: m[1], 10: m[2], 11: 0xff, 12: 0xfe, 13: m[3], 14: m[4], 15: m[5]}
}
