package gso

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/vxswitch/vxswitch/frame"
)

// cut returns the segments, and complains about what Cut promises of its pieces.
func cut(t testing.TB, c *Cutter, prefix []byte, f *frame.Frame) (segments [][]byte) {
	t.Helper()
	before := bytes.Clone(f.Bytes())
	mark := []byte("mark")
	parts, size := c.Cut([][]byte{mark}, prefix, f)
	if &parts[0][0] != &mark[0] || len(parts)%2 != 1 {
		t.Fatalf("%d pieces", len(parts))
	}
	for i := 1; i < len(parts); i += 2 {
		s := append(bytes.Clone(parts[i]), parts[i+1]...)
		if !bytes.HasPrefix(s, prefix) {
			t.Fatalf("segment %d begins with % x", i/2, s)
		}
		if i < len(parts)-2 && len(s) != size || len(s) > size {
			t.Fatalf("segment %d is %d bytes, size is %d", i/2, len(s), size)
		}
		if n := len(parts[i+1]); n > 0 && cap(parts[i+1]) != n {
			t.Fatalf("segment %d: appending to the payload would write to the frame", i/2)
		}
		segments = append(segments, s[len(prefix):])
	}
	if !bytes.Equal(f.Bytes(), before) {
		t.Fatal("the frame was written to")
	}
	return segments
}

func equal(t testing.TB, got, want [][]byte) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d segments, want %d", len(got), len(want))
	}
	for i := range got {
		if !bytes.Equal(got[i], want[i]) {
			t.Fatalf("segment %d:\n% x, want\n% x", i, got[i], want[i])
		}
	}
}

func TestCut(t *testing.T) {
	for name, k := range packets(3000) {
		for _, size := range []int{1, 7, 1000, 1448, 1500, 2999} {
			f := k.super(size)
			g := f.GSO
			f.GSO.DataStart = 0
			if r := Check(f); r != frame.NotDropped || f.GSO != g {
				t.Fatalf("%s: %v, %+v", name, r, f.GSO)
			}
			var c Cutter
			got := cut(t, &c, []byte("prefix"), f)
			equal(t, got, refCut(f.Bytes(), f.Kind, k.gso(size)))
			if n := (3000 + size - 1) / size; len(got) != n {
				t.Fatalf("%s: %d segments, want %d", name, len(got), n)
			}
		}
	}
}

// Headers in front of the transport header that are longer than usual.
func TestCutOptions(t *testing.T) {
	for _, k := range []packet{
		{ipOptions: routerAl4, payload: pattern(100)},
		{ipOptions: routerAl6, v6: true, payload: pattern(100)},
		{ipOptions: routerAl6, v6: true, udp: true, payload: pattern(100)},
	} {
		f := k.super(30)
		if r := Check(f); r != frame.NotDropped {
			t.Fatal(r)
		}
		var c Cutter
		equal(t, cut(t, &c, nil, f), refCut(f.Bytes(), f.Kind, k.gso(30)))
	}
}

func TestCutFlags(t *testing.T) {
	k := packet{flags: fin | psh | cwr | ece, payload: pattern(300)}
	f := k.super(100)
	f.GSO.Type |= frame.GSOECN
	if r := Check(f); r != frame.NotDropped {
		t.Fatal(r)
	}
	var c Cutter
	got := cut(t, &c, nil, f)
	for i, want := range []byte{ack | ece | cwr, ack | ece, ack | ece | fin | psh} {
		if fl := got[i][k.l4()+13]; fl != want {
			t.Errorf("segment %d: flags %#x, want %#x", i, fl, want)
		}
	}
}

// Without a Type there is one segment.
func TestCutPlain(t *testing.T) {
	for name, k := range packets(99) {
		var c Cutter
		f := over(k.bytes(), k.frameKind(), frame.GSO{})
		equal(t, cut(t, &c, []byte("pre"), f), [][]byte{k.bytes()})

		f = k.super(99)
		if r := Check(f); r != frame.NotDropped || f.GSO.Type != 0 || f.GSO.Flags != frame.NeedsCsum {
			t.Fatalf("%s: %v, %+v", name, r, f.GSO)
		}
		got := cut(t, &c, []byte("pre"), f)
		equal(t, got, [][]byte{k.bytes()})
	}
}

// A UDP checksum that comes out as 0 is written as 0xffff, in segments and alone.
func TestCutChecksumZero(t *testing.T) {
	for _, v6 := range []bool{false, true} {
		k := packet{udp: true, v6: v6, payload: make([]byte, 4)}
		b := k.bytes()
		copy(k.payload[2:], b[k.l4()+6:k.l4()+8])
		if b = k.bytes(); b[k.l4()+6] != 0xff || b[k.l4()+7] != 0xff {
			t.Fatalf("the checksum is % x", b[k.l4()+6:k.l4()+8])
		}
		var c Cutter
		equal(t, cut(t, &c, nil, func() *frame.Frame { f := k.super(100); Check(f); return f }()), [][]byte{b})
		two := k
		two.payload = append(bytes.Clone(k.payload), k.payload...)
		got := cut(t, &c, nil, two.super(4))
		for i, s := range got {
			if s[k.l4()+6] != 0xff || s[k.l4()+7] != 0xff {
				t.Errorf("segment %d: % x", i, s[k.l4()+6:k.l4()+8])
			}
		}
	}
}

