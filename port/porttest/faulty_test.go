package porttest

import (
	"bytes"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/fake"
	"github.com/vxswitch/vxswitch/port"
)

func newFaulty(t testing.TB, p port.Port, cfg *FaultyConfig) *Faulty {
	t.Helper()
	f := check.Must(NewFaulty(p, cfg))(t)
	t.Cleanup(func() { f.Port().Close() })
	return f
}

// numbered is a frame that says which one it is.
func numbered(i int) []byte {
	p := fake.Ethernet(60, 0)
	p[14], p[15] = byte(i>>8), byte(i)
	return p
}

func number(p []byte) int { return int(p[14])<<8 | int(p[15]) }

// sendThrough writes n numbered frames, one Write each, and returns the numbers that
// come out at the port within the time, in their order.
func sendThrough(t *testing.T, f *Faulty, under *fake.Port, n int, within time.Duration) (got []int) {
	t.Helper()
	w := f.Port().Writer(0)
	before := len(under.Written())
	for i := range n {
		o := fake.Outs(numbered(i))
		if err := w.Write(o); err != nil || o[0].Drop != 0 {
			t.Fatalf("frame %d: %v, %v", i, err, o[0].Drop)
		}
	}
	time.Sleep(within)
	synctest.Wait()
	for _, o := range under.Written()[before:] {
		got = append(got, number(o.F.Bytes()))
	}
	return got
}

// readThrough is likewise for frames that come in.
func readThrough(t *testing.T, f *Faulty, under *fake.Port, n int, within time.Duration) (got []int) {
	t.Helper()
	for i := range n {
		under.In <- frame.Make(numbered(i))
	}
	r, b := f.Port().Readers()[0], frame.NewBatch(nil)
	time.Sleep(within)
	synctest.Wait()
	for l := r.(*faultyReader).line; ; {
		l.mu.Lock()
		x := l.queue.First()
		due := x != nil && !x.Due.After(time.Now())
		l.mu.Unlock()
		if !due {
			return got
		}
		check.OK(t, r.Read(b))
		for i := range b.Frames {
			got = append(got, number(b.Frames[i].Bytes()))
		}
	}
}

// Both directions show the same faults.
var directions = map[string]struct {
	cfg     func(f Faults) *FaultyConfig
	through func(t *testing.T, f *Faulty, under *fake.Port, n int, within time.Duration) []int
	counts  func(s FaultyStats) FaultCounts
}{
	"out": {func(f Faults) *FaultyConfig { return &FaultyConfig{Out: f, Seed: 7} }, sendThrough, func(s FaultyStats) FaultCounts { return s.Out }},
	"in":  {func(f Faults) *FaultyConfig { return &FaultyConfig{In: f, Seed: 7} }, readThrough, func(s FaultyStats) FaultCounts { return s.In }},
}

func TestFaultyEachFault(t *testing.T) {
	count := func(n int) (ns []int) {
		for i := range n {
			ns = append(ns, i)
		}
		return ns
	}
	for name, d := range directions {
		for _, c := range []struct {
			faults Faults
			n      int
			within time.Duration
			want   []int
			counts FaultCounts
		}{
			{Faults{}, 64, 0, count(64), FaultCounts{Frames: 64}},
			{Faults{Loss: 1}, 9, time.Second, nil, FaultCounts{Frames: 9, Lost: 9}},
			{Faults{Duplicate: 1}, 3, 0, []int{0, 0, 1, 1, 2, 2}, FaultCounts{Frames: 3, Duplicated: 3}},
			{Faults{Corrupt: 1, Loss: 1}, 3, 0, nil, FaultCounts{Frames: 3, Lost: 3}},
			{Faults{Delay: 1}, 3, 10*time.Millisecond - 1, nil, FaultCounts{Frames: 3, Delayed: 3}},
			{Faults{Delay: 1}, 3, 10 * time.Millisecond, []int{0, 1, 2}, FaultCounts{Frames: 3, Delayed: 3}},
			{Faults{Delay: 1, By: time.Hour}, 3, time.Hour, []int{0, 1, 2}, FaultCounts{Frames: 3, Delayed: 3}},
			{Faults{Delay: 1, Reorder: 1}, 3, time.Second, []int{0, 1, 2}, FaultCounts{Frames: 3, Delayed: 3}},
			// Every second one is held for its follower; the last has none.
			{Faults{Reorder: 1}, 5, 10*time.Millisecond - 1, []int{1, 0, 3, 2}, FaultCounts{Frames: 5, Reordered: 3}},
			{Faults{Reorder: 1}, 5, 10 * time.Millisecond, []int{1, 0, 3, 2, 4}, FaultCounts{Frames: 5, Reordered: 3}},
		} {
			t.Run(fmt.Sprintf("%s %+v %v", name, c.faults, c.within), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					under := fake.New("p")
					f := newFaulty(t, under, d.cfg(c.faults))
					if got := d.through(t, f, under, c.n, c.within); !slices.Equal(got, c.want) {
						t.Errorf("got %v, want %v", got, c.want)
					}
					if got := d.counts(f.Stats()); got != c.counts {
						t.Errorf("got %+v, want %+v", got, c.counts)
					}
				})
			})
		}
	}
}

