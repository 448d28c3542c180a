package frame

import (
	"bytes"
	"sync"
	"testing"
)

func TestBatchNew(t *testing.T) {
	b := NewBatch(nil)
	var fs []*Frame
	for i := range MaxBatch {
		f := b.New(100 + i)
		if f == nil || f.Len() != 100+i || f.Headroom() != Headroom || f.Extend(1) != nil {
			t.Fatalf("frame %d: %+v", i, f)
		}
		for j := range f.Bytes() {
			f.Bytes()[j] = byte(i)
		}
		f.Push(Headroom)
		for j := range Headroom {
			f.Bytes()[j] = byte(i)
		}
		f.Pull(Headroom)
		fs = append(fs, f)
	}
	if b.New(1) != nil || b.Borrow(nil, 0, 0) != nil {
		t.Error("one more than MaxBatch")
	}
	if len(b.Frames) != MaxBatch || len(b.Outer) != MaxBatch {
		t.Fatalf("%d frames, %d outers", len(b.Frames), len(b.Outer))
	}
	for i, f := range fs { // no two share a byte
		if f != &b.Frames[i] || !bytes.Equal(f.Bytes(), bytes.Repeat([]byte{byte(i)}, 100+i)) {
			t.Fatalf("frame %d has been written over", i)
		}
	}
}

func TestBatchNewIsClean(t *testing.T) {
	b := NewBatch(nil)
	f := b.New(10)
	f.VNI, f.Drop, f.Tunnel, f.GSO.Size, f.Hash, f.From, f.Kind = 1, Short, true, 2, 3, 4, IPv4
	b.Reset()
	for _, g := range []*Frame{b.New(10), b.Borrow(make([]byte, 4), 0, 4)} {
		if g.VNI != 0 || g.Drop != 0 || g.Tunnel || g.GSO != (GSO{}) || g.Hash != 0 || g.From != 0 || g.Kind != Ethernet {
			t.Errorf("something of an earlier frame is left: %+v", g)
		}
	}
}

func TestBatchRunsFull(t *testing.T) {
	b := NewBatch(nil)
	n := 0
	for b.New(65536) != nil {
		n++
	}
	if n != 3 {
		t.Errorf("%d superframes, want 3", n)
	}
	if b.New(9000) == nil {
		t.Error("no room for a small one in what is left")
	}
	if len(b.Frames) != 4 {
		t.Errorf("%d frames: a refused one counts", len(b.Frames))
	}
	b.Reset()
	for n = 0; b.New(9216) != nil; n++ {
	}
	if n < 27 {
		t.Errorf("%d jumbo frames", n)
	}
	b.Reset()
	if b.New(-1) != nil || b.New(ArenaSize) != nil || b.New(ArenaSize-Headroom) == nil || b.New(0) != nil {
		t.Error("the whole arena is one frame, and not more")
	}
}

func TestBatchBorrow(t *testing.T) {
	b := NewBatch(nil)
	own := buffer(32)
	f := b.Borrow(own, 8, 24)
	if &f.Bytes()[0] != &own[8] || f.Headroom() != 8 || len(b.Outer) != 1 {
		t.Error("not over the reader's own memory")
	}
	if g := b.New(16); g == nil || &g.Bytes()[0] == &own[8] {
		t.Error("New beside Borrow")
	}
}

func TestBatchKeep(t *testing.T) {
	b := NewBatch(nil)
	first := b.New(10)
	b.New(10)
	b.New(10)
	b.Keep(1)
	if len(b.Frames) != 1 || len(b.Outer) != 1 || &b.Frames[0] != first {
		t.Errorf("%d frames", len(b.Frames))
	}
	f := b.New(10)
	if len(b.Frames) != 2 || f != &b.Frames[1] {
		t.Error("New after Keep")
	}
	b.Keep(0)
	if len(b.Frames) != 0 {
		t.Error("Keep none")
	}
}

