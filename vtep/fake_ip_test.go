package vtep

import (
	"encoding/binary"
	"net"
	"net/netip"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/packets"
	"github.com/vxswitch/vxswitch/internal/wire"
)

// A rawFake is an underlay of raw IP without a network: it has no ports, says of what kind
// each packet is, and tells of peers that are not reached.
type rawFake struct {
	*fake
	kinds       []frame.Kind // parallel to in
	unreachable func(to frame.Endpoint, quoted []byte)
}

func raw4() *rawFake {
	return &rawFake{fake: &fake{local: netip.AddrPortFrom(local4.Addr(), 0), mtu: 1500}}
}

func raw6() *rawFake {
	return &rawFake{fake: &fake{local: netip.AddrPortFrom(local6.Addr(), 0), mtu: 1500}}
}

func (u *rawFake) Readers() []frame.Reader                           { return []frame.Reader{u} }
func (u *rawFake) Unreachable(f func(to frame.Endpoint, b []byte))   { u.unreachable = f }
func (u *rawFake) add(t testing.TB, from netip.AddrPort, p ipPacket) { u.addTOS(t, from, p, 0) }

func (u *rawFake) addTOS(t testing.TB, from netip.AddrPort, p ipPacket, tos uint8) {
	t.Helper()
	u.in = append(u.in, packetIn{src: endpoint(t, from), data: append([]byte(nil), p.data...), tos: tos})
	u.kinds = append(u.kinds, p.kind)
}

func (u *rawFake) Read(b *frame.Batch) error {
	if err := u.fake.Read(b); err != nil {
		return err
	}
	for i := range b.Frames {
		b.Frames[i].Kind = u.kinds[i]
	}
	u.kinds = u.kinds[:0]
	return nil
}

// host is an address without a port.
func host(a netip.AddrPort) netip.AddrPort { return netip.AddrPortFrom(a.Addr(), 0) }

// An ipPacket is a packet without Ethernet, of the kind that somebody says it is.
type ipPacket struct {
	kind frame.Kind
	data []byte
}

func bare4(tos, ttl byte, df bool) ipPacket { return ipPacket{frame.IPv4, ip4(tos, ttl, df)[14:]} }
func bare6(class, limit byte) ipPacket      { return ipPacket{frame.IPv6, ip6(class, limit)[14:]} }

// between is a packet from one host to another.
func between(t testing.TB, src, dst string) ipPacket {
	t.Helper()
	s, d := netip.MustParseAddr(src), netip.MustParseAddr(dst)
	if s.Is4() {
		p := bare4(0, 64, true)
		copy(p.data[12:], s.AsSlice())
		copy(p.data[16:], d.AsSlice())
		return p
	}
	p := bare6(0, 64)
	copy(p.data[8:], s.AsSlice())
	copy(p.data[24:], d.AsSlice())
	return p
}

// out is the packet on its way to a peer.
func (p ipPacket) out(peer uint16, tag uint32) frame.Out {
	f := frame.Make(p.data)
	f.Kind = p.kind
	return frame.Out{F: &f, Peer: peer, Tag: tag}
}

// gpe returns a packet behind a header.
func gpe(n frame.VNI, kind frame.Kind, bum bool, b []byte) []byte {
	h := make([]byte, encap.VXLANLen)
	encap.PutGPE(h, n, kind, bum)
	return append(h, b...)
}

// tcpPacket is a bare TCP packet with a payload of n bytes, as gopacket writes it.
func tcpPacket(t testing.TB, v6 bool, n int) ipPacket {
	t.Helper()
	payload := make([]byte, n)
	for i := range payload {
		payload[i] = byte(i * 7)
	}
	tcp := &layers.TCP{SrcPort: 1000, DstPort: 2000, Seq: 77, Ack: 5, ACK: true, PSH: true, Window: 500}
	var ip gopacket.SerializableLayer
	kind := frame.IPv4
	if v6 {
		x := &layers.IPv6{Version: 6, HopLimit: 9, TrafficClass: 0xb8 | ect0, NextHeader: layers.IPProtocolTCP, SrcIP: net.ParseIP("fd00::1"), DstIP: net.ParseIP("fd00::2")}
		tcp.SetNetworkLayerForChecksum(x)
		ip, kind = x, frame.IPv6
	} else {
		x := &layers.IPv4{Version: 4, TTL: 9, TOS: 0xb8 | ect0, Protocol: layers.IPProtocolTCP, Flags: layers.IPv4DontFragment, SrcIP: net.IP{192, 168, 7, 1}, DstIP: net.IP{192, 168, 7, 2}}
		tcp.SetNetworkLayerForChecksum(x)
		ip = x
	}
	return ipPacket{kind, packets.Of(ip, tcp, gopacket.Payload(payload))}
}

// unfinish puts the sum of the pseudo header in the place of a TCP checksum.
func (p ipPacket) unfinish() ipPacket {
	at := wire.IPv4Len
	if p.kind == frame.IPv6 {
		at = wire.IPv6Len
	}
	n := len(p.data) - at
	sum := wire.Pseudo4(p.data, wire.ProtoTCP, n)
	if p.kind == frame.IPv6 {
		sum = wire.Pseudo6(p.data, wire.ProtoTCP, n)
	}
	binary.BigEndian.PutUint16(p.data[at+wire.TCPChecksum:], wire.Fold(sum))
	return p
}

// superframe makes a superframe of the packet, cut into segments of size bytes.
func (p ipPacket) superframe(size int) frame.Frame {
	p.unfinish()
	f := frame.Make(p.data)
	at, typ := f.Headroom()+wire.IPv4Len, frame.GSOTCP4
	if p.kind == frame.IPv6 {
		at, typ = f.Headroom()+wire.IPv6Len, frame.GSOTCP6
	}
	f.Kind = p.kind
	f.GSO = frame.GSO{Flags: frame.NeedsCsum, Type: typ, Size: uint16(size), CsumStart: uint16(at), CsumOffset: wire.TCPChecksum, DataStart: uint16(at + wire.TCPLen)}
	return f
}
