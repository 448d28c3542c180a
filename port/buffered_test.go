package port

import (
	"bytes"
	"errors"
	"net"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/fake"
)

func TestBufferedDoesNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe() // a Write waits for the Read of the other side
		b, err := NewBuffered(FromReadWriteCloser(near, nil), &BufferedConfig{Queue: 5})
		must(t, err)
		w := b.Port().Writer(0)
		must(t, w.Write(fake.Outs(fake.Ethernet(60, 0))))
		synctest.Wait() // the goroutine holds the first
		o := fake.Outs(fake.Ethernet(61, 1), fake.Ethernet(62, 2), fake.Ethernet(63, 3), fake.Ethernet(64, 4), fake.Ethernet(65, 5), fake.Ethernet(66, 6), fake.Ethernet(67, 7))
		must(t, w.Write(o))
		fake.WantDrops(t, o, 0, 0, 0, 0, 0, frame.PortFull, frame.PortFull)
		if s := b.Stats(); s.Waiting != 5 || s.Full != 2 || s.Sent != 0 {
			t.Errorf("%+v", s)
		}
		buf := make([]byte, 2000)
		for i := range 6 {
			if n, err := far.Read(buf); err != nil || !bytes.Equal(buf[:n], fake.Ethernet(60+i, byte(i))) {
				t.Errorf("frame %d: %d bytes, %v", i, n, err)
			}
		}
		synctest.Wait()
		if s := b.Stats(); s.Waiting != 0 || s.Full != 2 || s.Sent != 6 || s.Drops.Total() != 0 {
			t.Errorf("%+v", s)
		}

		go far.Write(fake.Ethernet(99, 9))
		batch := frame.NewBatch(nil)
		if err := b.Port().Readers()[0].Read(batch); err != nil || !bytes.Equal(batch.Frames[0].Bytes(), fake.Ethernet(99, 9)) {
			t.Errorf("Read: %v", err)
		}

		w.Write(fake.Outs(fake.Ethernet(60, 0), fake.Ethernet(60, 0)))
		synctest.Wait() // it waits in Write
		if err := b.Port().Close(); err != nil {
			t.Error(err)
		}
		o = fake.Outs(fake.Ethernet(60, 0), fake.Ethernet(60, 0))
		if err := w.Write(o); !errors.Is(err, net.ErrClosed) || o[0].Drop != frame.PortDown || o[1].Drop != frame.PortDown {
			t.Errorf("Write to a closed port: %v, %v, %v", err, o[0].Drop, o[1].Drop)
		}
	})
}

func TestBufferedKeepsWhatWritersLookAt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := fake.New("p")
		b := check.Must(NewBuffered(p, nil))(t)
		defer b.Port().Close()
		in := fake.Outs(fake.Ethernet(3000, 1), fake.Ethernet(60, 2))
		f := in[0].F
		f.Push(10) // as an encapsulation would: the packet begins elsewhere in its buffer
		f.Kind, f.VNI, f.From, f.Hash, f.Tunnel, f.Priority = frame.IPv6, 77, frame.NewDest(3, 4), 0xdeadbeef, true, 5
		f.GSO = frame.GSO{Flags: frame.NeedsCsum, Type: frame.GSOTCP6, Size: 1400, CsumOffset: 16,
			CsumStart: uint16(f.Headroom() + 40), DataStart: uint16(f.Headroom() + 60)}
		in[0].Peer, in[0].Skip, in[0].Tag = 5, 6, 4094
		must(t, b.Port().Writer(1).Write(in))
		synctest.Wait()
		got := p.Written()
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
			if g.Kind != w.Kind || g.VNI != w.VNI || g.From != w.From || g.Hash != w.Hash || g.Tunnel != w.Tunnel || g.Priority != w.Priority {
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
		p := fake.New("p")
		broken := errors.New("broken")
		gate := make(chan bool, 10)
		p.OnWrite = func(out []frame.Out) error {
			<-gate
			out[0].Drop = frame.TooBig
			if len(out) == 3 {
				dropAll(out, frame.PortDown)
				return broken
			}
			return nil
		}
		b, err := NewBuffered(p, nil)
		must(t, err)
		defer b.Port().Close()
		w := b.Port().Writer(0)
		o := fake.Outs(fake.Ethernet(60, 0), fake.Ethernet(60, 1))
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
		w.Write(fake.Outs(fake.Ethernet(60, 0))) // the goroutine waits in Write with it, and the rest comes at once
		synctest.Wait()
		w.Write(fake.Outs(fake.Ethernet(60, 0), fake.Ethernet(60, 1), fake.Ethernet(60, 2)))
		gate <- true
		gate <- true
		synctest.Wait()
		if s := b.Stats(); s.Drops[frame.PortDown] != 3 || s.Waiting != 0 {
			t.Errorf("%+v", s)
		}
		o = fake.Outs(fake.Ethernet(60, 0), fake.Ethernet(60, 1))
		if err := w.Write(o); err != broken || o[0].Drop != frame.PortDown || o[1].Drop != frame.PortDown {
			t.Errorf("Write to a broken port: %v, %v", err, o[0].Drop)
		}
	})
}

func TestBufferedCloseWaitsForItsGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := fake.New("p")
		wrote := false
		p.OnWrite = func(out []frame.Out) error {
			<-p.Closed
			time.Sleep(time.Second)
			wrote = true
			return nil
		}
		b := check.Must(NewBuffered(p, nil))(t)
		b.Port().Writer(0).Write(fake.Outs(fake.Ethernet(60, 0)))
		synctest.Wait()
		if b.Port().Close(); !wrote {
			t.Error("Close returned before the goroutine ended")
		}
	})
}

func TestBufferedOrderUnderLoad(t *testing.T) {
	p := fake.New("p")
	b := check.Must(NewBuffered(p, &BufferedConfig{Queue: 1 << 14}))(t)
	const writers, each = 4, 2000
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			wr := b.Port().Writer(w)
			for i := range each {
				o := fake.Outs(fake.Ethernet(60, 0))
				o[0].Peer, o[0].Tag = uint16(w), uint32(i)
				wr.Write(o)
				if o[0].Drop != 0 {
					t.Errorf("writer %d: %v", w, o[0].Drop)
				}
			}
		})
	}
	wg.Wait()
	fake.Until(t, "all are sent", func() bool { return b.Stats().Sent == writers*each })
	b.Port().Close()
	var next [writers]uint32
	for _, o := range p.Written() {
		if o.Tag != next[o.Peer] {
			t.Fatalf("writer %d: frame %d, want %d", o.Peer, o.Tag, next[o.Peer])
		}
		next[o.Peer]++
	}
}

func TestBufferedConfig(t *testing.T) {
	for _, n := range []int{-1, maxQueue + 1} {
		_, err := NewBuffered(fake.New("p"), &BufferedConfig{Queue: n})
		if err == nil || !strings.Contains(err.Error(), "BufferedConfig.Queue") {
			t.Errorf("Queue %d: %v", n, err)
		}
	}
}

func TestBufferedAllocatesNothing(t *testing.T) {
	p := fake.New("p")
	b := check.Must(NewBuffered(fake.Discard{Port: p}, nil))(t)
	defer b.Port().Close()
	packets := slices.Repeat([][]byte{fake.Ethernet(1514, 0)}, frame.MaxBatch)
	w, o := b.Port().Writer(0), fake.Outs(packets...)
	sent := uint64(0)
	if n := testing.AllocsPerRun(200, func() {
		w.Write(o)
		for sent += uint64(len(o)); b.sent.Load() < sent; {
			runtime.Gosched()
		}
	}); n != 0 && !fake.Race {
		t.Errorf("%v allocations a batch", n)
	}
}
