package wire

import (
	"bytes"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
)

// FuzzIP: what is a packet to us is the same to gopacket, and the other way round as far as
// gopacket looks; whatever the extension headers, what is behind them lies in the packet.
func FuzzIP(f *testing.F) {
	v4 := make([]byte, 28)
	(&IPv4Header{TTL: 9, Protocol: ProtoUDP, TotalLen: 28, DF: true, Src: [4]byte{10, 0, 0, 1}, Dst: [4]byte{10, 0, 0, 2}}).Put(v4)
	v6 := make([]byte, 64)
	(&IPv6Header{NextHeader: ProtoFragment, HopLimit: 9, PayloadLen: 24, Src: [16]byte{0xfd, 15: 1}, Dst: [16]byte{0xfd, 15: 2}}).Put(v6)
	copy(v6[40:], []byte{ProtoDstOpts, 0, 0, 1, 0, 0, 0, 7, ProtoTCP})
	f.Add(v4)
	f.Add(v6)
	f.Add(append(bytes.Clone(v6), 1, 2, 3)) // padding
	f.Add(v6[:50])
	f.Fuzz(func(t *testing.T, b []byte) {
		if p, ok := ParseIPv4(b); ok {
			var ip layers.IPv4
			if err := ip.DecodeFromBytes(b, gopacket.NilDecodeFeedback); err != nil {
				if p.HeaderLen() == IPv4Len { // of options it asks more
					t.Fatalf("gopacket: %v", err)
				}
				return
			}
			if ip.Version != 4 || int(ip.IHL)*4 != p.HeaderLen() || int(ip.Length) != len(p) || ip.Id != p.ID() || uint8(ip.Protocol) != p.Protocol() ||
				(ip.Flags&layers.IPv4DontFragment != 0) != p.DF() || int(ip.FragOffset)*8 != p.FragmentOffset() || !bytes.Equal(ip.Payload, p.Payload()) ||
				(ip.Flags&layers.IPv4MoreFragments != 0 || ip.FragOffset != 0) != p.Fragment() || [4]byte(ip.SrcIP) != p.Src() || [4]byte(ip.DstIP) != p.Dst() {
				t.Fatalf("% x: gopacket has %+v", p, ip)
			}
			if want := Fold(Sum(b[:p.HeaderLen()], 0)) == 0xffff; p.ChecksumOK() != want {
				t.Fatalf("checksum of % x: %v", b, !want)
			}
		}
		if p, ok := ParseIPv6(b); ok {
			var ip layers.IPv6
			err := ip.DecodeFromBytes(b, gopacket.NilDecodeFeedback)
			if err == nil && ip.HopByHop == nil && p.PayloadLen() > 0 && (!bytes.Equal(ip.Payload, p[IPv6Len:]) || uint8(ip.NextHeader) != p.NextHeader() || [16]byte(ip.SrcIP) != p.Src() || [16]byte(ip.DstIP) != p.Dst()) {
				t.Fatalf("% x: gopacket has %+v", p, ip)
			}
			u, whole := p.Upper()
			if u.At < IPv6Len || u.At > len(p) || u.Fragment != 0 && (u.Fragment < IPv6Len || u.Fragment+8 > u.At) || u.Later && u.Fragment == 0 {
				t.Fatalf("% x: %+v", p, u)
			}
			if whole && !u.Later {
				switch u.Protocol {
				case ProtoHopByHop, ProtoRouting, ProtoFragment, ProtoAuth, ProtoDstOpts, protoMobility, protoHIP, protoShim6:
					t.Fatalf("% x: %+v", p, u)
				}
			}
		}
	})
}
