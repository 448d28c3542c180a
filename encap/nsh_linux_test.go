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

// tshark reads NSH in VXLAN-GPE, and what is behind it.
func TestNSHDecodedByTshark(t *testing.T) {
	eth := &layers.Ethernet{SrcMAC: []byte{2, 0, 0, 0, 0, 1}, DstMAC: []byte{2, 0, 0, 0, 0, 2}, EthernetType: layers.EthernetTypeIPv4}
	ip4 := &layers.IPv4{Version: 4, TTL: 9, Protocol: 253, SrcIP: []byte{10, 0, 0, 1}, DstIP: []byte{10, 0, 0, 2}}
	ip6 := &layers.IPv6{Version: 6, HopLimit: 9, NextHeader: 59, SrcIP: make([]byte, 16), DstIP: make([]byte, 16)}
	inside := map[frame.Kind][]byte{
		frame.Ethernet: packets.Of(eth, ip4), frame.IPv4: packets.Of(ip4), frame.IPv6: packets.Of(ip6),
	}
	var ps []netns.Packet
	var want []string
	for _, c := range []struct {
		path  uint32
		index uint8
		kind  frame.Kind
		md    uint8
		data  string
		hops  int
		want  string
	}{
		{0x123456, 255, frame.Ethernet, encap.MDFixed, "0123456789abcdef", 0, "[0 0x003f 6 1 3 1193046 255 eth:ethertype:ip:udp:nsh:eth:ethertype:ip]"},
		{encap.MaxPath, 1, frame.IPv4, encap.MDVariable, "", 1, "[0 0x003e 2 2 1 16777215 1 eth:ethertype:ip:udp:nsh:ip]"},
		{1, 128, frame.IPv6, encap.MDVariable, "\x01\x02\x03\x04abcd", 62, "[0 0x0001 4 2 2 1 128 eth:ethertype:ip:udp:nsh:ipv6]"},
	} {
		head := make([]byte, encap.VXLANLen)
		encap.PutGPE(head, 77, c.kind, false)
		head[encap.GPENextAt] = byte(encap.NextNSH)
		b := encap.AppendNSH(nil, c.path, c.index, c.kind, c.md, []byte(c.data))
		for range c.hops {
			encap.NSH(b).Hop()
		}
		outer := &layers.IPv4{Version: 4, TTL: 64, Protocol: layers.IPProtocolUDP, SrcIP: []byte{192, 0, 2, 1}, DstIP: []byte{192, 0, 2, 2}}
		udp := &layers.UDP{SrcPort: 50000, DstPort: encap.GPEPort}
		udp.SetNetworkLayerForChecksum(outer)
		ps = append(ps, netns.Packet{Data: packets.Of(eth, outer, udp, gopacket.Payload(append(append(head, b...), inside[c.kind]...)))})
		want = append(want, c.want)
	}
	rows := netns.Fields(t, ps, "", "nsh.version", "nsh.ttl", "nsh.length", "nsh.mdtype", "nsh.nextproto", "nsh.spi", "nsh.si", "frame.protocols")
	if len(rows) != len(want) {
		t.Fatalf("%v", rows)
	}
	for i, r := range rows {
		if got := fmt.Sprint(r); got != want[i] {
			t.Errorf("tshark reads %s, want %s", got, want[i])
		}
	}
}
