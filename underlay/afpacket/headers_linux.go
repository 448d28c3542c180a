package afpacket

import (
	"encoding/binary"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/datagrams"
	"github.com/vxswitch/vxswitch/internal/wire"
)

// headers writes the headers of a frame with n bytes of payload, without UDP checksum, to b. IP-in-IP has no UDP header.
//
// A datagram without DF may be fragmented, and needs its own identification (RFC 6864, section 4.3); whoever cuts
// a run counts on from there.
func (s *sender) headers(b []byte, mac frame.MAC, d *frame.Datagram, to *frame.Endpoint, n int) {
	p := s.p
	copy(b, mac[:])
	copy(b[6:], p.mac[:])
	ttl := d.TTL
	if ttl == 0 {
		ttl = uint8(p.cfg.DefaultTTL)
	}
	ip, length := b[p.eth:], p.udp+n
	if p.cfg.VLAN != 0 {
		putTag(b, p.cfg.VLAN)
	}
	typ := b[p.eth-2:]
	if p.is4 {
		typ[0], typ[1] = wire.TypeIPv4>>8, wire.TypeIPv4&0xff
		h := wire.IPv4Header{
			TOS: d.TOS, TTL: ttl, Protocol: s.proto, DF: d.DF, TotalLen: uint16(wire.IPv4Len + length),
			Src: [4]byte(p.messenger.ip[12:]), Dst: [4]byte(to.IP[12:]),
		}
		if !d.DF {
			h.ID = uint16(p.id.Add(datagrams.MaxSegs))
		}
		h.Put(ip)
		ip = ip[wire.IPv4Len:]
	} else {
		typ[0], typ[1] = wire.TypeIPv6>>8, wire.TypeIPv6&0xff
		h := wire.IPv6Header{NextHeader: s.proto, HopLimit: ttl, PayloadLen: uint16(length), Src: p.messenger.ip, Dst: to.IP}
		h.Put(ip)
		binary.BigEndian.PutUint32(ip, 6<<28|uint32(d.TOS)<<20|datagrams.Label(d.Flow))
		ip = ip[wire.IPv6Len:]
	}
	if p.raw {
		return
	}
	binary.BigEndian.PutUint16(ip, s.set.lo+uint16(uint32(d.Flow)*s.set.n>>16))
	binary.BigEndian.PutUint16(ip[2:], to.Port)
	binary.BigEndian.PutUint16(ip[4:], uint16(length))
	ip[6], ip[7] = 0, 0
}

// putTag writes an 802.1Q tag of priority 0 behind the MACs.
func putTag(b []byte, vlan uint16) {
	binary.BigEndian.PutUint16(b[12:], wire.TypeVLAN)
	binary.BigEndian.PutUint16(b[14:], vlan)
}

// pseudo returns the sum of the pseudo header.
func (s *sender) pseudo(b []byte, n int) uint64 {
	if s.p.is4 {
		return wire.Pseudo4(b[s.p.eth:], wire.ProtoUDP, wire.UDPLen+n)
	}
	return wire.Pseudo6(b[s.p.eth:], wire.ProtoUDP, wire.UDPLen+n)
}

// setSum completes the checksum of a UDP header.
func (s *sender) setSum(u wire.UDP, pseudo, payload uint64) {
	c := wire.Checksum(wire.Sum(u[:wire.UDPLen], pseudo+uint64(wire.Fold(payload))))
	if c == 0 {
		c = 0xffff // 0 means that there is none (RFC 768)
	}
	u.SetChecksum(c)
}

// payload returns the sum of a payload in pieces. Copies of one datagram share it.
func (s *sender) payload(iov []unix.Iovec, d *frame.Datagram, n int) (sum uint64) {
	lone := d.Seg == 0
	if lone && s.paid {
		return s.paySum
	}
	odd := false
	for _, v := range iov {
		part := uint64(wire.Fold(wire.Sum(unsafe.Slice(v.Base, int(v.Len)), 0)))
		if odd { // RFC 1071, section 2(B)
			part = part>>8 | part&0xff<<8
		}
		sum += part
		odd = odd != (v.Len&1 == 1)
	}
	s.paid, s.paySum = lone, sum
	return sum
}