// Any protocol whose checksum is unfinished: here an ICMP echo.
func TestCutOtherProtocol(t *testing.T) {
	p := packet{payload: pattern(30)}.bytes()
	p[23] = 1
	p[36], p[37] = 0, 0
	f := over(p, frame.Ethernet, frame.GSO{Flags: frame.NeedsCsum, CsumStart: 34, CsumOffset: 2})
	f.GSO.DataStart = 0
	if r := Check(f); r != frame.NotDropped {
		t.Fatal(r)
	}
	var c Cutter
	got := cut(t, &c, nil, f)
	if len(got) != 1 || refSum(got[0][34:]) != 0 || refSum(p[34:]) == 0 {
		t.Errorf("% x", got)
	}
}

// A stage that moved the frame about did not move what the metadata counts from.
func TestCutAfterPushAndPull(t *testing.T) {
	k := packet{payload: pattern(1000)}
	f := k.super(300)
	eth := bytes.Clone(f.Bytes()[:14])
	f.Pull(14)
	b := f.Push(18) // a tag
	copy(b, eth[:12])
	copy(b[12:], []byte{0x81, 0, 0, 100})
	copy(b[16:], eth[12:])
	k.tags = 1
	var c Cutter
	equal(t, cut(t, &c, nil, f), refCut(k.bytes(), frame.Ethernet, k.gso(300)))
	f.Pull(18)
	f.Kind = frame.IPv4
	k.tags, k.bare = 0, true
	equal(t, cut(t, &c, nil, f), refCut(k.bytes(), frame.IPv4, k.gso(300)))
}

// What Check would refuse is not cut.
func TestCutRefuses(t *testing.T) {
	var c Cutter
	k := packet{payload: pattern(1000)}
	for name, lie := range map[string]func(f *frame.Frame){
		"size":       func(f *frame.Frame) { f.GSO.Size = 0 },
		"type":       func(f *frame.Frame) { f.GSO.Type = frame.GSOTCP6 },
		"trimmed":    func(f *frame.Frame) { f.Trim(f.Len() - 1) },
		"start":      func(f *frame.Frame) { f.GSO.CsumStart++ },
		"plain":      func(f *frame.Frame) { f.GSO.Type, f.GSO.CsumStart = 0, 63 },
		"plain long": func(f *frame.Frame) { f.GSO.Type, f.GSO.CsumOffset = 0, 2000 },
	} {
		f := k.super(100)
		lie(f)
		if got := cut(t, &c, nil, f); len(got) != 0 {
			t.Errorf("%s: %d segments", name, len(got))
		}
	}
}

// Headers cut earlier stay as they are while scratch grows; after Reset the memory is
// used again.
func TestCutterScratch(t *testing.T) {
	var c Cutter
	var parts [][]byte
	var want [][]byte
	prefix := make([]byte, 50)
	k := packet{payload: pattern(5000)}
	for i := range 50 {
		k.seq, prefix[0] = uint32(i*5000), byte(i)
		f := k.super(100)
		parts, _ = c.Cut(parts, prefix, f)
		for _, s := range refCut(f.Bytes(), f.Kind, k.gso(100)) {
			want = append(want, append(bytes.Clone(prefix), s...))
		}
	}
	if len(parts) != 2*len(want) {
		t.Fatalf("%d pieces for %d segments", len(parts), len(want))
	}
	for i, w := range want {
		if got := append(bytes.Clone(parts[2*i]), parts[2*i+1]...); !bytes.Equal(got, w) {
			t.Fatalf("segment %d has been written over", i)
		}
	}
	c.Reset()
	again, _ := c.Cut(nil, prefix, k.super(100))
	c.Reset()
	if last, _ := c.Cut(nil, prefix, k.super(100)); &last[0][0] != &again[0][0] {
		t.Error("Reset does not give the memory back")
	}
	c.room(2 * scratchKeep)
	if c.Reset(); cap(c.buf) > scratchKeep {
		t.Errorf("%d bytes are kept", cap(c.buf))
	}
}

func TestCutRandom(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 9))
	var c Cutter
	for range 3000 {
		k := randomPacket(r, 1+r.IntN(4000))
		size := 1 + r.IntN(1500)
		f := k.super(size)
		if r.IntN(2) == 0 && !k.udp {
			f.GSO.Type |= frame.GSOECN
		}
		if f.Len()-k.data() <= size {
			continue
		}
		prefix := pattern(r.IntN(60))
		equal(t, cut(t, &c, prefix, f), refCut(f.Bytes(), f.Kind, k.gso(size)))
		c.Reset()
	}
}

func randomPacket(r *rand.Rand, payload int) packet {
	k := packet{bare: r.IntN(4) == 0, tags: r.IntN(3), v6: r.IntN(2) == 0, udp: r.IntN(3) == 0,
		id: uint16(r.Uint32()), df: r.IntN(2) == 0, seq: r.Uint32(), payload: pattern(payload)}
	if k.bare {
		k.tags = 0
	}
	if !k.udp {
		k.flags = byte(r.Uint32()) & (fin | psh | cwr | ece)
		if r.IntN(2) == 0 {
			k.tcpOptions = timestamps
		}
	}
	return k
}
