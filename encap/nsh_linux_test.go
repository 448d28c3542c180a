package encap_test

import (
	"testing"

	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// tshark reads NSH in VXLAN-GPE, and what is behind it.
func TestNSHDecodedByTshark(t *testing.T) {
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
		ps = append(ps, inGPE(append(head, b...), c.kind))
		want = append(want, c.want)
	}
	reads(t, ps, want, "nsh.version", "nsh.ttl", "nsh.length", "nsh.mdtype", "nsh.nextproto", "nsh.spi", "nsh.si", "frame.protocols")
}
