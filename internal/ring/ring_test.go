package ring

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
)

func TestPacketsComeOutInOrder(t *testing.T) {
	const size = 37
	r := New[int](size)
	var model [][]byte
	rng := rand.New(rand.NewPCG(1, 2))
	put, taken := 0, 0
	b := frame.NewBatch(nil)
	for range 5000 {
		switch rng.IntN(3) {
		case 0, 1:
			p := make([]byte, rng.IntN(2000))
			for i := range p {
				p[i] = byte(put + i)
			}
			cut := rng.IntN(len(p) + 1)
			got := r.Put(put, p[:cut], p[cut:])
			want := frame.NotDropped
			if len(model) == size {
				want = frame.PortFull
			} else {
				model = append(model, p)
				put++
			}
			if got != want {
				t.Fatalf("Put with %d waiting: %v, want %v", len(model), got, want)
			}
		case 2:
			if len(model) == 0 {
				continue
			}
			if rng.IntN(2) == 0 {
				p, m, err := r.Take(context.Background())
				if err != nil || m != taken || !bytes.Equal(p, model[0]) {
					t.Fatalf("Take: packet %d, %v; want packet %d", m, err, taken)
				}
				model = model[1:]
				taken++
				continue
			}
			var metas []int
			if err := r.Fill(b, func(_ *frame.Batch, i, m int) {
				if i != len(metas) {
					t.Fatalf("set called with index %d, want %d", i, len(metas))
				}
				metas = append(metas, m)
			}); err != nil {
				t.Fatal(err)
			}
			if want := min(len(model), frame.MaxBatch); len(b.Frames) != want {
				t.Fatalf("Fill brought %d of %d packets", len(b.Frames), want)
			}
			for i := range b.Frames {
				if metas[i] != taken || !bytes.Equal(b.Frames[i].Bytes(), model[0]) {
					t.Fatalf("Fill: packet %d is wrong", taken)
				}
				model = model[1:]
				taken++
			}
		}
		if r.Len() != len(model) {
			t.Fatalf("Len %d, want %d", r.Len(), len(model))
		}
	}
	if len(r.slots) > size {
		t.Errorf("table of %d slots for %d packets", len(r.slots), size)
	}
}

func TestTableGrowsWithWhatWaits(t *testing.T) {
	r := New[int](1 << 20)
	if len(r.slots) != 0 {
		t.Errorf("an empty ring has %d slots", len(r.slots))
	}
	for i := range 100 {
		r.Put(i, []byte{1})
	}
	if len(r.slots) != 128 {
		t.Errorf("100 packets in %d slots, want 128", len(r.slots))
	}
	if r := New[int](0); r.Put(1) != frame.NotDropped || r.Put(2) != frame.PortFull {
		t.Error("the smallest ring does not hold one packet")
	}
}

func TestPacketLargerThanAnArena(t *testing.T) {
	r := New[int](4)
	big := bytes.Repeat([]byte{7}, frame.ArenaSize+1)
	r.Put(0, []byte{1})
	r.Put(1, big)
	r.Put(2, []byte{3})
	b := frame.NewBatch(nil)
	for _, want := range [][]byte{{1}, big} {
		check.OK(t, r.Fill(b, nil))
		if !bytes.Equal(b.Frames[0].Bytes(), want) {
			t.Fatalf("frame of %d bytes, want %d", b.Frames[0].Len(), len(want))
		}
	}
	if len(b.Frames) != 2 || b.Frames[1].Bytes()[0] != 3 {
		t.Errorf("%d frames after the large one", len(b.Frames)-1)
	}
}

func TestWaitersWake(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	cases := []struct {
		name string
		do   func(r *Ring[int])
		want error
	}{
		{"close", (*Ring[int]).Close, net.ErrClosed},
		{"pause", func(r *Ring[int]) { r.Pause(true) }, frame.ErrPaused},
		{"put", func(r *Ring[int]) { r.Put(1, []byte{1}) }, nil},
	}
	for _, c := range cases {
		t.Run(c.name+" wakes Fill", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := New[int](1)
				go func() { time.Sleep(time.Second); c.do(r) }()
				if err := r.Fill(frame.NewBatch(nil), nil); !errors.Is(err, c.want) {
					t.Errorf("Fill: %v, want %v", err, c.want)
				}
			})
		})
		t.Run(c.name+" wakes Take", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := New[int](1)
				go func() { time.Sleep(time.Second); c.do(r) }()
				if _, _, err := r.Take(context.Background()); !errors.Is(err, c.want) {
					t.Errorf("Take: %v, want %v", err, c.want)
				}
			})
		})
	}
	t.Run("the context wakes Take", func(t *testing.T) {
		if _, _, err := New[int](1).Take(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Take: %v", err)
		}
	})
}