func TestFaultyCorruptsOneBitOfACopy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		under := fake.New("p")
		f := newFaulty(t, under, &FaultyConfig{Out: Faults{Corrupt: 1, Duplicate: 1}})
		in := fake.Ethernet(60, 1)
		o := fake.Outs(in, nil)
		o[0].Tag, o[0].Peer, o[0].F.Hash = 5, 6, 7
		f.Port().Writer(0).Write(o)
		synctest.Wait()
		if !bytes.Equal(o[0].F.Bytes(), in) {
			t.Error("the frame itself was changed")
		}
		got := under.Written()
		if len(got) != 4 {
			t.Fatalf("%d frames", len(got))
		}
		for _, g := range got[:2] {
			flipped := 0
			for i, c := range g.F.Bytes() {
				flipped += bits.OnesCount8(c ^ in[i])
			}
			if flipped != 1 || g.F.Len() != 60 || g.Tag != 5 || g.Peer != 6 || g.F.Hash != 7 {
				t.Errorf("%d bits of %d bytes differ; %+v", flipped, g.F.Len(), g)
			}
		}
		if !bytes.Equal(got[0].F.Bytes(), got[1].F.Bytes()) {
			t.Error("the duplicate is another frame")
		}
		if s := f.Stats().Out; s.Corrupted != 1 || s.Duplicated != 2 {
			t.Errorf("%+v", s)
		}
	})
}

// Whoever reads a duplicate may rewrite it in place.
func TestFaultyDuplicatesShareNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		under := fake.New("p")
		f := newFaulty(t, under, &FaultyConfig{In: Faults{Duplicate: 1}})
		r, b := f.Port().Readers()[0], frame.NewBatch(nil)
		under.In <- frame.Make(fake.Ethernet(60, 1))
		synctest.Wait()
		if err := r.Read(b); err != nil || len(b.Frames) != 2 {
			t.Fatalf("%v, %d frames", err, len(b.Frames))
		}
		clear(b.Frames[0].Bytes())
		if !bytes.Equal(b.Frames[1].Bytes(), fake.Ethernet(60, 1)) || b.Frames[1].Headroom() != frame.Headroom {
			t.Error("the duplicate changes with the frame")
		}
	})
}

// Nor does one that is rewritten while the other is made.
func TestFaultyDuplicatesAreMadeBeforeTheyLeave(t *testing.T) {
	pipe := port.NewPipe(&port.PipeConfig{Queue: 1 << 12})
	f := newFaulty(t, pipe, &FaultyConfig{In: Faults{Duplicate: 1}, Queue: 1 << 14})
	const n = 2000
	go func() {
		for i := range n {
			pipe.Send(numbered(i))
		}
	}()
	r, b := f.Port().Readers()[0], frame.NewBatch(nil)
	for got := 0; got < 2*n; got += len(b.Frames) {
		check.OK(t, r.Read(b))
		for i := range b.Frames {
			if p := b.Frames[i].Bytes(); number(p) != (got+i)/2 {
				t.Fatalf("frame %d is number %d", got+i, number(p))
			}
		}
		for i := range b.Frames {
			clear(b.Frames[i].Bytes())
		}
	}
}

