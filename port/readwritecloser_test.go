package port

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/fake"
)

// script is a ReadWriteCloser that says what a test wants said.
type script struct {
	read   func(p []byte) (int, error)
	write  func(p []byte) (int, error)
	closed chan struct{}
	once   sync.Once
}

func (s *script) Read(p []byte) (int, error)  { return s.read(p) }
func (s *script) Write(p []byte) (int, error) { return s.write(p) }
func (s *script) Close() error                { s.once.Do(func() { close(s.closed) }); return nil }

func TestReadWriteCloserOverNetPipe(t *testing.T) {
	near, far := net.Pipe()
	p := FromReadWriteCloser(near, &ReadWriteCloserConfig{Name: "np", MTU: 9014})
	if p.Name() != "np" || p.MTU(0) != 9014 || len(p.Readers()) != 1 {
		t.Errorf("name %q, MTU %d", p.Name(), p.MTU(0))
	}
	in := fake.Ethernet(9018, 3)
	go func() {
		far.Write(in)
		far.Write(in[:5])
	}()
	b := frame.NewBatch(nil)
	for _, want := range [][]byte{in, in[:5]} {
		must(t, p.Readers()[0].Read(b))
		f := &b.Frames[0]
		if len(b.Frames) != 1 || !bytes.Equal(f.Bytes(), want) || f.Drop != 0 || f.Headroom() != frame.Headroom {
			t.Fatalf("%d frames, first of %d bytes, drop %v, headroom %d", len(b.Frames), f.Len(), f.Drop, f.Headroom())
		}
	}

	o := fake.Outs(in, in)
	written := make(chan bool)
	go func() {
		defer close(written)
		if err := p.Writer(0).Write(o); err != nil || o[0].Drop != 0 || o[1].Drop != 0 {
			t.Errorf("Write: %v, %v, %v", err, o[0].Drop, o[1].Drop)
		}
	}()
	buf := make([]byte, 10000)
	for _, want := range [][]byte{in, in} {
		if n, err := far.Read(buf); err != nil || !bytes.Equal(buf[:n], want) {
			t.Errorf("other side got %d bytes, %v", n, err)
		}
	}

	<-written

	done := make(chan error)
	go func() { done <- p.Readers()[0].Read(b) }()
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	if err := <-done; !errors.Is(err, net.ErrClosed) {
		t.Errorf("Read of a closed port: %v", err)
	}
	o = fake.Outs(in, in)
	if err := p.Writer(0).Write(o); !errors.Is(err, net.ErrClosed) || o[0].Drop != frame.PortDown || o[1].Drop != frame.PortDown {
		t.Errorf("Write to a closed port: %v, %v", err, o[0].Drop)
	}
	if err := p.Close(); err != nil {
		t.Errorf("second Close: %v", err)
	}
}

func TestReadWriteCloserOverAFile(t *testing.T) {
	r, w, err := os.Pipe() // a byte stream, but one frame is written at a time here
	must(t, err)
	p := FromReadWriteCloser(r, nil)
	in := fake.Ethernet(1514, 9)
	w.Write(in)
	b := frame.NewBatch(nil)
	if err := p.Readers()[0].Read(b); err != nil || !bytes.Equal(b.Frames[0].Bytes(), in) {
		t.Fatal(err)
	}
	w.Close()
	if err := p.Readers()[0].Read(b); !errors.Is(err, io.EOF) || !strings.Contains(err.Error(), "rwc") {
		t.Errorf("Read at the end: %v", err)
	}
	o := fake.Outs(in)
	if err := p.Writer(0).Write(o); err != nil || o[0].Drop != frame.SendFailed { // EBADF: opened for reading
		t.Errorf("Write: %v, %v", err, o[0].Drop)
	}
	r.Close()
	if err := p.Readers()[0].Read(b); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Read of a file that was closed from outside: %v", err)
	}
	p.Close()
}

