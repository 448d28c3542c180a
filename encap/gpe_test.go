package encap

import (
	"bytes"
	"testing"

	"github.com/vxswitch/vxswitch/frame"
)

// What Linux sends for VNI 77 with IPv4 inside.
func TestGoldenGPE(t *testing.T) {
	for _, c := range []struct {
		vni  frame.VNI
		kind frame.Kind
		bum  bool
		want []byte
	}{
		{77, frame.IPv4, false, []byte{0x0c, 0, 0, 1, 0, 0, 0x4d, 0}},
		{77, frame.IPv6, false, []byte{0x0c, 0, 0, 2, 0, 0, 0x4d, 0}},
		{77, frame.Ethernet, false, []byte{0x0c, 0, 0, 3, 0, 0, 0x4d, 0}},
		{77, frame.Ethernet, true, []byte{0x0e, 0, 0, 3, 0, 0, 0x4d, 0}},
		{frame.MaxVNI, frame.IPv4, false, []byte{0x0c, 0, 0, 1, 0xff, 0xff, 0xff, 0}},
		{0, frame.IPv6, false, []byte{0x0c, 0, 0, 2, 0, 0, 0, 0}},
		{1<<24 | 5, frame.IPv6, false, []byte{0x0c, 0, 0, 2, 0, 0, 5, 0}}, // 25 bits: the field has 24
	} {
		b := bytes.Repeat([]byte{0xee}, 10)
		PutGPE(b, c.vni, c.kind, c.bum)
		if !bytes.Equal(b[:8], c.want) || b[8] != 0xee {
			t.Errorf("VNI %d, kind %d, B %v = % x, want % x", c.vni, c.kind, c.bum, b, c.want)
		}
		h, drop := ParseGPE(b)
		kind, ok := h.Kind()
		if drop != frame.NotDropped || h.VNI() != c.vni&frame.MaxVNI || !ok || kind != c.kind || (h&GPEFlagBUM != 0) != c.bum || h.Reserved() != 0 {
			t.Errorf("% x: %#x %v", c.want, h, drop)
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("seven bytes are room for a header")
		}
	}()
	PutGPE(make([]byte, 7), 1, frame.Ethernet, false)
}

