package wire

import (
	"bytes"
	"encoding/binary"
	"net"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
)

func TestIPv6(t *testing.T) {
	h := IPv6Header{NextHeader: ProtoUDP, HopLimit: 64, PayloadLen: 5, Src: [16]byte{0xfd, 15: 1}, Dst: [16]byte{0xfd, 15: 2}}
	b := bytes.Repeat([]byte{0xee}, 48)
	h.Put(b)
	var l layers.IPv6
	if err := l.DecodeFromBytes(b, gopacket.NilDecodeFeedback); err != nil {
		t.Fatal(err)
	}
	if l.TrafficClass != 0 || l.FlowLabel != 0 || l.HopLimit != 64 || l.NextHeader != 17 || l.Length != 5 ||
		!l.SrcIP.Equal(net.ParseIP("fd00::1")) || !l.DstIP.Equal(net.ParseIP("fd00::2")) {
		t.Errorf("%+v", l)
	}
	p, ok := ParseIPv6(b)
	if !ok || len(p) != 45 || p.Src() != h.Src || p.Dst() != h.Dst {
		t.Errorf("%v, %d bytes", ok, len(p))
	}
	for name, bad := range map[string][]byte{"short": b[:39], "cut short": b[:44], "version": append([]byte{0x45}, b[1:]...)} {
		if _, ok := ParseIPv6(bad); ok {
			t.Errorf("%s: taken", name)
		}
	}
}

func TestIPv6Upper(t *testing.T) {
	ext := func(next byte, units byte, size int) []byte {
		b := make([]byte, size)
		b[0], b[1] = next, units
		return b
	}
	frag := func(next byte, offset uint16) []byte {
		b := ext(next, 0, 8)
		binary.BigEndian.PutUint16(b[2:], offset<<3|1)
		return b
	}
	cat := func(bs ...[]byte) []byte { return bytes.Join(bs, nil) }
	for _, c := range []struct {
		name    string
		next    byte
		payload []byte
		want    IPv6Upper
		ok      bool
	}{
		{"none", ProtoUDP, nil, IPv6Upper{ProtoUDP, 40, 0, false}, true},
		{"no next header", 59, nil, IPv6Upper{59, 40, 0, false}, true},
		{"hop by hop", 0, ext(ProtoTCP, 0, 8), IPv6Upper{ProtoTCP, 48, 0, false}, true},
		{"routing, 24 bytes", 43, ext(ProtoTCP, 2, 24), IPv6Upper{ProtoTCP, 64, 0, false}, true},
		{"authentication", 51, ext(ProtoTCP, 4, 24), IPv6Upper{ProtoTCP, 64, 0, false}, true},
		{"mobility, HIP, shim6", 135, cat(ext(139, 0, 8), ext(140, 0, 8), ext(59, 0, 8)), IPv6Upper{59, 64, 0, false}, true},
		{"all", 0, cat(ext(60, 0, 8), ext(43, 0, 8), ext(44, 0, 8), frag(51, 0), ext(60, 1, 12), ext(58, 0, 8)), IPv6Upper{58, 92, 64, false}, true},
		{"later fragment", 44, frag(ProtoTCP, 3), IPv6Upper{ProtoTCP, 48, 40, true}, true},
		{"behind a later fragment nothing is a header", 44, frag(0, 3), IPv6Upper{0, 48, 40, true}, true},
		{"cut short", 0, ext(6, 0, 8)[:7], IPv6Upper{}, false},
		{"longer than the packet", 60, ext(6, 1, 15), IPv6Upper{}, false},
		{"fragment header cut short", 44, frag(6, 0)[:7], IPv6Upper{}, false},
		{"too many", 60, bytes.Repeat(ext(60, 0, 8), 9), IPv6Upper{}, false},
		{"eight", 60, cat(bytes.Repeat(ext(60, 0, 8), 7), ext(6, 0, 8)), IPv6Upper{6, 104, 0, false}, true},
	} {
		b := make([]byte, IPv6Len)
		h := IPv6Header{NextHeader: c.next, PayloadLen: uint16(len(c.payload))}
		h.Put(b)
		p, ok := ParseIPv6(append(b, c.payload...))
		if !ok {
			t.Fatal("refused")
		}
		if u, ok := p.Upper(); ok != c.ok || ok && u != c.want {
			t.Errorf("%s: %+v, %v, want %+v, %v", c.name, u, ok, c.want, c.ok)
		}
	}
}
