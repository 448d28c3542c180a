package main

import (
	"bytes"
	"net"
	"slices"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"github.com/vxswitch/vxswitch/internal/lab/netns"
	"github.com/vxswitch/vxswitch/internal/lab/packets"
)

// parseMAC and parseIP are for texts of tests.
func parseMAC(s string) net.HardwareAddr {
	m, err := net.ParseMAC(s)
	if err != nil {
		panic(err)
	}
	return m
}

func parseIP(s string) net.IP { return net.ParseIP(s) }

// outer is the headers of a tunnel packet, over IPv4.
type outer struct {
	srcMAC, dstMAC, src, dst string
	tos                      uint8
	header                   []byte // of VXLAN
}

// packet puts the headers in front of a frame.
func (o outer) packet(frame []byte) []byte {
	e := &layers.Ethernet{SrcMAC: parseMAC(o.srcMAC), DstMAC: parseMAC(o.dstMAC), EthernetType: layers.EthernetTypeIPv4}
	ip := &layers.IPv4{Version: 4, TTL: 64, TOS: o.tos, Protocol: layers.IPProtocolUDP, SrcIP: parseIP(o.src), DstIP: parseIP(o.dst)}
	u := &layers.UDP{SrcPort: 55555, DstPort: 4789}
	u.SetNetworkLayerForChecksum(ip)
	return packets.Of(e, ip, u, gopacket.Payload(slices.Concat(o.header, frame)))
}

// note is a frame of no known type, which says text.
func note(src, dst, text string) []byte {
	return slices.Concat(parseMAC(dst), parseMAC(src), []byte{0x88, 0xb5}, []byte(text))
}

const everyone = "ff:ff:ff:ff:ff:ff"

// datagram is a frame of UDP over IPv4 to an address that nobody has, which says text.
func datagram(src, dst string, tos, ttl uint8, text string) []byte {
	e := &layers.Ethernet{SrcMAC: parseMAC(src), DstMAC: parseMAC(dst), EthernetType: layers.EthernetTypeIPv4}
	ip := &layers.IPv4{Version: 4, TTL: ttl, TOS: tos, Flags: layers.IPv4DontFragment, Protocol: layers.IPProtocolUDP, SrcIP: parseIP("192.168.8.1"), DstIP: parseIP("192.168.8.2")}
	u := &layers.UDP{SrcPort: 1000, DstPort: 9}
	u.SetNetworkLayerForChecksum(ip)
	return packets.Of(e, ip, u, gopacket.Payload(text))
}

// withTag puts an 802.1Q tag into a frame.
func withTag(f []byte, vlan byte) []byte {
	return slices.Concat(f[:12], []byte{0x81, 0, 0, vlan}, f[12:])
}

// says reports whether a capture has a packet with text; heard, how many that the host did
// not send.
func says(c *netns.Capture, text string) bool {
	return slices.ContainsFunc(c.Seen(), func(p netns.Packet) bool { return bytes.Contains(p.Data, []byte(text)) })
}

func heard(c *netns.Capture, text string) (n int) {
	for _, p := range c.Seen() {
		if !p.Out && bytes.Contains(p.Data, []byte(text)) {
			n++
		}
	}
	return n
}
