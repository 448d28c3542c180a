package gso

import (
	"bytes"
	"testing"

	"github.com/vxswitch/vxswitch/frame"
)

// What a device says that is true.
func TestCheck(t *testing.T) {
	for name, k := range packets(1000) {
		for _, c := range []struct {
			name       string
			size, want int // Size of it, and what is left of it
		}{{"many", 100, 100}, {"two", 999, 999}, {"one", 1000, 0}, {"fewer", 2000, 0}, {"largest", 0xffff, 0}} {
			f := k.super(c.size)
			f.GSO.DataStart = 12345
			f.GSO.Flags |= 2 // DATA_VALID
			before := bytes.Clone(f.Bytes())
			if r := Check(f); r != frame.NotDropped {
				t.Fatalf("%s, %s: %v", name, c.name, r)
			}
			want := k.gso(c.want)
			if want.Size == 0 {
				want.Type = 0
			}
			want.CsumStart += frame.Headroom
			want.DataStart += frame.Headroom
			if f.GSO != want {
				t.Errorf("%s, %s: %+v, want %+v", name, c.name, f.GSO, want)
			}
			if n := min(k.data()+c.size, f.Len()); f.SegLen() != n {
				t.Errorf("%s, %s: longest segment %d, want %d", name, c.name, f.SegLen(), n)
			}
			if !bytes.Equal(f.Bytes(), before) {
				t.Errorf("%s, %s: the packet was written to", name, c.name)
			}
		}
	}
}

// An ordinary frame: whatever else a device wrote is not kept.
func TestCheckOrdinary(t *testing.T) {
	f := over(packet{payload: pattern(10)}.bytes(), frame.Ethernet, frame.GSO{Flags: 2, Size: 1448, CsumStart: 9, CsumOffset: 9, DataStart: 9})
	if r := Check(f); r != frame.NotDropped || f.GSO != (frame.GSO{}) {
		t.Errorf("%v, %+v", r, f.GSO)
	}
	f = over(packet{payload: pattern(10)}.bytes(), frame.Ethernet, frame.GSO{Flags: frame.NeedsCsum, Size: 9, CsumStart: 34, CsumOffset: 16, DataStart: 9})
	if r := Check(f); r != frame.NotDropped || f.GSO != (frame.GSO{Flags: frame.NeedsCsum, CsumStart: frame.Headroom + 34, CsumOffset: 16}) {
		t.Errorf("%v, %+v", r, f.GSO)
	}
	empty := frame.Over(nil, 0, 0)
	if r := Check(&empty); r != frame.NotDropped {
		t.Error(r)
	}
}