func TestPauseKeepsPacketsAndCloseForgetsThem(t *testing.T) {
	r := New[int](2)
	r.Put(1, []byte{1})
	r.Pause(true)
	if reason := r.Put(2, []byte{2}); reason != frame.NotDropped {
		t.Errorf("Put while paused: %v", reason)
	}
	if err := r.Fill(frame.NewBatch(nil), nil); !errors.Is(err, frame.ErrPaused) {
		t.Errorf("Fill while paused: %v", err)
	}
	r.Pause(false)
	if _, m, err := r.Take(context.Background()); m != 1 || err != nil {
		t.Errorf("Take after the pause: %d, %v", m, err)
	}
	r.Close()
	r.Close()
	if r.Len() != 0 || r.Put(3) != frame.PortDown {
		t.Error("closed ring holds or takes packets")
	}
	if _, _, err := r.Take(context.Background()); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Take after Close: %v", err)
	}
}

func TestIdleFillHoldsNoArena(t *testing.T) {
	var pool frame.Arenas
	r := New[int](1)
	b := frame.NewBatch(&pool)
	r.Put(1, []byte{1})
	check.OK(t, r.Fill(b, nil))
	r.Pause(true)
	if err := r.Fill(b, nil); err == nil || cap(b.Frames) != 0 {
		t.Errorf("Fill of an idle ring: %v, batch keeps its arena: %v", err, cap(b.Frames) != 0)
	}
}

func TestManyGoroutines(t *testing.T) {
	const writers, each = 4, 2000
	r := New[int](64)
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := 0; i < each; {
				if r.Put(w, binary.BigEndian.AppendUint32(nil, uint32(i))) == frame.NotDropped {
					i++
				} else {
					time.Sleep(time.Microsecond)
				}
			}
		})
	}
	next := make([]int, writers)
	b := frame.NewBatch(nil)
	for got := 0; got < writers*each; got += len(b.Frames) {
		if err := r.Fill(b, func(b *frame.Batch, i, w int) {
			if n := int(binary.BigEndian.Uint32(b.Frames[i].Bytes())); n != next[w] {
				t.Fatalf("writer %d: packet %d, want %d", w, n, next[w])
			}
			next[w]++
		}); err != nil {
			t.Fatal(err)
		}
	}
	wg.Wait()
}

// The room can be changed while packets are in: none is lost, and they keep their order.
func TestResize(t *testing.T) {
	r := New[int](4)
	in, out := 0, 0
	put := func(want int) {
		t.Helper()
		n := 0
		for ; r.Put(in, []byte{byte(in)}) == frame.NotDropped; n++ {
			in++
		}
		if n != want {
			t.Errorf("room for %d more, want %d", n, want)
		}
	}
	take := func(n int) {
		t.Helper()
		for ; n > 0; n-- {
			if p, m, err := r.Take(context.Background()); err != nil || m != out || p[0] != byte(out) {
				t.Errorf("packet %d, %v, want %d", m, err, out)
			}
			out++
		}
	}
	put(4)
	take(1)
	for _, c := range []struct{ size, room int }{{20, 17}, {3, 0}, {0, 0}, {25, 5}, {100, 75}} {
		r.Resize(c.size)
		put(c.room)
	}
	take(98)
	r.Resize(3)
	put(1)
	take(3)
	put(3)
	take(3)
}

func BenchmarkPutFill(b *testing.B) {
	r := New[int](frame.MaxBatch)
	batch := frame.NewBatch(nil)
	p := make([]byte, 1514)
	b.ReportAllocs()
	for b.Loop() {
		for i := range frame.MaxBatch {
			r.Put(i, p)
		}
		check.OK(b, r.Fill(batch, nil))
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/frame.MaxBatch, "ns/packet")
}
