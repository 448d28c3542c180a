package frame

import (
	"bytes"
	"testing"
	"unsafe"
)

func TestSizes(t *testing.T) {
	if unsafe.Sizeof(uintptr(0)) == 8 && unsafe.Sizeof(Frame{}) != 64 {
		t.Errorf("a Frame is %d bytes, want 64", unsafe.Sizeof(Frame{}))
	}
	if unsafe.Sizeof(MAC{}) != 6 || unsafe.Sizeof(Endpoint{}) != 24 || unsafe.Sizeof(Verdict(0)) != 8 || unsafe.Sizeof(Dest(0)) != 4 || unsafe.Sizeof(GSO{}) != 10 || unsafe.Sizeof(GBP{}) != 4 {
		t.Error("a small type has grown")
	}
}

func buffer(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i)
	}
	return b
}

func TestPushPullTrimExtend(t *testing.T) {
	buf := buffer(32)
	f := Over(buf, 8, 24)
	check := func(what string, off, end int) {
		t.Helper()
		if !bytes.Equal(f.Bytes(), buf[off:end]) || f.Len() != end-off || f.Headroom() != off {
			t.Errorf("%s: % x, headroom %d, want %d to %d", what, f.Bytes(), f.Headroom(), off, end)
		}
		if cap(f.Bytes()) != f.Len() {
			t.Errorf("%s: appending would reach a neighbour", what)
		}
	}
	check("at first", 8, 24)
	if b := f.Pull(4); !bytes.Equal(b, buf[12:24]) {
		t.Errorf("% x", b)
	}
	check("Pull", 12, 24)
	if b := f.Push(12); !bytes.Equal(b, buf[0:24]) {
		t.Errorf("% x", b)
	}
	check("Push all there is", 0, 24)
	if f.Push(1) != nil || f.Push(-1) != nil {
		t.Error("Push beyond the headroom")
	}
	check("Push refused", 0, 24)
	f.Trim(20)
	check("Trim", 0, 20)
	if b := f.Extend(12); !bytes.Equal(b, buf) {
		t.Errorf("% x", b)
	}
	check("Extend all there is", 0, 32)
	if f.Extend(1) != nil || f.Extend(-1) != nil {
		t.Error("Extend beyond the tailroom")
	}
	check("Extend refused", 0, 32)
	f.Pull(32)
	check("all pulled", 32, 32)
	f.Push(32)
	f.Trim(0)
	check("trimmed to nothing", 0, 0)
	f.Extend(0)
	f.Pull(0)
	check("no change", 0, 0)
}

func TestBoundsPanic(t *testing.T) {
	at := func() *Frame { f := Over(buffer(32), 8, 24); return &f }
	for name, f := range map[string]func(){
		"Pull too much":       func() { at().Pull(17) },
		"Pull negative":       func() { at().Pull(-9) },
		"Trim to more":        func() { at().Trim(17) },
		"Trim negative":       func() { at().Trim(-1) },
		"Over, end":           func() { Over(buffer(4), 0, 5) },
		"Over, order":         func() { Over(buffer(4), 3, 2) },
		"Over, negative":      func() { Over(buffer(4), -1, 2) },
		"Pull of a zero one":  func() { new(Frame).Pull(1) },
		"Keep more than come": func() { NewBatch(nil).Keep(1) },
	} {
		if !panics(f) {
			t.Errorf("%s: no panic", name)
		}
	}
	if f := at(); panics(func() { f.Pull(16); f.Trim(0) }) {
		t.Error("exactly all is allowed")
	}
	var zero Frame
	if zero.Len() != 0 || zero.Push(1) != nil || zero.Extend(1) != nil || len(zero.Bytes()) != 0 {
		t.Error("the zero Frame is an empty one")
	}
}

func TestMakeCopies(t *testing.T) {
	p := buffer(10)
	f := Make(p)
	p[0] = 99
	if f.Bytes()[0] != 0 || f.Headroom() != Headroom || f.Len() != 10 || f.Extend(1) != nil {
		t.Errorf("%+v", f)
	}
}

func TestClone(t *testing.T) {
	buf := buffer(64)
	for _, off := range []int{0, 8, 40} {
		f := Over(buf, off, 60)
		f.VNI, f.From, f.Hash, f.Tunnel, f.Kind, f.Drop = 7, 9, 11, true, IPv6, Storm
		// A checksum 6 bytes into the packet, and one without.
		f.GSO = GSO{Flags: 1, Type: 2, Size: 4, CsumStart: uint16(off + 6), CsumOffset: 5, DataStart: uint16(off + 9)}
		f.GBP = GBP{ID: 0x1234, DontLearn: true}
		c := f.Clone()
		if !bytes.Equal(c.Bytes(), f.Bytes()) || c.Headroom() != Headroom || c.Extend(1) != nil {
			t.Errorf("offset %d: % x, headroom %d", off, c.Bytes(), c.Headroom())
		}
		if got := int(c.GSO.CsumStart) - c.Headroom(); got != 6 {
			t.Errorf("offset %d: the checksum starts at byte %d of the packet", off, got)
		}
		if got := int(c.GSO.DataStart) - c.Headroom(); got != 9 {
			t.Errorf("DataStart %d behind the packet's start", got)
		}
		c.GSO.CsumStart, c.GSO.DataStart = f.GSO.CsumStart, f.GSO.DataStart
		if c.GSO != f.GSO || c.VNI != f.VNI || c.From != f.From || c.Hash != f.Hash || !c.Tunnel || c.Kind != IPv6 || c.Drop != Storm || c.GBP != f.GBP {
			t.Errorf("offset %d: %+v, want %+v", off, c, f)
		}
		f.GSO = GSO{}
		if g := f.Clone().GSO; g != (GSO{}) {
			t.Errorf("offset %d: %+v", off, g)
		}
		c.Bytes()[0] ^= 0xff
		if c.Bytes()[0] == f.Bytes()[0] {
			t.Error("a clone shares memory")
		}
	}
}

func TestGSOMoved(t *testing.T) {
	g := GSO{Flags: NeedsCsum, Type: GSOTCP4, Size: 9, CsumStart: 34, CsumOffset: 16, DataStart: 54}
	far := g
	far.CsumStart, far.DataStart = 98, 118
	if g.Moved(64) != far || far.Moved(-64) != g {
		t.Errorf("%+v and %+v", g.Moved(64), far.Moved(-64))
	}
	// Only a checksum: there is no payload to be cut, here or there.
	if m := (GSO{Flags: NeedsCsum, CsumStart: 34}).Moved(-20); m != (GSO{Flags: NeedsCsum, CsumStart: 14}) {
		t.Errorf("%+v", m)
	}
	if m := (GSO{}).Moved(64); m != (GSO{}) {
		t.Errorf("%+v", m)
	}
}

// Push and Pull leave GSO alone: CsumStart counts from the buffer.
func TestGSOIsOfTheBuffer(t *testing.T) {
	f := Over(buffer(64), 20, 60)
	f.GSO = GSO{Flags: 1, CsumStart: 34}
	f.Push(8)
	f.Pull(14)
	if f.GSO.CsumStart != 34 {
		t.Error(f.GSO)
	}
	c := f.Clone()
	if c.Bytes()[int(c.GSO.CsumStart)-c.Headroom()] != 34 {
		t.Error("a clone's checksum starts elsewhere")
	}
}
