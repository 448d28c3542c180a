package port

import (
	"bytes"
	"errors"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vxswitch/vxswitch/frame"
)

// fake is a port whose far side is the test: it hands over what the test gives and
// keeps what it is told to write.
type fake struct {
	name  string
	in    chan frame.Frame // closed: end of the port
	write func(out []frame.Out) error

	mu     sync.Mutex
	got    []frame.Out // clones
	closed chan struct{}
	once   sync.Once
}

func newFake(name string) *fake {
	return &fake{name: name, in: make(chan frame.Frame, 64), closed: make(chan struct{})}
}

func (p *fake) Name() string              { return p.name }
func (p *fake) MTU(peer uint16) int       { return 1400 + int(peer) }
func (p *fake) Readers() []frame.Reader   { return []frame.Reader{p} }
func (p *fake) Writer(w int) frame.Writer { return p }
func (p *fake) Close() error              { p.once.Do(func() { close(p.closed) }); return errFake }

var errFake = errors.New("fake: closed")

func (p *fake) Read(b *frame.Batch) error {
	b.Reset()
	select {
	case f := <-p.in:
		*b.Borrow(nil, 0, 0) = f
		return nil
	case <-p.closed:
		return net.ErrClosed
	}
}

func (p *fake) Write(out []frame.Out) error {
	p.mu.Lock()
	for _, o := range out {
		c := o.F.Clone()
		o.F = &c
		p.got = append(p.got, o)
	}
	p.mu.Unlock()
	if p.write != nil {
		return p.write(out)
	}
	return nil
}

func (p *fake) written() []frame.Out {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.got
}

// fakePauser is a fake that can be paused.
type fakePauser struct {
	*fake
	paused int
}

func (p *fakePauser) Pause()  { p.paused++ }
func (p *fakePauser) Resume() { p.paused-- }

// fakeTunnel is a fake with a method of a tunnel.
type fakeTunnel struct{ *fake }

func (fakeTunnel) Open(tag uint32) error { return nil }

// wraps is every decorator, for what they have in common.
var wraps = map[string]func(p Port) (Port, error){
	"Buffered": func(p Port) (Port, error) {
		b, err := NewBuffered(p, nil)
		if err != nil {
			return nil, err
		}
		if b.Port() != b.Port() {
			return nil, errors.New("Port is another one each time")
		}
		return b.Port(), nil
	},
	"Capture": func(p Port) (Port, error) {
		c, err := NewCapture(nil)
		if err != nil {
			return nil, err
		}
		return c.Port(p)
	},
	"Faulty": func(p Port) (Port, error) {
		f, err := NewFaulty(p, nil)
		if err != nil {
			return nil, err
		}
		if f.Port() != f.Port() {
			return nil, errors.New("Port is another one each time")
		}
		return f.Port(), nil
	},
}

func TestDecoratorsKeepWhatThePortIs(t *testing.T) {
	for name, wrap := range wraps {
		plain, pausing := newFake("p0"), &fakePauser{fake: newFake("p1")}
		d, err := wrap(plain)
		if err != nil {
			t.Fatal(name, err)
		}
		if _, ok := d.(pauser); ok || d.(named).Name() != "p0" || d.MTU(7) != 1407 || len(d.Readers()) != 1 {
			t.Errorf("%s: pauser %v, name %q, MTU %d", name, ok, d.(named).Name(), d.MTU(7))
		}
		if err := d.Close(); err != errFake {
			t.Errorf("%s: Close: %v", name, err)
		}
		if err := d.Close(); err != errFake {
			t.Errorf("%s: second Close: %v", name, err)
		}
		if d, err = wrap(pausing); err != nil {
			t.Fatal(name, err)
		}
		p, ok := d.(pauser)
		if !ok || d.(named).Name() != "p1" {
			t.Fatalf("%s: pauser %v, name %q", name, ok, d.(named).Name())
		}
		if p.Pause(); pausing.paused != 1 {
			t.Errorf("%s: the port is not paused", name)
		}
		if p.Resume(); pausing.paused != 0 {
			t.Errorf("%s: the port is not resumed", name)
		}
		d.Close()

		_, err = wrap(fakeTunnel{newFake("vtep")})
		if err == nil || !strings.Contains(err.Error(), `"vtep" is a tunnel: wrap its underlay`) {
			t.Errorf("%s of a tunnel: %v", name, err)
		}
		if _, err = wrap(nil); err == nil || !strings.HasPrefix(err.Error(), "port: "+name) {
			t.Errorf("%s of nothing: %v", name, err)
		}
	}
}

func TestBufferedDoesNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe() // a Write waits for the Read of the other side
		b, err := NewBuffered(FromReadWriteCloser(near, nil), &BufferedConfig{Queue: 5})
		if err != nil {
			t.Fatal(err)
		}
		w := b.Port().Writer(0)
		if err := w.Write(outs(ethernet(60, 0))); err != nil {
			t.Fatal(err)
		}
		synctest.Wait() // the goroutine holds the first
		o := outs(ethernet(61, 1), ethernet(62, 2), ethernet(63, 3), ethernet(64, 4), ethernet(65, 5), ethernet(66, 6), ethernet(67, 7))
		if err := w.Write(o); err != nil {
			t.Fatal(err)
		}
		for i, want := range []frame.Reason{0, 0, 0, 0, 0, frame.PortFull, frame.PortFull} {
			if o[i].Drop != want {
				t.Errorf("frame %d: %v, want %v", i+1, o[i].Drop, want)
			}
		}
		if s := b.Stats(); s.Waiting != 5 || s.Full != 2 || s.Sent != 0 {
			t.Errorf("%+v", s)
		}
		buf := make([]byte, 2000)
		for i := range 6 {
			if n, err := far.Read(buf); err != nil || !bytes.Equal(buf[:n], ethernet(60+i, byte(i))) {
				t.Errorf("frame %d: %d bytes, %v", i, n, err)
			}
		}
		synctest.Wait()
		if s := b.Stats(); s.Waiting != 0 || s.Full != 2 || s.Sent != 6 || s.Drops.Total() != 0 {
			t.Errorf("%+v", s)
		}

		go far.Write(ethernet(99, 9))
		batch := frame.NewBatch(nil)
		if err := b.Port().Readers()[0].Read(batch); err != nil || !bytes.Equal(batch.Frames[0].Bytes(), ethernet(99, 9)) {
			t.Errorf("Read: %v", err)
		}

		w.Write(outs(ethernet(60, 0), ethernet(60, 0)))
		synctest.Wait() // it waits in Write
		if err := b.Port().Close(); err != nil {
			t.Error(err)
		}
		o = outs(ethernet(60, 0), ethernet(60, 0))
		if err := w.Write(o); !errors.Is(err, net.ErrClosed) || o[0].Drop != frame.PortDown || o[1].Drop != frame.PortDown {
			t.Errorf("Write to a closed port: %v, %v, %v", err, o[0].Drop, o[1].Drop)
		}
	})
}

func TestBufferedKeepsWhatWritersLookAt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newFake("p")
		b, err := NewBuffered(p, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer b.Port().Close()
		in := outs(ethernet(3000, 1), ethernet(60, 2))
		f := in[0].F
		f.Push(10) // as an encapsulation would: the packet begins elsewhere in its buffer
		f.Kind, f.VNI, f.From, f.Hash, f.Tunnel = frame.IPv6, 77, frame.NewDest(3, 4), 0xdeadbeef, true
		f.GSO = frame.GSO{Flags: frame.NeedsCsum, Type: frame.GSOTCP6, Size: 1400, CsumOffset: 16,
			CsumStart: uint16(f.Headroom() + 40), DataStart: uint16(f.Headroom() + 60)}
		in[0].Peer, in[0].Skip, in[0].Tag = 5, 6, 4094
		if err := b.Port().Writer(1).Write(in); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		got := p.written()
		if len(got) != 2 {
			t.Fatalf("%d frames", len(got))
		}
		for i, o := range got {
			w, g := *in[i].F, *o.F
			if !bytes.Equal(g.Bytes(), w.Bytes()) || o.Peer != in[i].Peer || o.Skip != in[i].Skip || o.Tag != in[i].Tag {
				t.Errorf("frame %d: %+v, want %+v", i, o, in[i])
			}
			if g.GSO.Moved(-g.Headroom()) != w.GSO.Moved(-w.Headroom()) {
				t.Errorf("frame %d: GSO %+v at %d, want %+v at %d", i, g.GSO, g.Headroom(), w.GSO, w.Headroom())
			}
			if g.Kind != w.Kind || g.VNI != w.VNI || g.From != w.From || g.Hash != w.Hash || g.Tunnel != w.Tunnel {
				t.Errorf("frame %d: %+v, want %+v", i, g, w)
			}
		}
		if got[1].F.GSO != (frame.GSO{}) {
			t.Errorf("GSO of the plain frame: %+v", got[1].F.GSO)
		}
	})
}