// Every bit of the header, and which of two faults is named.
func TestParseGPE(t *testing.T) {
	for _, c := range []struct {
		name     string
		in       []byte
		vni      frame.VNI
		next     NextProtocol
		reserved GPE
		drop     frame.Reason
	}{
		{"golden", []byte{0x0c, 0, 0, 1, 0, 0, 0x4d, 0}, 77, NextIPv4, 0, 0},
		{"payload follows", []byte{0x0c, 0, 0, 3, 0, 0, 0x4d, 0, 1, 2}, 77, NextEthernet, 0, 0},
		{"NSH", []byte{0x0c, 0, 0, 4, 0, 0, 1, 0}, 1, NextNSH, 0, 0},
		{"next protocol 255", []byte{0x0c, 0, 0, 255, 0, 0, 1, 0}, 1, 255, 0, 0},
		{"without P", []byte{0x08, 0, 0, 0, 0, 0, 1, 0}, 1, 0, 0, 0},
		{"B", []byte{0x0e, 0, 0, 3, 0, 0, 1, 0}, 1, NextEthernet, 0, 0},
		{"the two first bits are reserved", []byte{0xcc, 0, 0, 3, 0, 0, 1, 0}, 1, NextEthernet, 0xc0 << 56, 0},
		{"16 reserved bits", []byte{0x0c, 0xff, 0xff, 3, 0, 0, 1, 0}, 1, NextEthernet, 0xffff << 40, 0},
		{"last octet is never part of the VNI", []byte{0x0c, 0, 0, 3, 0, 0, 1, 0xff}, 1, NextEthernet, 0xff, 0},
		{"version 1", []byte{0x1c, 0, 0, 1, 0, 0, 1, 0}, 1, NextIPv4, 0, frame.GPEVersion},
		{"version 2", []byte{0x2c, 0, 0, 1, 0, 0, 1, 0}, 1, NextIPv4, 0, frame.GPEVersion},
		{"version 3", []byte{0x3c, 0, 0, 1, 0, 0, 1, 0}, 1, NextIPv4, 0, frame.GPEVersion},
		{"no I", []byte{0x04, 0, 0, 1, 0, 0, 1, 0}, 1, NextIPv4, 0, frame.NoVNIFlag},
		{"O", []byte{0x0d, 0, 0, 1, 0, 0, 1, 0}, 1, NextIPv4, 0, frame.GPEOAM},
		{"version before I and O", []byte{0x15, 0, 0, 1, 0, 0, 1, 0}, 1, NextIPv4, 0, frame.GPEVersion},
		{"I before O", []byte{0x05, 0, 0, 1, 0, 0, 1, 0}, 1, NextIPv4, 0, frame.NoVNIFlag},
		{"length before all", []byte{0x3d, 0, 0, 1, 0, 0, 1}, 0, 0, 0, frame.Short},
		{"empty", nil, 0, 0, 0, frame.Short},
	} {
		h, drop := ParseGPE(c.in)
		if drop != c.drop || h.VNI() != c.vni || h.Next() != c.next || h.Reserved() != c.reserved {
			t.Errorf("%s: VNI %d next %d reserved %#x %v; want %d %d %#x %v", c.name, h.VNI(), h.Next(), h.Reserved(), drop, c.vni, c.next, c.reserved, c.drop)
		}
	}
	// Two bits, two octets, one octet: what no field has.
	if n := popcount(uint64(GPEReservedMask)); n != 26 {
		t.Errorf("%d reserved bits, the draft has 26", n)
	}
	all := uint64(GPEReservedMask | GPEVersionMask | GPEFlagVNI | GPEFlagProtocol | GPEFlagBUM | GPEFlagOAM | GPE(maskVNI))
	if all|0xff<<32 != 1<<64-1 {
		t.Errorf("bits that are nothing: %#x", ^all)
	}
}

// What follows is a packet for 1, 2 and 3 only, whatever the other bits are.
func TestGPEKind(t *testing.T) {
	for n := range 256 {
		h := GPEFlagVNI | GPEFlagProtocol | GPE(n)<<32 | 0xff
		kind, ok := h.Kind()
		want, known := map[int]frame.Kind{1: frame.IPv4, 2: frame.IPv6, 3: frame.Ethernet}[n]
		if ok != known || kind != want {
			t.Errorf("next protocol %d: kind %d, %v", n, kind, ok)
		}
	}
}

func FuzzGPE(f *testing.F) {
	f.Add([]byte{0x0c, 0, 0, 1, 0, 0, 0x4d, 0})
	f.Add([]byte{0x0e, 0, 0, 3, 0xff, 0xff, 0xff, 0, 1})
	f.Add([]byte{0x3d, 1, 2, 4, 5, 6, 7, 8})
	f.Add([]byte{0x0c})
	f.Fuzz(func(t *testing.T, b []byte) {
		was := bytes.Clone(b)
		h, drop := ParseGPE(b)
		if !bytes.Equal(b, was) {
			t.Fatal("written to")
		}
		want := frame.NotDropped
		switch {
		case len(b) < 8:
			want = frame.Short
		case b[0]&0x30 != 0:
			want = frame.GPEVersion
		case b[0]&8 == 0:
			want = frame.NoVNIFlag
		case b[0]&1 != 0:
			want = frame.GPEOAM
		}
		if drop != want {
			t.Fatalf("% x: %v, want %v", b, drop, want)
		}
		kind, ok := h.Kind()
		if drop != 0 || !ok {
			return
		}
		again := bytes.Repeat([]byte{0xee}, 8)
		PutGPE(again, h.VNI(), kind, h&GPEFlagBUM != 0)
		g, drop := ParseGPE(again)
		if drop != 0 || g != h&^GPEReservedMask|GPEFlagProtocol {
			t.Fatalf("% x: put and parsed again %#x, %v", b, g, drop)
		}
	})
}
