package porttest

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/fake"
	"github.com/vxswitch/vxswitch/internal/wrap"
	"github.com/vxswitch/vxswitch/port"
)

func TestFaultyPauseAndClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pipe := port.NewPipe(nil)
		f := newFaulty(t, pipe, nil)
		p := f.Port()
		p.(wrap.Pauser).Pause()
		r, b := p.Readers()[0], frame.NewBatch(nil)
		if err := r.Read(b); !errors.Is(err, frame.ErrPaused) {
			t.Errorf("Read while paused: %v", err)
		}
		p.(wrap.Pauser).Resume()
		read := make(chan error)
		again := func() { go func() { read <- r.Read(b) }() }
		again()
		synctest.Wait()
		p.(wrap.Pauser).Pause()
		if err := <-read; !errors.Is(err, frame.ErrPaused) {
			t.Errorf("Read when paused: %v", err)
		}
		pipe.Send(numbered(9))
		synctest.Wait()
		p.(wrap.Pauser).Resume()
		if err := r.Read(b); err != nil || number(b.Frames[0].Bytes()) != 9 {
			t.Errorf("Read after Resume: %v", err)
		}
		again()
		synctest.Wait()
		if err := p.Close(); err != nil {
			t.Error(err)
		}
		if err := <-read; !errors.Is(err, net.ErrClosed) {
			t.Errorf("Read when closed: %v", err)
		}
		if err := p.Readers()[0].Read(b); !errors.Is(err, net.ErrClosed) {
			t.Errorf("Read after Close: %v", err)
		}
		o := fake.Outs(numbered(0), numbered(1))
		if err := p.Writer(0).Write(o); !errors.Is(err, net.ErrClosed) || o[1].Drop != frame.PortDown {
			t.Errorf("Write after Close: %v, %v", err, o[1].Drop)
		}
	})
}

// Frames before the end of a port come out, then its error, again and again.
func TestFaultyPortThatEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		f := newFaulty(t, port.FromReadWriteCloser(near, nil), &FaultyConfig{In: Faults{Delay: 1}})
		r, b := f.Port().Readers()[0], frame.NewBatch(nil)
		far.Write(numbered(1))
		far.Close()
		frames, ends := 0, 0
		for end := time.Now().Add(time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
			switch err := r.Read(b); {
			case err == nil:
				frames += len(b.Frames)
			case errors.Is(err, io.EOF):
				ends++
			default:
				t.Fatal(err)
			}
		}
		if frames != 1 || ends < 2 {
			t.Errorf("%d frames, the error %d times", frames, ends)
		}
		f.Port().Close()
		if err := r.Read(b); !errors.Is(err, net.ErrClosed) {
			t.Errorf("Read after Close: %v", err)
		}
	})
}

func TestFaultyPortThatRefusesAndBreaks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		under, broken := fake.New("p"), errors.New("broken")
		var answer error
		under.OnWrite = func(out []frame.Out) error { out[0].Drop = frame.TooBig; return answer }
		f := newFaulty(t, under, nil)
		w := f.Port().Writer(0)
		w.Write(fake.Outs(numbered(0)))
		synctest.Wait()
		answer = broken
		w.Write(fake.Outs(numbered(0)))
		synctest.Wait()
		if s := f.Stats().Out; s.Refused != 2 {
			t.Errorf("%+v", s)
		}
		if err := w.Write(fake.Outs(numbered(0))); err != broken {
			t.Errorf("Write to a broken port: %v", err)
		}
	})
}

func TestFaultyUnderTraffic(t *testing.T) {
	pipe := port.NewPipe(&port.PipeConfig{Queue: 1 << 14})
	faults := Faults{Loss: 0.1, Corrupt: 0.1, Duplicate: 0.1, Delay: 0.1, Reorder: 0.1, By: time.Millisecond}
	f := newFaulty(t, pipe, &FaultyConfig{In: faults, Out: faults, Queue: 1 << 14})
	p := f.Port()
	const n = 2000
	var wg sync.WaitGroup
	for w := range 2 {
		wg.Go(func() {
			wr := p.Writer(w)
			for i := range n {
				wr.Write(fake.Outs(numbered(i)))
			}
		})
	}
	wg.Go(func() {
		for i := range n {
			pipe.Send(numbered(i))
			if i%100 == 0 {
				p.(wrap.Pauser).Pause()
				p.(wrap.Pauser).Resume()
				f.Set(faults, faults)
			}
		}
	})
	var read, received atomic.Int64
	wg.Go(func() {
		b := frame.NewBatch(nil)
		for {
			switch err := p.Readers()[0].Read(b); {
			case err == nil:
				read.Add(int64(len(b.Frames)))
			case !errors.Is(err, frame.ErrPaused):
				return
			}
		}
	})
	ctx, cancel := context.WithCancel(t.Context())
	wg.Go(func() {
		for {
			if _, err := pipe.Recv(ctx); err != nil {
				return
			}
			received.Add(1)
		}
	})
	fake.Until(t, "all are counted", func() bool {
		s := f.Stats()
		return s.Out.Frames == 2*n && s.In.Frames == n
	})
	// Nothing else is lost, though some of it takes its time.
	left := func(c FaultCounts) int64 { return int64(c.Frames - c.Lost + c.Duplicated) }
	fake.Until(t, "all have arrived", func() bool {
		s := f.Stats()
		return read.Load() == left(s.In) && received.Load() == left(s.Out)
	})
	if s := f.Stats(); s.In.Full+s.Out.Full+s.Out.Refused != 0 || s.In.Delayed == 0 || s.Out.Reordered == 0 {
		t.Errorf("%+v", s)
	}
	cancel()
	p.Close()
	wg.Wait()
}
