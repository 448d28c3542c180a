package encap

import (
	"bytes"
	"testing"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// Headers as RFC 8300 draws them (figures 2 to 5), bit by bit.
func TestGoldenNSH(t *testing.T) {
	context := []byte("0123456789abcdef")
	tlv := []byte{0x01, 0x02, 0x03, 4, 'a', 'b', 'c', 'd'} // class 0x102, type 3, 4 bytes
	for _, c := range []struct {
		path  uint32
		index uint8
		kind  frame.Kind
		md    uint8
		data  []byte
		want  []byte
	}{
		{0x010203, 255, frame.Ethernet, MDFixed, context, append([]byte{0x0f, 0xc6, 1, 3, 1, 2, 3, 255}, context...)},
		{MaxPath, 1, frame.IPv4, MDVariable, nil, []byte{0x0f, 0xc2, 2, 1, 255, 255, 255, 1}},
		{0, 0, frame.IPv6, MDVariable, tlv, append([]byte{0x0f, 0xc4, 2, 2, 0, 0, 0, 0}, tlv...)},
		{7, 9, frame.IPv4, MDVariable, make([]byte, 244), append([]byte{0x0f, 0xff, 2, 1, 0, 0, 7, 9}, make([]byte, 244)...)},
	} {
		b := AppendNSH([]byte{0xee}, c.path, c.index, c.kind, c.md, c.data)
		check.True(t, b[0] == 0xee && bytes.Equal(b[1:], c.want), "% x, want % x", b[1:], c.want)
		h, drop := ParseNSH(append(b[1:], 0xee))
		kind, ok := h.Kind()
		if drop != 0 || h.Path() != c.path || h.Index() != c.index || h.TTL() != 63 || h.OAM() || h.MDType() != c.md || !bytes.Equal(h.Metadata(), c.data) || kind != c.kind || !ok || len(h) != len(c.want) {
			t.Errorf("% x: %v", h, drop)
		}
	}
	for i, b := range [][]byte{
		AppendNSH(nil, MaxPath+1, 1, 0, MDVariable, nil), AppendNSH(nil, 1, 1, 0, MDVariable, make([]byte, 248)), AppendNSH(nil, 1, 1, 0, MDVariable, make([]byte, 3)),
		AppendNSH(nil, 1, 1, 0, MDFixed, make([]byte, 12)), AppendNSH(nil, 1, 1, 0, 0, nil), AppendNSH(nil, 1, 1, 0, 15, nil),
	} {
		check.True(t, b == nil, "%d: % x", i, b)
	}
}

func TestParseNSH(t *testing.T) {
	for name, c := range map[string]struct {
		in   []byte
		want frame.Reason
	}{
		"7 bytes":              {[]byte{0x0f, 0xc2, 2, 3, 0, 0, 1}, frame.Short},
		"nothing":              {nil, frame.Short},
		"version 1":            {[]byte{0x4f, 0xc2, 2, 3, 0, 0, 1, 1}, frame.BadHeader},
		"length 0":             {[]byte{0x0f, 0xc0, 2, 3, 0, 0, 1, 1}, frame.BadHeader},
		"length 1":             {[]byte{0x0f, 0xc1, 2, 3, 0, 0, 1, 1}, frame.BadHeader},
		"longer than it is":    {[]byte{0x0f, 0xc3, 2, 3, 0, 0, 1, 1}, frame.Short},
		"MD type 1 of 2 words": {[]byte{0x0f, 0xc2, 1, 3, 0, 0, 1, 1}, frame.BadHeader},
		"MD type 0":            {[]byte{0x0f, 0xc2, 0, 3, 0, 0, 1, 1}, frame.BadHeader},
		"MD type 15":           {[]byte{0x0f, 0xc2, 15, 3, 0, 0, 1, 1}, frame.BadHeader},
		"unassigned bits":      {[]byte{0x1f, 0xc2, 0xf2, 3, 0, 0, 1, 1}, 0},
		"O":                    {[]byte{0x2f, 0xc2, 2, 3, 0, 0, 1, 1}, 0},
	} {
		if _, drop := ParseNSH(c.in); drop != c.want {
			t.Errorf("%s: %v, want %v", name, drop, c.want)
		}
	}
	h := NSH{0x2f, 0xc2, 2, 4, 0, 0, 1, 1}
	_, ok := h.Kind()
	check.True(t, h.OAM() && !ok && h.Next() == 4, "% x", h)
}

// Forwarders count the TTL down from 63, where 0 is 64, and services the index.
func TestNSHCounts(t *testing.T) {
	h := NSH(AppendNSH(nil, 0x123456, 3, frame.Ethernet, MDVariable, nil))
	for want := 62; want >= 0; want-- {
		drop := h.Hop()
		check.True(t, int(h.TTL()) == want && (drop == frame.TTL) == (want == 0), "TTL %d: %v", h.TTL(), drop)
	}
	check.True(t, h.Hop() == 0 && h.TTL() == 63, "TTL %d behind 0", h.TTL())
	for _, want := range []frame.Reason{0, 0, frame.ServiceIndex, frame.ServiceIndex} {
		check.True(t, h.Serve() == want, "index %d", h.Index())
	}
	check.True(t, bytes.Equal(h, []byte{0x0f, 0xc2, 2, 3, 0x12, 0x34, 0x56, 0}), "% x", []byte(h))
}

// Whatever is in a packet: what is accepted has its length, and is written as it was, but for what Append does not know.
func FuzzNSH(f *testing.F) {
	f.Add([]byte{0x0f, 0xc2, 2, 3, 0, 0, 1, 1})
	f.Add(append([]byte{0x2f, 0x06, 1, 1, 0, 0, 1, 0}, make([]byte, 16)...))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, drop := ParseNSH(bytes.Clone(b))
		if drop != frame.NotDropped {
			return
		}
		if len(h) != 4*int(b[1]&0x3f) || len(h) > NSHMaxLen || len(h.Metadata()) != len(h)-NSHLen {
			t.Fatalf("% x has %d bytes", b, len(h))
		}
		if kind, ok := h.Kind(); ok {
			again := AppendNSH(nil, h.Path(), h.Index(), kind, h.MDType(), h.Metadata())
			want := bytes.Clone(b[:len(h)])
			want[0], want[1], want[2] = 0x0f, want[1]|0xc0, want[2]&0xf
			if !bytes.Equal(again, want) {
				t.Fatalf("% x, want % x", again, want)
			}
		}
		h.Hop()
		h.Serve()
		if _, drop := ParseNSH(h); drop != frame.NotDropped {
			t.Fatalf("% x: %v", h, drop)
		}
	})
}
