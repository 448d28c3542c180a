package wire

import (
	"bytes"
	"net"
	"net/netip"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"github.com/vxswitch/vxswitch/internal/lab/packets"
)

func TestIPv4(t *testing.T) {
	l := &layers.IPv4{
		Version: 4, IHL: 6, TOS: 0xb8, Id: 0x1234, Flags: layers.IPv4DontFragment, FragOffset: 5, TTL: 61, Protocol: layers.IPProtocolUDP,
		SrcIP: net.IP{10, 1, 2, 3}, DstIP: net.IP{10, 4, 5, 6},
		Options: []layers.IPv4Option{{OptionType: 1}, {OptionType: 1}, {OptionType: 1}, {OptionType: 0}},
	}
	b := append(packets.Of(l, gopacket.Payload("payload")), 0, 0, 0) // padding
	p, ok := ParseIPv4(b)
	if !ok || p.HeaderLen() != 24 || len(p) != 31 || string(p.Payload()) != "payload" || !p.DF() || p.FragmentOffset() != 40 ||
		p.Protocol() != ProtoUDP || p.Src() != [4]byte{10, 1, 2, 3} || p.Dst() != [4]byte{10, 4, 5, 6} || !p.ChecksumOK() {
		t.Errorf("%v: % x", ok, p)
	}
	for i := range 24 {
		p[i] ^= 0x40
		if i > 0 && p.ChecksumOK() {
			t.Errorf("byte %d changed, and the checksum is right", i)
		}
		p[i] ^= 0x40
	}
	for name, bad := range map[string][]byte{
		"short": b[:19], "empty": nil, "version": append([]byte{0x65}, b[1:]...), "IHL": append([]byte{0x44}, b[1:]...),
		"IHL beyond the packet": append([]byte{0x4f}, b[1:]...), "cut short": b[:30],
	} {
		if _, ok := ParseIPv4(bad); ok {
			t.Errorf("%s: taken", name)
		}
	}
}

func TestMapped(t *testing.T) {
	a := netip.MustParseAddr("192.0.2.1")
	if got := Mapped(a.As4()); got != a.As16() {
		t.Errorf("% x, want % x", got, a.As16())
	}
}

func TestIPv4HeaderPut(t *testing.T) {
	h := IPv4Header{TOS: 0xc0, TTL: 64, Protocol: ProtoICMP, ID: 7, DF: true, TotalLen: 24, Src: [4]byte{10, 0, 0, 1}, Dst: [4]byte{10, 0, 0, 2}}
	b := bytes.Repeat([]byte{0xee}, 24)
	h.Put(b)
	var l layers.IPv4
	if err := l.DecodeFromBytes(b, gopacket.NilDecodeFeedback); err != nil {
		t.Fatal(err)
	}
	if l.TOS != 0xc0 || l.TTL != 64 || l.Protocol != 1 || l.Id != 7 || l.Flags != layers.IPv4DontFragment || l.FragOffset != 0 ||
		l.Length != 24 || !l.SrcIP.Equal(net.IP{10, 0, 0, 1}) || !l.DstIP.Equal(net.IP{10, 0, 0, 2}) {
		t.Errorf("%+v", l)
	}
	p, ok := ParseIPv4(b)
	if !ok || !p.ChecksumOK() || string(p.Payload()) != "\xee\xee\xee\xee" {
		t.Errorf("% x", b)
	}
	h.DF = false
	if h.Put(b); IPv4(b).DF() {
		t.Error("DF")
	}
}
