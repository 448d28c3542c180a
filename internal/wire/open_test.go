package wire

import (
	"slices"
	"testing"
)

// What stands in front of a packet, in the ways some receiver opens.
func TestOpen(t *testing.T) {
	macs := make([]byte, 12)
	cat := func(parts ...[]byte) []byte { return slices.Concat(append([][]byte{macs}, parts...)...) }
	ip := []byte{8, 0, 0x45, 0, 0, 20}
	snap := []byte{0xaa, 0xaa, 3, 0, 0, 0}
	bridge := []byte{0xaa, 0xaa, 3, 0, 0, 0xf8}
	n := []byte{0, 40}
	tag := func(tpid ...byte) []byte { return append(tpid, 0, 0) }
	q, ad, q1 := tag(0x81, 0), tag(0x88, 0xa8), tag(0x91, 0)
	for _, c := range []struct {
		name string
		b    []byte
		typ  uint16
		at   int
		ok   bool
	}{
		{"plain", cat(ip), TypeIPv4, 14, true},
		{"no payload", cat(ip[:2]), TypeIPv4, 14, true},
		{"two tags", cat(ad, q, ip), TypeIPv4, 22, true},
		{"tags of old", cat(q1, tag(0x92, 0), ip), TypeIPv4, 22, true},
		{"three tags", cat(q, q, q, ip), TypeVLAN, 22, false},
		{"tag cut short", cat(q[:3]), TypeVLAN, 14, false},
		{"SNAP", cat(n, snap, ip), TypeIPv4, 22, true},
		{"SNAP of bridges", cat(n, bridge, ip), TypeIPv4, 22, true},
		{"a length beyond the frame", cat([]byte{5, 0xff}, snap, ip), TypeIPv4, 22, true},
		{"length 0", cat([]byte{0, 0}, snap, ip), TypeIPv4, 22, true},
		{"jumbo LLC", cat([]byte{0x88, 0x70}, snap, ip), TypeIPv4, 22, true},
		{"SNAP behind tags", cat(q, q, n, snap, ip), TypeIPv4, 30, true},
		{"tags in SNAP", cat(n, snap, ad, q1, ip), TypeIPv4, 30, true},
		{"tags around and in SNAP", cat(q, n, bridge, q, ip), TypeIPv4, 30, true},
		{"three tags around and in SNAP", cat(q, q, n, bridge, q, ip), TypeVLAN, 30, false},
		{"SNAP in SNAP", cat(n, snap, n, bridge, ip), TypeIPv4, 30, true},
		{"SNAP behind a tag in SNAP", cat(n, snap, q, n, snap, ip), TypeIPv4, 34, true},
		{"three times SNAP", cat(n, snap, n, snap, n, snap, ip), 40, 30, false},
		{"SNAP of others", cat(n, []byte{0xaa, 0xaa, 3, 0, 0, 12, 0x20, 0}), 40, 14, true},
		{"SNAP cut short", cat(n, snap, ip[:1]), 40, 14, false},
		{"SNAP, group", cat(n, []byte{0xab, 0xaa, 3, 0, 0, 0}, ip), 40, 14, false},
		{"SNAP, response", cat(n, []byte{0xaa, 0xab, 3, 0, 0, 0}, ip), 40, 14, false},
		{"SNAP, source alone", cat(n, []byte{0x42, 0xaa, 3, 0, 0, 0}, ip), 40, 14, false},
		{"SNAP, polled", cat(n, []byte{0xaa, 0xaa, 0x13, 0, 0, 0}, ip), 40, 14, false},
		{"IP without SNAP", cat(n, []byte{6, 6, 3}, ip[2:]), 40, 14, false},
		{"ARP without SNAP", cat(n, []byte{0x98, 0x98, 3}, ip[2:]), 40, 14, false},
		{"STP", cat(n, []byte{0x42, 0x42, 3, 0}), 40, 14, true},
		{"IPX", cat(n, []byte{0xff, 0xff, 0, 30}), 40, 14, true},
		{"LLC cut short", cat(n, []byte{0xaa}), 40, 14, true},
		{"nothing behind the length", cat(n), 40, 14, true},
	} {
		e, _ := ParseEthernet(c.b)
		if typ, at, ok := e.Open(); typ != c.typ || at != c.at || ok != c.ok {
			t.Errorf("%s: %#x at %d, %v, want %#x at %d, %v", c.name, typ, at, ok, c.typ, c.at, c.ok)
		}
	}
}

// Where nothing stands in front but tags, Open and Network say the same.
func TestOpenNetwork(t *testing.T) {
	b := slices.Concat(make([]byte, 12), []byte{0x88, 0xa8, 0, 1, 0x81, 0, 0, 2, 0x86, 0xdd})
	for at := 12; at < len(b); at += 4 {
		e := Ethernet(slices.Concat(b[:12], b[at:], make([]byte, 8)))
		typ, n, ok := e.Open()
		if typ2, n2 := e.Network(); typ != typ2 || n != n2 || !ok {
			t.Errorf("%#x at %d, %v; %#x at %d", typ, n, ok, typ2, n2)
		}
	}
}
