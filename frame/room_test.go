package frame

import (
	"bytes"
	"testing"
)

// A frame with room stays where it is; one without moves, with everything that belongs to
// it.
func TestBatchRoom(t *testing.T) {
	b := NewBatch(nil)
	own := buffer(3000)
	was := bytes.Clone(own)
	with, tight, none := b.Borrow(own, 14, 100), b.Borrow(own, 13, 100), b.Borrow(own[1000:2500:2500], 0, 1400)
	none.GSO = GSO{Flags: NeedsCsum, Type: GSOTCP4, Size: 500, CsumStart: 20, CsumOffset: 16, DataStart: 40}
	none.Kind, none.VNI, none.From, none.Hash, none.Tunnel, none.Replicated = IPv4, 7, NewDest(1, 2), 9, true, true
	told := *none
	b.Outer[2].TTL = 5

	if !b.Room(with, 14) || &with.Bytes()[0] != &own[14] || with.Headroom() != 14 {
		t.Error("moved, though there was room")
	}
	for _, f := range []*Frame{tight, none} {
		packet := bytes.Clone(f.Bytes())
		if !b.Room(f, 14) || f.Headroom() != Headroom || !bytes.Equal(f.Bytes(), packet) {
			t.Fatalf("headroom %d: % x", f.Headroom(), f.Bytes())
		}
		if f.Extend(1) != nil || f.Push(Headroom) == nil {
			t.Error("room behind, or not all of that in front")
		}
		for i := range f.Bytes()[:Headroom] {
			f.Bytes()[i] = 0xee
		}
		f.Pull(Headroom)
	}
	if !bytes.Equal(own, was) {
		t.Error("the reader's memory was written to")
	}
	want := told.GSO
	want.CsumStart, want.DataStart = 20+Headroom, 40+Headroom
	if none.GSO != want {
		t.Errorf("%+v, want %+v", none.GSO, want)
	}
	if none.SegLen() != told.SegLen() || none.Kind != told.Kind || none.VNI != told.VNI || none.From != told.From ||
		none.Hash != told.Hash || !none.Tunnel || !none.Replicated || b.Outer[2].TTL != 5 || none != &b.Frames[2] {
		t.Errorf("%+v was %+v", none, told)
	}
	// What comes later has memory of its own.
	next := b.New(100)
	for i := range next.Bytes() {
		next.Bytes()[i] = 0xdd
	}
	next.Push(Headroom)
	if bytes.Contains(tight.Bytes(), []byte{0xdd, 0xdd, 0xdd}) || !bytes.Equal(none.Bytes(), own[1000:2400]) {
		t.Error("the next frame lies over one that moved")
	}
}

// A frame without metadata has none when it has moved.
func TestBatchRoomWithoutGSO(t *testing.T) {
	b := NewBatch(nil)
	f := b.Borrow(buffer(60), 0, 60)
	if !b.Room(f, 1) || f.GSO != (GSO{}) {
		t.Errorf("%+v", f.GSO)
	}
	sum := b.Borrow(buffer(60), 0, 60) // an unfinished checksum, and nothing to cut
	sum.GSO = GSO{Flags: NeedsCsum, CsumStart: 20, CsumOffset: 6}
	if !b.Room(sum, 1) || sum.GSO != (GSO{Flags: NeedsCsum, CsumStart: 20 + Headroom, CsumOffset: 6}) {
		t.Errorf("%+v", sum.GSO)
	}
}

// Where there is no room to be had the frame stays as it is.
func TestBatchRoomRefused(t *testing.T) {
	b := NewBatch(nil)
	own := buffer(100)
	f := b.Borrow(own, 10, 90)
	if b.Room(f, Headroom+1) || b.Room(f, 1<<30) {
		t.Error("more than Headroom")
	}
	if b.New(ArenaSize-2*Headroom-79) == nil { // a byte too little is left
		t.Fatal("no memory")
	}
	used := b.used
	if b.Room(f, 11) || b.used != used {
		t.Error("moved into a full arena")
	}
	if &f.Bytes()[0] != &own[10] || f.Len() != 80 || f.Headroom() != 10 {
		t.Errorf("changed: %+v", f)
	}
	if !b.Room(f, 10) {
		t.Error("there is room for 10")
	}
	stranger := NewBatch(nil)
	g := Over(own, 0, 50)
	if stranger.Room(&g, 1) {
		t.Error("a batch without memory has given some")
	}
	b.Reset()
	f = b.Borrow(own, 0, 80)
	if !b.Room(f, Headroom) || f.Headroom() != Headroom {
		t.Error("the memory is not free again")
	}
	// A batch of segments of a full-sized run fits.
	b.Reset()
	for i := range MaxBatch {
		if f := b.Borrow(make([]byte, 1500), 0, 1500); !b.Room(f, 14) {
			t.Fatalf("frame %d", i)
		}
	}
}

func TestBatchRoomAllocatesNothing(t *testing.T) {
	b, own := NewBatch(nil), buffer(1500)
	if n := testing.AllocsPerRun(100, func() {
		b.Reset()
		for range MaxBatch {
			if !b.Room(b.Borrow(own, 8, 1500), 14) {
				t.Fatal("no room")
			}
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
