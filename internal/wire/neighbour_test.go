package wire

import (
	"bytes"
	"encoding/binary"
	"net"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"github.com/vxswitch/vxswitch/internal/lab/packets"
)

var (
	hereMAC  = [6]byte{2, 0, 0, 0, 0, 1}
	thereMAC = [6]byte{2, 0, 0, 0, 0, 2}
)

func arpPacket(t testing.TB, op uint16) []byte {
	return packets.Of(&layers.ARP{
		AddrType: layers.LinkTypeEthernet, Protocol: layers.EthernetTypeIPv4, HwAddressSize: 6, ProtAddressSize: 4, Operation: op,
		SourceHwAddress: hereMAC[:], SourceProtAddress: []byte{192, 0, 2, 1}, DstHwAddress: thereMAC[:], DstProtAddress: []byte{192, 0, 2, 2},
	})
}

func TestARP(t *testing.T) {
	b := arpPacket(t, ARPRequest)
	if len(b) != ARPLen {
		t.Fatalf("%d bytes", len(b))
	}
	a, ok := ParseARP(append(bytes.Clone(b), make([]byte, 18)...)) // padded
	if !ok || len(a) != ARPLen || cap(a) != ARPLen {
		t.Fatalf("%v, %d bytes", ok, len(a))
	}
	if a.Op() != ARPRequest || a.SenderMAC() != hereMAC || a.SenderIP() != [4]byte{192, 0, 2, 1} || a.TargetMAC() != thereMAC || a.TargetIP() != [4]byte{192, 0, 2, 2} {
		t.Errorf("% x", a)
	}
	PutARP(a, ARPReply, hereMAC, a.SenderIP(), thereMAC, a.TargetIP())
	want := arpPacket(t, ARPReply)
	if !bytes.Equal(a, want) {
		t.Errorf("put: % x, want % x", a, want)
	}
	a.SetSenderMAC([6]byte{1, 2, 3, 4, 5, 6})
	a.SetTargetMAC([6]byte{7, 8, 9, 10, 11, 12})
	copy(want[8:], []byte{1, 2, 3, 4, 5, 6})
	copy(want[18:], []byte{7, 8, 9, 10, 11, 12})
	if !bytes.Equal(a, want) {
		t.Errorf("set: % x, want % x", a, want)
	}
	if _, ok := ParseARP(b[:ARPLen-1]); ok {
		t.Error("27 bytes: taken")
	}
	for at := range 6 {
		bad := bytes.Clone(b)
		bad[at] ^= 1
		if _, ok := ParseARP(bad); ok {
			t.Errorf("octet %d changed: taken", at)
		}
	}
}

// ndPacket returns an IPv6 packet with a message of gopacket's.
func ndPacket(t testing.TB, typ, code uint8, body gopacket.SerializableLayer) []byte {
	ip := &layers.IPv6{Version: 6, NextHeader: layers.IPProtocolICMPv6, HopLimit: 255, SrcIP: net.ParseIP("fe80::1"), DstIP: net.ParseIP("fe80::2")}
	icmp := &layers.ICMPv6{TypeCode: layers.CreateICMPv6TypeCode(typ, code)}
	icmp.SetNetworkLayerForChecksum(ip)
	return packets.Of(ip, icmp, body)
}

var ndTarget = net.ParseIP("2001:db8::7")

// linkLayer is options of which one says hereMAC. gopacket writes the last one first.
func linkLayer(option layers.ICMPv6Opt) layers.ICMPv6Options {
	return layers.ICMPv6Options{
		{Type: option, Data: thereMAC[:]}, // the first one counts
		{Type: option, Data: hereMAC[:]},
		{Type: option, Data: append([]byte{9, 9, 9, 9, 9, 9}, make([]byte, 8)...)}, // two units: not of Ethernet
		{Type: layers.ICMPv6OptMTU, Data: []byte{0, 0, 0, 0, 5, 0xdc}},
	}
}