func TestReadWriteCloserOddReads(t *testing.T) {
	broken := errors.New("broken")
	steps := []struct {
		n   int
		err error
	}{{60, nil}, {0, nil}, {1518, nil}, {1519, nil}, {64, broken}}
	i := 0
	s := &script{closed: make(chan struct{}), read: func(p []byte) (int, error) {
		st := steps[i]
		i++
		return min(st.n, len(p)), st.err
	}}
	p := FromReadWriteCloser(s, nil)
	defer p.Close()
	b := frame.NewBatch(nil)
	for k, want := range []frame.Reason{0, 0, 0, frame.TooBig, 0} {
		if err := p.Readers()[0].Read(b); err != nil || b.Frames[0].Len() != steps[k].n || b.Frames[0].Drop != want {
			t.Errorf("read %d: %v, %d bytes, %v", k, err, b.Frames[0].Len(), b.Frames[0].Drop)
		}
	}
	if err := p.Readers()[0].Read(b); !errors.Is(err, broken) || errors.Is(err, net.ErrClosed) {
		t.Errorf("error that came with a frame: %v", err)
	}
}

func TestReadWriteCloserWriteErrors(t *testing.T) {
	answers := []error{nil, errors.New("no"), nil, io.ErrClosedPipe}
	i := 0
	s := &script{closed: make(chan struct{}), write: func(p []byte) (int, error) {
		i++
		if i == 3 {
			return len(p) - 1, nil
		}
		return len(p), answers[i-1]
	}}
	p := FromReadWriteCloser(s, nil)
	defer p.Close()
	in := fake.Ethernet(60, 0)
	o := fake.Outs(in, in, in, in, in)
	if err := p.Writer(0).Write(o); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Write: %v", err)
	}
	fake.WantDrops(t, o, 0, frame.SendFailed, frame.SendFailed, frame.PortDown, frame.PortDown)
}

func TestReadWriteCloserWritersTakeTurns(t *testing.T) {
	var busy sync.Mutex
	s := &script{closed: make(chan struct{}), write: func(p []byte) (int, error) {
		if !busy.TryLock() {
			t.Error("two Writes at once")
			return 0, nil
		}
		defer busy.Unlock()
		runtime.Gosched()
		return len(p), nil
	}}
	p := FromReadWriteCloser(s, nil)
	defer p.Close()
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			wr, o := p.Writer(w), fake.Outs(fake.Ethernet(60, 0), fake.Ethernet(60, 1))
			for range 500 {
				wr.Write(o)
			}
		})
	}
	wg.Wait()
}