// The same seed hits the same frames; another one, others; rates come out right; one
// rate does not change what another hits; and faults can be set at run time.
func TestFaultyIsDeterministic(t *testing.T) {
	run := func(seed uint64, out Faults) (got []int, s FaultCounts) {
		synctest.Test(t, func(t *testing.T) {
			under := fake.New("p")
			f := newFaulty(t, under, &FaultyConfig{Seed: seed, Queue: 10000})
			if n := len(sendThrough(t, f, under, 50, 0)); n != 50 {
				t.Errorf("%d of 50 frames on a good line", n)
			}
			check.OK(t, f.Set(Faults{Loss: 1}, out))
			got = sendThrough(t, f, under, 4000, time.Second)
			s = f.Stats().Out
		})
		return got, s
	}
	all := Faults{Loss: 0.1, Corrupt: 0.02, Duplicate: 0.05, Delay: 0.2, Reorder: 0.1}
	first, s := run(1, all)
	second, _ := run(1, all)
	other, _ := run(2, all)
	if !slices.Equal(first, second) {
		t.Error("the same seed gives another outcome")
	}
	if slices.Equal(first, other) {
		t.Error("another seed gives the same outcome")
	}
	for _, c := range []struct {
		name string
		n    uint64
		want float64
	}{{"lost", s.Lost, 400}, {"corrupted", s.Corrupted, 72}, {"duplicated", s.Duplicated, 180}, {"delayed", s.Delayed, 720}, {"reordered", s.Reordered, 240}} {
		if math.Abs(float64(c.n)-c.want) > c.want/4 {
			t.Errorf("%d %s, want about %v", c.n, c.name, c.want)
		}
	}
	if len(first) != 4000-int(s.Lost)+int(s.Duplicated) {
		t.Errorf("%d frames arrived: %+v", len(first), s)
	}
	lossOnly, _ := run(1, Faults{Loss: 0.1})
	all.Corrupt = 0 // it may change the number in the frame
	more, _ := run(1, all)
	slices.Sort(more)
	if !slices.Equal(slices.Compact(more), lossOnly) {
		t.Error("other faults change which frames are lost")
	}
}

func TestFaultyQueueIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		under := fake.New("p")
		late := Faults{Delay: 1, By: time.Second}
		f := newFaulty(t, under, &FaultyConfig{In: late, Out: late, Queue: 3})
		o := fake.Outs(numbered(0), numbered(1), numbered(2), numbered(3), numbered(4))
		if err := f.Port().Writer(0).Write(o); err != nil {
			t.Error(err)
		}
		fake.WantDrops(t, o, 0, 0, 0, frame.PortFull, frame.PortFull)
		if got := readThrough(t, f, under, 5, time.Second); !slices.Equal(got, []int{0, 1, 2}) {
			t.Errorf("came in: %v", got)
		}
		if s := f.Stats(); s.Out.Full != 2 || s.In.Full != 2 || len(under.Written()) != 3 {
			t.Errorf("%+v, %d written", s, len(under.Written()))
		}
	})
}

func TestFaultyConfig(t *testing.T) {
	for _, c := range []struct {
		cfg  FaultyConfig
		want string
	}{
		{FaultyConfig{Queue: -1}, "FaultyConfig.Queue"},
		{FaultyConfig{Queue: maxQueue + 1}, "FaultyConfig.Queue"},
		{FaultyConfig{In: Faults{Loss: 1.01}}, "In.Loss"},
		{FaultyConfig{In: Faults{Corrupt: -0.1}}, "In.Corrupt"},
		{FaultyConfig{Out: Faults{Duplicate: math.NaN()}}, "Out.Duplicate"},
		{FaultyConfig{Out: Faults{Delay: 2}}, "Out.Delay"},
		{FaultyConfig{Out: Faults{Reorder: 2}}, "Out.Reorder"},
		{FaultyConfig{In: Faults{By: -1}}, "In.By"},
	} {
		if _, err := NewFaulty(fake.New("p"), &c.cfg); err == nil || !strings.Contains(err.Error(), c.want+": ") {
			t.Errorf("%+v: %v", c.cfg, err)
		}
	}
	f := newFaulty(t, fake.New("p"), &FaultyConfig{In: Faults{Loss: 0.5}})
	if err := f.Set(Faults{}, Faults{Loss: 7}); err == nil || f.dirs[inward].faults.Loss != 0.5 {
		t.Errorf("Set of a wrong rate: %v", err)
	}
}