func TestCheckLies(t *testing.T) {
	tcp4 := packet{payload: pattern(1000)}
	tcp6 := packet{payload: pattern(1000), v6: true}
	udp4 := packet{payload: pattern(1000), udp: true}
	hop6 := packet{payload: pattern(1000), v6: true, ipOptions: routerAl6}
	set := func(at int, v ...byte) func(f *frame.Frame) {
		return func(f *frame.Frame) { copy(f.Bytes()[at:], v) }
	}
	for _, c := range []struct {
		name string
		k    packet
		lie  func(f *frame.Frame)
	}{
		{"no size", tcp4, func(f *frame.Frame) { f.GSO.Size = 0 }},
		{"no checksum to finish", tcp4, func(f *frame.Frame) { f.GSO.Flags = 2 }},
		{"TCP6", tcp4, func(f *frame.Frame) { f.GSO.Type = frame.GSOTCP6 }},
		{"TCP4", tcp6, func(f *frame.Frame) { f.GSO.Type = frame.GSOTCP4 }},
		{"UDP", tcp4, func(f *frame.Frame) { f.GSO.Type = frame.GSOUDP }},
		{"TCP", udp4, func(f *frame.Frame) { f.GSO.Type = frame.GSOTCP4 }},
		{"UDP with ECN", udp4, func(f *frame.Frame) { f.GSO.Type |= frame.GSOECN }},
		{"only ECN", tcp4, func(f *frame.Frame) { f.GSO.Type = frame.GSOECN }},
		{"UFO", udp4, func(f *frame.Frame) { f.GSO.Type = 3 }},
		{"tunnel", tcp4, func(f *frame.Frame) { f.GSO.Type |= 0x20 }},
		{"start early", tcp4, func(f *frame.Frame) { f.GSO.CsumStart-- }},
		{"start late", tcp4, func(f *frame.Frame) { f.GSO.CsumStart++ }},
		{"start in the headroom", tcp4, func(f *frame.Frame) { f.GSO.CsumStart = 3 }},
		{"start behind the packet", tcp4, func(f *frame.Frame) { f.GSO.CsumStart = 0xffff }},
		{"start at an extension header", hop6, func(f *frame.Frame) { f.GSO.CsumStart -= 8 }},
		{"offset", tcp4, func(f *frame.Frame) { f.GSO.CsumOffset = 6 }},
		{"offset", udp4, func(f *frame.Frame) { f.GSO.CsumOffset = 16 }},
		{"kind", tcp4, func(f *frame.Frame) { f.Kind = frame.IPv4 }},
		{"no such kind", tcp4, func(f *frame.Frame) { f.Kind = 9 }},
		{"EtherType", tcp4, set(12, 8, 6)},
		{"three tags", tcp4, func(f *frame.Frame) {
			b := bytes.Clone(f.Bytes())
			f.Push(12)
			copy(f.Bytes(), b[:12])
			copy(f.Bytes()[12:], []byte{0x81, 0, 0, 1, 0x81, 0, 0, 2, 0x81, 0, 0, 3})
		}},
		{"version", tcp4, set(14, 0x55)},
		{"header length", tcp4, set(14, 0x44)},
		{"header length", tcp4, set(14, 0x46)},
		{"total length", tcp4, set(17, 0)},
		{"more fragments", tcp4, set(20, 0x20)},
		{"fragment offset", tcp4, set(21, 1)},
		{"protocol", tcp4, set(23, 17)},
		{"protocol", tcp4, set(23, 1)},
		{"data offset", tcp4, set(46, 0x40)},
		{"trimmed to a TCP header cut short", tcp4, func(f *frame.Frame) { f.Trim(34 + 19); copy(f.Bytes()[16:], []byte{0, 39}) }},
		{"data offset behind the packet", tcp4, func(f *frame.Frame) {
			f.Trim(34 + 24)
			copy(f.Bytes()[16:], []byte{0, 44})
			f.Bytes()[46] = 0x70
		}},
		{"padding", tcp4, func(f *frame.Frame) { f.Trim(f.Len() - 1) }},
		{"version", tcp6, set(14, 0x41)},
		{"header length 16, where the device says", tcp4, func(f *frame.Frame) {
			f.Bytes()[14], f.Bytes()[42] = 0x44, 0x50
			f.GSO.CsumStart -= 4
		}},
		{"header length behind the packet", tcp4, func(f *frame.Frame) { f.Trim(14 + 40); f.Bytes()[14] = 0x4f; copy(f.Bytes()[16:], []byte{0, 40}) }},
		{"nothing behind the IP header", tcp4, func(f *frame.Frame) { f.Trim(34); copy(f.Bytes()[16:], []byte{0, 20}) }},
		{"UDP header cut short", udp4, func(f *frame.Frame) { f.Trim(34 + 5); copy(f.Bytes()[16:], []byte{0, 25}) }},
		{"payload length", tcp6, set(19, 0)},
		{"extension header missing", hop6, func(f *frame.Frame) { f.Trim(54); copy(f.Bytes()[18:], []byte{0, 0}) }},
		{"next header", tcp6, set(20, 17)},
		{"fragment header", hop6, set(20, 44)},
		{"routing header", hop6, set(20, 43)},
		{"hop-by-hop header of another length", hop6, set(55, 1)},
		{"hop-by-hop header behind the packet", hop6, set(55, 255)},
		{"UDP length", udp4, set(39, 0)},
		{"short", tcp4, func(f *frame.Frame) { f.Trim(13) }},
		{"short", tcp4, func(f *frame.Frame) { f.Trim(33) }},
		{"empty", tcp4, func(f *frame.Frame) { f.Trim(0) }},
		{"plain, start in the headroom", tcp4, func(f *frame.Frame) { f.GSO.Type, f.GSO.CsumStart = 0, 63 }},
		{"plain, start in the Ethernet header", tcp4, func(f *frame.Frame) { f.GSO.Type, f.GSO.CsumStart, f.GSO.CsumOffset = 0, frame.Headroom+9, 41 }},
		{"plain, start in the tag", packet{tags: 1, payload: pattern(300)}, func(f *frame.Frame) { f.GSO.Type, f.GSO.CsumStart, f.GSO.CsumOffset = 0, frame.Headroom+16, 38 }},
		{"plain, checksum cut", tcp4, func(f *frame.Frame) { f.GSO.Type = 0; f.Trim(34 + 17) }},
		{"plain, offset", tcp4, func(f *frame.Frame) { f.GSO.Type, f.GSO.CsumOffset = 0, 0xffff }},
	} {
		f := c.k.super(100)
		c.lie(f)
		if r := Check(f); r != frame.BadHeader {
			t.Errorf("%s: %v, %+v", c.name, r, f.GSO)
		}
	}
	f := tcp4.super(100)
	f.GSO.Type = 0
	f.Trim(34 + 18)
	copy(f.Bytes()[16:], []byte{0, 20 + 18})
	if r := Check(f); r != frame.NotDropped {
		t.Errorf("a checksum at the very end: %v", r)
	}
}