func TestBatchResetAndRelease(t *testing.T) {
	var pool Arenas
	b := NewBatch(&pool)
	b.Release() // nothing yet
	if b.arena != nil || len(pool.arenas.free) != 0 {
		t.Error("an empty batch has an arena")
	}
	b.New(10)
	mine := b.arena
	b.Reset()
	if b.arena != mine || len(b.Frames) != 0 || len(b.Outer) != 0 || b.used != 0 {
		t.Error("Reset keeps the arena and forgets the frames")
	}
	b.New(10)
	b.Release()
	b.Release()
	if b.arena != nil || cap(b.Frames) != 0 || len(pool.arenas.free) != 1 {
		t.Errorf("Release gives the arena back, once: %d free", len(pool.arenas.free))
	}
	c := NewBatch(&pool)
	c.New(10)
	if c.arena != mine {
		t.Error("the arena is not used again")
	}
	b.New(10)
	if b.arena == mine || b.arena == nil {
		t.Error("two batches have one arena")
	}
	own := NewBatch(nil)
	own.New(10)
	kept := own.arena
	own.Release()
	if own.New(10); own.arena != kept {
		t.Error("a batch without a pool keeps its arena")
	}
}

func TestBlocks(t *testing.T) {
	var pool Arenas
	b := NewBatch(&pool)
	if b.Pool() != &pool {
		t.Error("another pool")
	}
	own := NewBatch(nil)
	if p := own.Pool(); p == nil || p != own.Pool() || p == &pool {
		t.Error("a batch without a pool has one of its own")
	}
	x, y := pool.Block(), pool.Block()
	if x == y {
		t.Fatal("one Block twice")
	}
	pool.Free(x)
	if pool.Block() != x {
		t.Error("a Block that is free is not used again")
	}
	for range 2 * spareBlocks {
		pool.Free(y)
	}
	if len(pool.blocks.free) != spareBlocks {
		t.Errorf("%d spare Blocks, want %d", len(pool.blocks.free), spareBlocks)
	}
	if n := testing.AllocsPerRun(100, func() { pool.Free(pool.Block()) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestArenasBounded(t *testing.T) {
	var pool Arenas
	var bs []*Batch
	for range 3 * spareArenas {
		b := NewBatch(&pool)
		b.New(1)
		bs = append(bs, b)
	}
	for _, b := range bs {
		b.Release()
	}
	if len(pool.arenas.free) != spareArenas {
		t.Errorf("%d spare arenas, want %d", len(pool.arenas.free), spareArenas)
	}
}

// Batches of many readers over one pool; -race watches.
func TestArenasShared(t *testing.T) {
	var pool Arenas
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			b := NewBatch(&pool)
			for range 200 {
				for range 3 {
					f := b.New(64)
					for j := range f.Bytes() {
						f.Bytes()[j] = byte(i)
					}
				}
				for k := range b.Frames {
					if !bytes.Equal(b.Frames[k].Bytes(), bytes.Repeat([]byte{byte(i)}, 64)) {
						t.Error("another batch wrote here")
						return
					}
				}
				b.Release()
			}
		})
	}
	wg.Wait()
}

func TestBatchAllocatesNothing(t *testing.T) {
	var pool Arenas
	b := NewBatch(&pool)
	b.New(1)
	buf := make([]byte, 100)
	if n := testing.AllocsPerRun(100, func() {
		b.Release()
		for range MaxBatch / 2 {
			b.New(1500)
			b.Borrow(buf, 10, 90)
		}
		b.Keep(3)
		b.Reset()
		f := b.New(100)
		f.Push(8)
		f.Pull(20)
		f.Trim(5)
		f.Extend(2)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestShrinkGivesBackTheArena(t *testing.T) {
	b := NewBatch(nil)
	const longest = 65535
	for i := range MaxBatch {
		f := b.New(longest)
		if f == nil {
			t.Fatalf("no room for frame %d", i)
		}
		if i == 3 { // a reader may have used the headroom, and given it back
			f.Push(10)
			f.Pull(10)
		}
		clear(f.Bytes())
		n := []int{0, 1, 63, 64, 65, 1514}[i%6]
		b.Shrink(n)
		if f.Len() != n || f.Headroom() != Headroom || f.Extend(1) != nil {
			t.Fatalf("frame %d: %d bytes, want %d; headroom %d", i, f.Len(), n, f.Headroom())
		}
		for k := range f.Bytes() {
			f.Bytes()[k] = byte(i)
		}
	}
	if b.New(0) != nil {
		t.Error("one more than MaxBatch")
	}
	for i := range b.Frames {
		for _, x := range b.Frames[i].Bytes() {
			if x != byte(i) {
				t.Fatalf("frame %d was overwritten by frame %d", i, x)
			}
		}
	}
	b.Reset()
	n := 0
	for ; b.New(longest) != nil; n++ {
		b.Shrink(longest)
	}
	if want := ArenaSize / (1 << 16); n < want-1 {
		t.Errorf("%d superframes in an arena of %d bytes", n, ArenaSize)
	}
}
