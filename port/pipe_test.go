package port

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/fake"
)

func TestPipeCarriesFramesInOrder(t *testing.T) {
	p := NewPipe(nil)
	defer p.Close()
	if p.Name() != "pipe" || p.MTU(0) != 1514 {
		t.Errorf("defaults: name %q, MTU %d", p.Name(), p.MTU(0))
	}
	const n = 200
	buf := make([]byte, 1514)
	for i := range n {
		copy(buf, fake.Ethernet(14+i, byte(i)))
		must(t, p.Send(buf[:14+i]))
	}
	b := frame.NewBatch(nil)
	for got := 0; got < n; got += len(b.Frames) {
		must(t, p.Readers()[0].Read(b))
		for i := range b.Frames {
			f := &b.Frames[i]
			if want := fake.Ethernet(14+got+i, byte(got+i)); !bytes.Equal(f.Bytes(), want) || f.Kind != frame.Ethernet || f.Drop != 0 {
				t.Fatalf("frame %d: %v", got+i, f.Bytes())
			}
		}
	}

	w := p.Writer(3)
	for i := range n {
		o := fake.Outs(fake.Ethernet(14+i, byte(i)))
		if err := w.Write(o); err != nil || o[0].Drop != 0 {
			t.Fatal(err, o[0].Drop)
		}
	}
	for i := range n {
		got, err := p.Recv(t.Context())
		if err != nil || !bytes.Equal(got, fake.Ethernet(14+i, byte(i))) {
			t.Fatalf("frame %d: %v, %v", i, got, err)
		}
	}
}

func TestPipeIsBounded(t *testing.T) {
	p := NewPipe(&PipeConfig{Queue: 3})
	defer p.Close()
	small := fake.Ethernet(60, 0)
	for range 3 {
		must(t, p.Send(small))
	}
	if err := p.Send(small); !errors.Is(err, ErrFull) {
		t.Errorf("fourth Send: %v", err)
	}
	o := fake.Outs(small, small, small, small, small)
	must(t, p.Writer(0).Write(o))
	fake.WantDrops(t, o, 0, 0, 0, frame.PortFull, frame.PortFull)
}

func TestPipeMTU(t *testing.T) {
	p := NewPipe(&PipeConfig{Name: "h1", MTU: 9014})
	defer p.Close()
	if p.Name() != "h1" || p.MTU(0) != 9014 {
		t.Errorf("name %q, MTU %d", p.Name(), p.MTU(0))
	}
	for n, ok := range map[int]bool{0: true, 9014: true, 9018: true, 9019: false} {
		if err := p.Send(make([]byte, n)); (err == nil) != ok {
			t.Errorf("Send of %d bytes: %v", n, err)
		}
	}
	o := fake.Outs(fake.Ethernet(9018, 0), fake.Ethernet(9019, 0))
	if err := p.Writer(0).Write(o); err != nil || o[0].Drop != 0 || o[1].Drop != frame.TooBig {
		t.Errorf("frames at and beyond the MTU: %v, %v, %v", err, o[0].Drop, o[1].Drop)
	}
}

func TestWhatAPortCannotSend(t *testing.T) {
	p := NewPipe(nil)
	defer p.Close()
	o := fake.Outs(fake.Ethernet(60, 0), fake.Ethernet(60, 0), fake.Ethernet(11, 0), fake.Ethernet(11, 0), fake.Ethernet(60, 0))
	o[0].F.Kind = frame.IPv4
	o[1].F.GSO = frame.GSO{Flags: frame.NeedsCsum, Type: frame.GSOTCP4, Size: 10, DataStart: 54}
	o[2].Tag = 7
	must(t, p.Writer(0).Write(o))
	fake.WantDrops(t, o, frame.BadKind, frame.BadKind, frame.BadKind, 0, 0)
}

func TestPipeCloseAndPauseWakeWhoWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPipe(nil)
		read, recv := make(chan error), make(chan error)
		b := frame.NewBatch(nil)
		go func() { read <- p.Readers()[0].Read(b) }()
		go func() { _, err := p.Recv(context.Background()); recv <- err }()

		synctest.Wait()
		p.Pause()
		if err := <-read; !errors.Is(err, frame.ErrPaused) {
			t.Errorf("Read of a paused pipe: %v", err)
		}
		if err := p.Send(fake.Ethernet(60, 0)); err != nil {
			t.Errorf("Send to a paused pipe: %v", err)
		}
		p.Resume()
		if err := p.Readers()[0].Read(b); err != nil || len(b.Frames) != 1 {
			t.Errorf("Read after Resume: %v, %d frames", err, len(b.Frames))
		}

		go func() { read <- p.Readers()[0].Read(b) }()
		synctest.Wait()
		p.Close()
		p.Close()
		if err := <-read; !errors.Is(err, net.ErrClosed) {
			t.Errorf("Read of a closed pipe: %v", err)
		}
		if err := <-recv; !errors.Is(err, net.ErrClosed) {
			t.Errorf("Recv of a closed pipe: %v", err)
		}
		if err := p.Send(fake.Ethernet(60, 0)); !errors.Is(err, net.ErrClosed) {
			t.Errorf("Send to a closed pipe: %v", err)
		}
		o := fake.Outs(fake.Ethernet(60, 0), fake.Ethernet(60, 0))
		if err := p.Writer(0).Write(o); !errors.Is(err, net.ErrClosed) || o[0].Drop != frame.PortDown || o[1].Drop != frame.PortDown {
			t.Errorf("Write to a closed pipe: %v, %v, %v", err, o[0].Drop, o[1].Drop)
		}
	})
}

func TestPipeRecvEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPipe(nil)
		defer p.Close()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := p.Recv(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Recv: %v", err)
		}
	})
}

func TestPipeAllocatesNothing(t *testing.T) {
	p := NewPipe(nil)
	defer p.Close()
	packet := fake.Ethernet(1514, 0)
	packets := slices.Repeat([][]byte{packet}, frame.MaxBatch)
	b, r := frame.NewBatch(nil), p.Readers()[0]
	w, o := p.Writer(0), fake.Outs(packets...)
	drain := frame.NewBatch(nil)
	if n := testing.AllocsPerRun(200, func() {
		for range frame.MaxBatch {
			p.Send(packet)
		}
		r.Read(b)
		w.Write(o)
		p.out.Fill(drain, nil)
	}); n != 0 && !fake.Race {
		t.Errorf("%v allocations for a batch each way", n)
	}
	if len(b.Frames) != frame.MaxBatch || o[0].Drop != 0 {
		t.Errorf("%d frames, %v", len(b.Frames), o[0].Drop)
	}
}

// heap returns how much memory is in use.
func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func TestIdlePipesCostLittle(t *testing.T) {
	const n = 256
	pipes := make([]*Pipe, n)
	before := heap()
	for i := range pipes {
		pipes[i] = NewPipe(nil)
	}
	fresh := heap() - before
	b := frame.NewBatch(nil)
	for _, p := range pipes { // a burst each, read at once
		o := fake.Outs(fake.Ethernet(1514, 0))
		for range frame.MaxBatch {
			p.Send(o[0].F.Bytes())
			p.Writer(0).Write(o)
		}
		p.Readers()[0].Read(b)
		p.out.Fill(b, nil)
	}
	b = nil
	used := heap() - before
	t.Logf("%d pipes: %d KiB fresh, %d KiB after a burst", n, fresh>>10, used>>10)
	if fresh > 1<<20 || used > 4<<20 {
		t.Error("too much")
	}
	runtime.KeepAlive(pipes)
}

func ExamplePipe() {
	p := NewPipe(&PipeConfig{Name: "h1"})
	defer p.Close()

	// The switch's side: read what the host sends, and send it back.
	go func() {
		b, w := frame.NewBatch(nil), p.Writer(0)
		for p.Readers()[0].Read(b) == nil {
			for i := range b.Frames {
				w.Write([]frame.Out{{F: &b.Frames[i]}})
			}
		}
	}()

	// The host's side.
	if err := p.Send([]byte("to-mac" + "frommc" + "\x08\x00" + "hello")); err != nil {
		fmt.Println(err)
	}
	got, err := p.Recv(context.Background())
	fmt.Printf("%q %v\n", got, err)
	// Output: "to-macfrommc\b\x00hello" <nil>
}