func TestBufferedPortThatDropsAndBreaks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newFake("p")
		broken := errors.New("broken")
		gate := make(chan bool, 10)
		p.write = func(out []frame.Out) error {
			<-gate
			out[0].Drop = frame.TooBig
			if len(out) == 3 {
				dropAll(out, frame.PortDown)
				return broken
			}
			return nil
		}
		b, err := NewBuffered(p, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer b.Port().Close()
		w := b.Port().Writer(0)
		o := outs(ethernet(60, 0), ethernet(60, 1))
		if err := w.Write(o); err != nil || o[0].Drop != 0 {
			t.Errorf("Write: %v, %v", err, o[0].Drop)
		}
		gate <- true
		gate <- true
		synctest.Wait()
		if s := b.Stats(); s.Drops[frame.TooBig] == 0 || s.Sent+s.Drops.Total() != 2 {
			t.Errorf("%+v", s)
		}
		for len(gate) > 0 {
			<-gate
		}
		w.Write(outs(ethernet(60, 0))) // the goroutine waits in Write with it, and the rest comes at once
		synctest.Wait()
		w.Write(outs(ethernet(60, 0), ethernet(60, 1), ethernet(60, 2)))
		gate <- true
		gate <- true
		synctest.Wait()
		if s := b.Stats(); s.Drops[frame.PortDown] != 3 || s.Waiting != 0 {
			t.Errorf("%+v", s)
		}
		o = outs(ethernet(60, 0), ethernet(60, 1))
		if err := w.Write(o); err != broken || o[0].Drop != frame.PortDown || o[1].Drop != frame.PortDown {
			t.Errorf("Write to a broken port: %v, %v", err, o[0].Drop)
		}
	})
}

func TestBufferedCloseWaitsForItsGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newFake("p")
		wrote := false
		p.write = func(out []frame.Out) error {
			<-p.closed
			time.Sleep(time.Second)
			wrote = true
			return nil
		}
		b, err := NewBuffered(p, nil)
		if err != nil {
			t.Fatal(err)
		}
		b.Port().Writer(0).Write(outs(ethernet(60, 0)))
		synctest.Wait()
		if b.Port().Close(); !wrote {
			t.Error("Close returned before the goroutine ended")
		}
	})
}

func TestBufferedOrderUnderLoad(t *testing.T) {
	p := newFake("p")
	b, err := NewBuffered(p, &BufferedConfig{Queue: 1 << 14})
	if err != nil {
		t.Fatal(err)
	}
	const writers, each = 4, 2000
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			wr := b.Port().Writer(w)
			for i := range each {
				o := outs(ethernet(60, 0))
				o[0].Peer, o[0].Tag = uint16(w), uint32(i)
				wr.Write(o)
				if o[0].Drop != 0 {
					t.Errorf("writer %d: %v", w, o[0].Drop)
				}
			}
		})
	}
	wg.Wait()
	waitFor(t, func() bool { return b.Stats().Sent == writers*each })
	b.Port().Close()
	var next [writers]uint32
	for _, o := range p.written() {
		if o.Tag != next[o.Peer] {
			t.Fatalf("writer %d: frame %d, want %d", o.Peer, o.Tag, next[o.Peer])
		}
		next[o.Peer]++
	}
}

func TestBufferedConfig(t *testing.T) {
	for _, n := range []int{-1, maxQueue + 1} {
		_, err := NewBuffered(newFake("p"), &BufferedConfig{Queue: n})
		if err == nil || !strings.Contains(err.Error(), "BufferedConfig.Queue") {
			t.Errorf("Queue %d: %v", n, err)
		}
	}
}

func TestBufferedAllocatesNothing(t *testing.T) {
	p := newFake("p")
	b, err := NewBuffered(discard{p}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Port().Close()
	var packets [][]byte
	for range frame.MaxBatch {
		packets = append(packets, ethernet(1514, 0))
	}
	w, o := b.Port().Writer(0), outs(packets...)
	sent := uint64(0)
	if n := testing.AllocsPerRun(200, func() {
		w.Write(o)
		for sent += uint64(len(o)); b.sent.Load() < sent; {
			runtime.Gosched()
		}
	}); n != 0 && !raceEnabled {
		t.Errorf("%v allocations a batch", n)
	}
}

// discard is a port that takes everything and keeps nothing.
type discard struct{ Port }

func (d discard) Writer(w int) frame.Writer { return discardWriter{} }

type discardWriter struct{}

func (discardWriter) Write(out []frame.Out) error { return nil }

// waitFor waits until ok holds, and ends the test when it does not within 10 s.
func waitFor(t testing.TB, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("waited for 10 s")
		}
	}
}