func TestND(t *testing.T) {
	for _, c := range []struct {
		typ     uint8
		body    gopacket.SerializableLayer
		option  uint8
		other   uint8
		target  bool
		flags   uint8
		noFlags bool
	}{
		{RouterSolicitation, &layers.ICMPv6RouterSolicitation{Options: linkLayer(1)}, SourceLinkLayer, TargetLinkLayer, false, 0, true},
		{RouterAdvertisement, &layers.ICMPv6RouterAdvertisement{HopLimit: 64, RouterLifetime: 1800, Options: linkLayer(1)}, SourceLinkLayer, TargetLinkLayer, false, 0, true},
		{NeighbourSolicitation, &layers.ICMPv6NeighborSolicitation{TargetAddress: ndTarget, Options: linkLayer(1)}, SourceLinkLayer, TargetLinkLayer, true, 0, false},
		{NeighbourAdvert, &layers.ICMPv6NeighborAdvertisement{Flags: 0xa0, TargetAddress: ndTarget, Options: linkLayer(2)}, TargetLinkLayer, SourceLinkLayer, true, NARouter | NAOverride, false},
	} {
		b := ndPacket(t, c.typ, 0, c.body)
		p, ok := ParseIPv6(b)
		if !ok {
			t.Fatal("no IPv6")
		}
		n, ok := ParseND(p)
		if !ok || n.Type() != c.typ || !n.Valid(p) {
			t.Errorf("type %d: %v, % x", c.typ, ok, n)
			continue
		}
		if c.target && (n.Target() != [16]byte(ndTarget) || n.Flags() != c.flags) {
			t.Errorf("type %d: target %x, flags %#x", c.typ, n.Target(), n.Flags())
		}
		if mac, ok := n.LinkLayer(c.option); !ok || mac != hereMAC {
			t.Errorf("type %d: link layer %x, %v", c.typ, mac, ok)
		}
		if mac, ok := n.LinkLayer(c.other); ok {
			t.Errorf("type %d: the other option %x", c.typ, mac)
		}
		was := bytes.Clone(n)
		if n.SetLinkLayer(c.other, thereMAC) || !bytes.Equal(n, was) {
			t.Errorf("type %d: set an option it has not", c.typ)
		}
		if !n.SetLinkLayer(c.option, thereMAC) {
			t.Errorf("type %d: not set", c.typ)
		}
		if mac, _ := n.LinkLayer(c.option); mac != thereMAC || n.Valid(p) {
			t.Errorf("type %d: %x, the checksum is still right: %v", c.typ, mac, n.Valid(p))
		}
		if n.SetChecksum(p); !n.Valid(p) {
			t.Errorf("type %d: checksum", c.typ)
		}
	}
}

// What RFC 4861 has nodes discard.
func TestNDRefused(t *testing.T) {
	ns := &layers.ICMPv6NeighborSolicitation{TargetAddress: ndTarget, Options: layers.ICMPv6Options{{Type: 1, Data: hereMAC[:]}}}
	good := ndPacket(t, NeighbourSolicitation, 0, ns)
	set := func(at int, x byte) []byte {
		b := bytes.Clone(good)
		b[at] = x
		return b
	}
	cut := func(payload int) []byte {
		b := bytes.Clone(good[:IPv6Len+payload])
		b[5] = byte(payload)
		return b
	}
	for name, c := range map[string]struct {
		b    []byte
		want bool
	}{
		"good": {good, true}, "without options": {cut(24), true}, "hop limit 254": {set(7, 254), false}, "hop limit 0": {set(7, 0), false},
		"code 1": {set(41, 1), false}, "UDP": {set(6, 17), false}, "fragment": {set(6, 44), false}, "echo": {set(40, 128), false},
		"redirect": {set(40, 137), false}, "type 132": {set(40, 132), false}, "option of length 0": {set(65, 0), false},
		"option past the end": {set(65, 2), false}, "option of 255 units": {set(65, 255), false}, "no payload": {cut(0), false}, "4 bytes": {cut(4), false},
		"no target": {cut(8), false}, "part of a target": {cut(23), false}, "one octet of an option": {cut(25), false}, "part of an option": {cut(31), false},
	} {
		p, ok := ParseIPv6(c.b)
		if !ok {
			t.Fatalf("%s: no IPv6", name)
		}
		if _, ok := ParseND(p); ok != c.want {
			t.Errorf("%s: %v", name, ok)
		}
	}
	p := IPv6(set(43, good[43]^1))
	if n, ok := ParseND(p); !ok || n.Valid(p) {
		t.Error("a wrong checksum is right")
	}
}