func TestReadWriteCloserOfIPPackets(t *testing.T) {
	near, far := net.Pipe()
	p := FromReadWriteCloser(near, &ReadWriteCloserConfig{MTU: 1400, IP: true})
	in := [][]byte{{0x45, 1}, {0x60, 2}, {0x50, 3}, bytes.Repeat([]byte{0x45}, 1401)}
	go func() {
		for _, packet := range in {
			far.Write(packet)
		}
	}()
	b, r := frame.NewBatch(nil), p.Readers()[0]
	for i, want := range []struct {
		kind frame.Kind
		drop frame.Reason
	}{{frame.IPv4, 0}, {frame.IPv6, 0}, {frame.IPv4, frame.BadKind}, {frame.IPv4, frame.TooBig}} {
		if err := r.Read(b); err != nil || len(b.Frames) != 1 {
			t.Fatal(err)
		}
		if f := &b.Frames[0]; !bytes.Equal(f.Bytes(), in[i]) || f.Kind != want.kind || f.Drop != want.drop {
			t.Errorf("packet %d: %d bytes, kind %v, drop %v", i, f.Len(), f.Kind, f.Drop)
		}
	}

	o := fake.Outs([]byte{0x45, 1}, []byte{0x60, 2}, fake.Ethernet(60, 0), []byte{0x45, 4}, []byte{0x45, 5}, []byte{0x60, 6})
	o[0].F.Kind, o[1].F.Kind, o[3].F.Kind, o[4].F.Kind, o[5].F.Kind = frame.IPv4, frame.IPv6, frame.IPv4, frame.IPv4, frame.IPv6
	o[3].Tag, o[4].F.GSO.Flags = 5, frame.NeedsCsum
	done := make(chan error)
	go func() { done <- p.Writer(0).Write(o) }()
	buf := make([]byte, 100)
	for _, want := range [][]byte{{0x45, 1}, {0x60, 2}, {0x60, 6}} {
		if n, err := far.Read(buf); err != nil || !bytes.Equal(buf[:n], want) {
			t.Errorf("got %x, %v, want %x", buf[:n], err, want)
		}
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	for i, want := range []frame.Reason{0, 0, frame.BadKind, frame.BadKind, frame.BadKind, 0} {
		if o[i].Drop != want {
			t.Errorf("packet %d: %v, want %v", i, o[i].Drop, want)
		}
	}

	go func() { done <- r.Read(b) }()
	p.Close()
	if err := <-done; !errors.Is(err, net.ErrClosed) {
		t.Errorf("Read of a closed port: %v", err)
	}
	if err := p.Writer(0).Write(o); !errors.Is(err, net.ErrClosed) || o[0].Drop != frame.PortDown || o[5].Drop != frame.PortDown {
		t.Errorf("Write to a closed port: %v, %v", err, o[0].Drop)
	}
}

func TestReadWriteCloserAllocatesNothing(t *testing.T) {
	for _, kind := range []frame.Kind{frame.Ethernet, frame.IPv4} {
		s := &script{
			closed: make(chan struct{}),
			read:   func(p []byte) (int, error) { p[0] = 0x45; return 1400, nil },
			write:  func(p []byte) (int, error) { return len(p), nil },
		}
		p := FromReadWriteCloser(s, &ReadWriteCloserConfig{IP: kind != frame.Ethernet})
		defer p.Close()
		b := frame.NewBatch(new(frame.Arenas))
		r, w, o := p.Readers()[0], p.Writer(0), fake.Outs(fake.Ethernet(60, 0), fake.Ethernet(1514, 0))
		o[0].F.Kind, o[1].F.Kind = kind, kind
		if n := testing.AllocsPerRun(200, func() { r.Read(b); w.Write(o) }); n != 0 {
			t.Errorf("%v: %v allocations", kind, n)
		}
		if b.Frames[0].Kind != kind || o[1].Drop != 0 {
			t.Errorf("kind %v, drop %v", b.Frames[0].Kind, o[1].Drop)
		}
	}
}

// Of nothing there is no port.
func TestReadWriteCloserOfNothing(t *testing.T) {
	for name, x := range map[string]io.ReadWriteCloser{"nil": nil, "nil pointer": (*os.File)(nil)} {
		r := FromReadWriteCloser(x, nil)
		if err := r.Readers()[0].Read(frame.NewBatch(nil)); err == nil || errors.Is(err, frame.ErrPaused) {
			t.Errorf("%s: %v", name, err)
		}
		f := frame.Make(make([]byte, 60))
		out := []frame.Out{{F: &f}}
		if err := r.Writer(0).Write(out); err == nil && out[0].Drop == frame.NotDropped {
			t.Errorf("%s: written", name)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
}

func ExampleFromReadWriteCloser() {
	near, far := net.Pipe()
	p := FromReadWriteCloser(near, &ReadWriteCloserConfig{Name: "stream"})
	defer p.Close()

	go far.Write([]byte("to-mac" + "frommc" + "\x08\x00" + "hello"))

	b := frame.NewBatch(nil)
	err := p.Readers()[0].Read(b)
	fmt.Printf("%s: %q %v\n", p.Name(), b.Frames[0].Bytes(), err)
	// Output: stream: "to-macfrommc\b\x00hello" <nil>
}
