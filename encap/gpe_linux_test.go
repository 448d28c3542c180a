package encap_test

import (
	"fmt"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
	"github.com/vxswitch/vxswitch/internal/lab/packets"
)

// tshark reads the header, and what is behind it. It does not know the B bit.
func TestGPEDecodedByTshark(t *testing.T) {
	var ps []netns.Packet
	var want []string
	for _, c := range []struct {
		vni  frame.VNI
		kind frame.Kind
		bum  bool
		want string
	}{
		{77, frame.IPv4, false, "[77 0 1 1 0 1 eth:ethertype:ip:udp:ip]"},
		{frame.MaxVNI, frame.IPv6, false, "[16777215 0 1 1 0 2 eth:ethertype:ip:udp:ipv6]"},
		{1, frame.Ethernet, false, "[1 0 1 1 0 3 eth:ethertype:ip:udp:eth:ethertype:ip]"},
		{2, frame.Ethernet, true, "[2 0 1 1 0 3 eth:ethertype:ip:udp:eth:ethertype:ip]"},
	} {
		b := make([]byte, encap.VXLANLen)
		encap.PutGPE(b, c.vni, c.kind, c.bum)
		ps = append(ps, inGPE(b, c.kind))
		want = append(want, c.want)
	}
	reads(t, ps, want, "vxlan.vni", "vxlan.ver", "vxlan.i_bit", "vxlan.p_bit", "vxlan.o_bit", "vxlan.next_proto", "frame.protocols")
}

// inGPE returns a UDP packet to the port of VXLAN-GPE with headers and a packet of a kind.
func inGPE(headers []byte, kind frame.Kind) netns.Packet {
	eth := &layers.Ethernet{SrcMAC: []byte{2, 0, 0, 0, 0, 1}, DstMAC: []byte{2, 0, 0, 0, 0, 2}, EthernetType: layers.EthernetTypeIPv4}
	ip4 := &layers.IPv4{Version: 4, TTL: 9, Protocol: 253, SrcIP: []byte{10, 0, 0, 1}, DstIP: []byte{10, 0, 0, 2}}
	ip6 := &layers.IPv6{Version: 6, HopLimit: 9, NextHeader: 59, SrcIP: make([]byte, 16), DstIP: make([]byte, 16)}
	inside := map[frame.Kind][]byte{
		frame.Ethernet: packets.Of(eth, ip4), frame.IPv4: packets.Of(ip4), frame.IPv6: packets.Of(ip6),
	}
	outer := &layers.IPv4{Version: 4, TTL: 64, Protocol: layers.IPProtocolUDP, SrcIP: []byte{192, 0, 2, 1}, DstIP: []byte{192, 0, 2, 2}}
	udp := &layers.UDP{SrcPort: 50000, DstPort: encap.GPEPort}
	udp.SetNetworkLayerForChecksum(outer)
	return netns.Packet{Data: packets.Of(eth, outer, udp, gopacket.Payload(append(headers, inside[kind]...)))}
}

// reads fails the test unless tshark reads these fields in packets.
func reads(t *testing.T, ps []netns.Packet, want []string, fields ...string) {
	t.Helper()
	rows := netns.Fields(t, ps, "", fields...)
	if len(rows) != len(want) {
		t.Fatalf("%v", rows)
	}
	for i, r := range rows {
		if got := fmt.Sprint(r); got != want[i] {
			t.Errorf("tshark reads %s, want %s", got, want[i])
		}
	}
}