func TestPutNeighbour(t *testing.T) {
	for _, c := range []struct {
		typ, flags uint8
		body       gopacket.SerializableLayer
	}{
		{NeighbourAdvert, NASolicited | NAOverride, &layers.ICMPv6NeighborAdvertisement{Flags: 0x60, TargetAddress: ndTarget, Options: layers.ICMPv6Options{{Type: 2, Data: hereMAC[:]}}}},
		{NeighbourSolicitation, 0, &layers.ICMPv6NeighborSolicitation{TargetAddress: ndTarget, Options: layers.ICMPv6Options{{Type: 1, Data: hereMAC[:]}}}},
	} {
		want := ndPacket(t, c.typ, 0, c.body)
		got := bytes.Repeat([]byte{0xee}, len(want)) // every octet is written
		h := IPv6Header{
			NextHeader: ProtoICMPv6, HopLimit: 255, PayloadLen: uint16(len(want) - IPv6Len),
			Src: [16]byte(net.ParseIP("fe80::1")), Dst: [16]byte(net.ParseIP("fe80::2")),
		}
		h.Put(got)
		PutNeighbour(got[IPv6Len:], c.typ, c.flags, [16]byte(ndTarget), hereMAC).SetChecksum(got)
		if !bytes.Equal(got, want) {
			t.Errorf("type %d:\n% x, gopacket\n% x", c.typ, got, want)
		}
	}
}

func TestSolicitedNode(t *testing.T) {
	for target, want := range map[string]string{ // RFC 4291, section 2.7.1
		"4037::1:800:200e:8c6c": "ff02::1:ff0e:8c6c", "::1": "ff02::1:ff00:1", "fe80::ffff:ffff:ffff:ffff": "ff02::1:ffff:ffff",
	} {
		if got := SolicitedNode([16]byte(net.ParseIP(target))); !net.IP(got[:]).Equal(net.ParseIP(want)) {
			t.Errorf("%s: %v, want %s", target, net.IP(got[:]), want)
		}
	}
}

// decoded has gopacket decode, and reports whether it did: its decoders may panic on what
// is cut short.
func decoded(l gopacket.DecodingLayer, b []byte) (ok bool) {
	defer func() {
		if recover() != nil {
			ok = false
		}
	}()
	return l.DecodeFromBytes(b, gopacket.NilDecodeFeedback) == nil
}

// FuzzARP: parsing takes what it says it takes, and reads what gopacket reads.
func FuzzARP(f *testing.F) {
	f.Add(arpPacket(f, 1))
	f.Add(append(arpPacket(f, 2), make([]byte, 18)...))
	f.Add(arpPacket(f, 1)[:27])
	f.Fuzz(func(t *testing.T, b []byte) {
		in := bytes.Clone(b)
		a, ok := ParseARP(b)
		var l layers.ARP
		// gopacket keeps one of the two octets of the hardware type.
		ours := decoded(&l, b) && b[0] == 0 && l.AddrType == layers.LinkTypeEthernet && l.Protocol == layers.EthernetTypeIPv4 && l.HwAddressSize == 6 && l.ProtAddressSize == 4
		if ok != ours {
			t.Fatalf("taken: %v, by gopacket: %v", ok, ours)
		}
		if !ok {
			return
		}
		mac, ip, to, toIP := a.SenderMAC(), a.SenderIP(), a.TargetMAC(), a.TargetIP()
		if a.Op() != l.Operation || !bytes.Equal(mac[:], l.SourceHwAddress) || !bytes.Equal(ip[:], l.SourceProtAddress) ||
			!bytes.Equal(to[:], l.DstHwAddress) || !bytes.Equal(toIP[:], l.DstProtAddress) {
			t.Errorf("% x\n%+v", a, l)
		}
		PutARP(a, a.Op(), mac, ip, to, toIP)
		a.SetSenderMAC(mac)
		a.SetTargetMAC(to)
		if !bytes.Equal(b, in) {
			t.Errorf("put: % x, was % x", b, in)
		}
	})
}

