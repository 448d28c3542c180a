package frame_test

import (
	"net"
	"net/netip"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/packets"
)

// TestTupleOf: packets as gopacket makes them, and what is done to them that leaves them without a Tuple.
func TestTupleOf(t *testing.T) {
	type packet struct {
		b  []byte
		is string
	}
	eth := func(typ layers.EthernetType) *layers.Ethernet {
		return &layers.Ethernet{DstMAC: net.HardwareAddr{2, 0, 0, 0, 0, 1}, SrcMAC: net.HardwareAddr{2, 0, 0, 0, 0, 2}, EthernetType: typ}
	}
	make4 := func(p layers.IPProtocol, upper ...gopacket.SerializableLayer) []byte {
		ip := &layers.IPv4{Version: 4, TTL: 64, Protocol: p, SrcIP: net.IP{10, 0, 0, 1}, DstIP: net.IP{10, 0, 0, 2}}
		return packets.Of(append([]gopacket.SerializableLayer{eth(layers.EthernetTypeIPv4), ip}, upper...)...)
	}
	make6 := func(p layers.IPProtocol, upper ...gopacket.SerializableLayer) []byte {
		ip := &layers.IPv6{Version: 6, HopLimit: 64, NextHeader: p, SrcIP: net.ParseIP("fd00::1"), DstIP: net.ParseIP("fd00::2")}
		return packets.Of(append([]gopacket.SerializableLayer{eth(layers.EthernetTypeIPv6), ip}, upper...)...)
	}
	tcp := func() gopacket.SerializableLayer {
		x := &layers.TCP{SrcPort: 40000, DstPort: 80, ACK: true}
		x.SetNetworkLayerForChecksum(&layers.IPv4{SrcIP: net.IP{10, 0, 0, 1}, DstIP: net.IP{10, 0, 0, 2}, Protocol: 6})
		return x
	}
	udp := func() gopacket.SerializableLayer {
		x := &layers.UDP{SrcPort: 40000, DstPort: 53}
		x.SetNetworkLayerForChecksum(&layers.IPv4{SrcIP: net.IP{10, 0, 0, 1}, DstIP: net.IP{10, 0, 0, 2}, Protocol: 17})
		return x
	}
	icmp6 := func(typ uint8) gopacket.SerializableLayer {
		x := &layers.ICMPv6{TypeCode: layers.CreateICMPv6TypeCode(typ, 0)}
		x.SetNetworkLayerForChecksum(&layers.IPv6{SrcIP: net.ParseIP("fd00::1"), DstIP: net.ParseIP("fd00::2"), NextHeader: 58})
		return x
	}
	echo := gopacket.Payload([]byte{0, 1, 0, 2})
	tcp4, udp6 := make4(6, tcp()), make6(17, udp())
	with := func(b []byte, at int, x ...byte) []byte {
		b = append([]byte(nil), b...)
		copy(b[at:], x)
		return b
	}
	for i, c := range []packet{
		{tcp4, "tcp 10.0.0.1:40000 10.0.0.2:80"},
		{make4(17, udp()), "udp 10.0.0.1:40000 10.0.0.2:53"},
		{make4(1, &layers.ICMPv4{TypeCode: layers.CreateICMPv4TypeCode(8, 0)}), "icmp 10.0.0.1 10.0.0.2 8/0"},
		{make4(1, &layers.ICMPv4{TypeCode: layers.CreateICMPv4TypeCode(0, 0)}), "icmp 10.0.0.1 10.0.0.2 0/0"},
		{make4(1, &layers.ICMPv4{TypeCode: layers.CreateICMPv4TypeCode(3, 4)}), ""},
		{make4(47, echo), ""},
		{make6(6, tcp()), "tcp [fd00::1]:40000 [fd00::2]:80"},
		{udp6, "udp [fd00::1]:40000 [fd00::2]:53"},
		{make6(58, icmp6(128), echo), "icmp fd00::1 fd00::2 128/0"},
		{make6(58, icmp6(129), echo), "icmp fd00::1 fd00::2 129/0"},
		{make6(58, icmp6(135), gopacket.Payload(make([]byte, 20))), ""},
		{make6(1, icmp6(8), echo), ""},
		{make4(58, icmp6(128), echo), ""},
		{append(tcp4[:len(tcp4):len(tcp4)], 0, 0, 0), "tcp 10.0.0.1:40000 10.0.0.2:80"}, // padded
		{with(tcp4, 14, 0x46), ""},                                                      // options
		{with(tcp4, 14, 0x65), ""},                                                      // version
		{with(tcp4, 20, 0x20), ""},                                                      // first fragment
		{with(tcp4, 21, 1), ""},                                                         // later one
		{with(tcp4, 16, 0, 39), ""},                                                     // ends within TCP's header
		{with(tcp4, 16, 0, 47), ""},                                                     // longer than the frame
		{with(tcp4, 16, 0, 19), ""},                                                     // than its own header
		{with(udp6, 20, 44), ""},                                                        // fragment
		{with(udp6, 20, 60), ""},                                                        // extension header
		{with(udp6, 18, 0, 7), ""},                                                      // ends within UDP's header
		{with(udp6, 18, 1, 9), ""},                                                      // longer than the frame
		{with(tcp4, 12, 0x81, 0), ""},                                                   // VLAN tag
		{tcp4[:53], ""}, {tcp4[:20], ""},                                                // cut off
		{nil, ""}, {make([]byte, 13), ""}, {make([]byte, 14), ""},
	} {
		x, ok := frame.TupleOf(c.b)
		if x.String() != c.is || ok != (c.is != "") || !ok && x != (frame.Tuple{}) {
			t.Errorf("%d: %v, %v; want %q", i, x, ok, c.is)
		}
		if x.Back().Back() != x {
			t.Errorf("%v, back %v, and again %v", x, x.Back(), x.Back().Back())
		}
	}
	x := frame.Tuple{Protocol: 6, Src: netip.MustParseAddr("10.0.0.1"), Dst: netip.MustParseAddr("10.0.0.2"), SrcPort: 1, DstPort: 2}
	if got := x.Back().String(); got != "tcp 10.0.0.2:2 10.0.0.1:1" {
		t.Error(got)
	}
	if h := x.Hosts(); h.String() != "10.0.0.1 10.0.0.2" || h.Hosts() != h || h.Back().String() != "10.0.0.2 10.0.0.1" {
		t.Errorf("%+v", h)
	}
	for protocol, types := range map[uint8][2]uint16{1: {8, 0}, 58: {128, 129}} {
		x.Protocol, x.SrcPort, x.DstPort = protocol, 0, types[0]<<8
		if got := x.Back(); got.DstPort != types[1]<<8 || got.SrcPort != 0 || got.Src != x.Dst {
			t.Errorf("answer to %v: %v", x, got)
		}
	}
}