// Headers without end are not repeated in front of each segment.
func TestCheckLongHeaders(t *testing.T) {
	for n, want := range map[int]frame.Reason{22: frame.NotDropped, 23: frame.BadHeader} {
		options := make([]byte, 8*n)
		options[1] = byte(n - 1)
		k := packet{v6: true, ipOptions: options, payload: pattern(100)}
		if r := Check(k.super(10)); r != want {
			t.Errorf("%d bytes of headers: %v, want %v", k.data(), r, want)
		}
	}
}

// Offsets that the 16 bits of a frame's metadata cannot hold.
func TestCheckFarIntoTheBuffer(t *testing.T) {
	k := packet{payload: pattern(1000)}
	p := k.super(100).Bytes()
	buf := make([]byte, 70000)
	for off, want := range map[int]frame.Reason{65535 - 54: frame.NotDropped, 65535 - 53: frame.BadHeader} {
		f := frame.Over(buf, off, off+copy(buf[off:], p))
		f.GSO = k.gso(100)
		f.GSO.CsumStart += uint16(off)
		if r := Check(&f); r != want {
			t.Errorf("packet at %d: %v, want %v", off, r, want)
		}
	}
}

// A packet that is only said to be unfinished gets the metadata a device would give it.
func TestUnfinished(t *testing.T) {
	for name, c := range map[string]struct {
		at, offset int
		packet     []byte
	}{
		"UDP": {34, 6, append(append(make([]byte, 12), 8, 0, 0x45, 0, 0, 29, 0, 0, 0, 0, 64, 17),
			0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 0, 1, 0, 2, 0, 9, 0, 0, 'x')},
		"ARP":   {packet: append(make([]byte, 12), 8, 6, 0, 1, 8, 0)},
		"short": {packet: make([]byte, 13)},
	} {
		f := frame.Make(c.packet)
		r := Unfinished(&f)
		if c.at == 0 {
			if r != frame.BadHeader || f.GSO != (frame.GSO{}) {
				t.Errorf("%s: %v, %+v", name, r, f.GSO)
			}
			continue
		}
		want := frame.GSO{Flags: frame.NeedsCsum, CsumStart: uint16(frame.Headroom + c.at), CsumOffset: uint16(c.offset)}
		if r != frame.NotDropped || f.GSO != want {
			t.Errorf("%s: %v, %+v, want %+v", name, r, f.GSO, want)
		}
	}
}