// FuzzND: parsing never panics, nor does anything after it; what it takes gopacket reads
// likewise; a checksum that was made is right, and right only for that packet.
func FuzzND(f *testing.F) {
	f.Add(ndPacket(f, 133, 0, &layers.ICMPv6RouterSolicitation{Options: linkLayer(1)}))
	f.Add(ndPacket(f, 134, 0, &layers.ICMPv6RouterAdvertisement{HopLimit: 64, Options: linkLayer(1)}))
	f.Add(ndPacket(f, 135, 0, &layers.ICMPv6NeighborSolicitation{TargetAddress: ndTarget, Options: linkLayer(1)}))
	f.Add(ndPacket(f, 136, 0, &layers.ICMPv6NeighborAdvertisement{Flags: 0xe0, TargetAddress: ndTarget, Options: linkLayer(2)}))
	f.Add(ndPacket(f, 135, 0, &layers.ICMPv6NeighborSolicitation{TargetAddress: ndTarget}))
	f.Fuzz(func(t *testing.T, b []byte) {
		p, ok := ParseIPv6(b)
		if !ok {
			return
		}
		n, ok := ParseND(p)
		if !ok {
			return
		}
		var opts layers.ICMPv6Options
		var target net.IP
		flags, takes := uint8(0), false
		switch n.Type() {
		case RouterSolicitation:
			var l layers.ICMPv6RouterSolicitation
			takes = decoded(&l, n[4:])
			opts = l.Options
		case RouterAdvertisement:
			var l layers.ICMPv6RouterAdvertisement
			takes = decoded(&l, n[4:])
			opts = l.Options
		case NeighbourSolicitation:
			var l layers.ICMPv6NeighborSolicitation
			takes = decoded(&l, n[4:])
			opts, target, flags = l.Options, l.TargetAddress, n.Flags()
		case NeighbourAdvert:
			var l layers.ICMPv6NeighborAdvertisement
			takes = decoded(&l, n[4:])
			opts, target, flags = l.Options, l.TargetAddress, l.Flags
		default:
			t.Fatalf("type %d taken", n.Type())
		}
		if !takes {
			t.Fatalf("gopacket does not take % x", n)
		}
		if target != nil {
			if got := n.Target(); !bytes.Equal(got[:], target) || n.Flags() != flags {
				t.Errorf("target %x, flags %#x; gopacket: %x, %#x", got, n.Flags(), target, flags)
			}
		}
		for _, option := range []uint8{SourceLinkLayer, TargetLinkLayer} {
			want, has := [6]byte{}, false
			for _, o := range opts {
				if uint8(o.Type) == option && len(o.Data) == 6 && !has {
					want, has = [6]byte(o.Data), true
				}
			}
			got, ok := n.LinkLayer(option)
			if got != want || ok != has {
				t.Errorf("option %d: %x, %v; gopacket: %x, %v", option, got, ok, want, has)
			}
			if n.SetLinkLayer(option, got) != has {
				t.Errorf("option %d: set, %v", option, !has)
			}
		}
		n.Valid(p)
		n.SetChecksum(p)
		if !n.Valid(p) {
			t.Errorf("checksum: % x", p)
		}
		if sum := binary.BigEndian.Uint16(n[2:]); sum != 0xffff {
			n[2] ^= 1
			if n.Valid(p) {
				t.Errorf("checksum %#x is not looked at: % x", sum, p)
			}
		}
	})
}
