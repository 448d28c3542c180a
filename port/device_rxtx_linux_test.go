package port

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/fake"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
	vswitch "github.com/vxswitch/vxswitch/switch"
)

func TestTAPFramesAreExactAndInOrder(t *testing.T) {
	x, y := bridged(t, &DeviceConfig{MTU: 9000})
	if x.MTU(0) != 9014 {
		t.Errorf("MTU %d", x.MTU(0))
	}
	var want [][]byte
	for i, n := range []int{14, 15, 60, 64, 1514, 1518, 9014, 60} {
		want = append(want, fake.Ethernet(n, byte(i)))
	}
	for i := range 150 { // more than a batch
		want = append(want, fake.Ethernet(60+i, byte(i)))
	}
	o := fake.Outs(want...)
	o[2].Tag, o[6].Tag, o[20].Tag = 1, 0xabc, 4094
	want[2], want[6], want[20] = fake.Tagged(want[2], 0, 1), fake.Tagged(want[6], 0x0a, 0xbc), fake.Tagged(want[20], 0x0f, 0xfe)
	o[6].F.Priority, o[20].F.Priority, o[7].F.Priority = 7, 2, 3 // the last has no tag
	want[6][14] |= 7 << 5
	want[20][14] |= 2 << 5
	// A tag that is in the frame stays there.
	o[21] = fake.Outs(fake.Tagged(want[21], 0x60, 0x07))[0]
	want[21] = fake.Tagged(want[21], 0x60, 0x07)

	must(t, x.Writer(0).Write(o))
	b := frame.NewBatch(new(frame.Arenas))
	for got := 0; got < len(want); got += len(b.Frames) {
		must(t, y.Readers()[0].Read(b))
		for i := range b.Frames {
			f := &b.Frames[i]
			if !bytes.Equal(f.Bytes(), want[got+i]) || f.Drop != 0 || f.Kind != frame.Ethernet || f.Headroom() != frame.Headroom {
				t.Fatalf("frame %d: %d bytes, drop %v\ngot  %.40x\nwant %.40x", got+i, f.Len(), f.Drop, f.Bytes(), want[got+i])
			}
		}
	}
	for i := range o {
		if o[i].Drop != 0 {
			t.Errorf("frame %d: %v", i, o[i].Drop)
		}
	}
}

// The reader asks for 64 KiB each time, and gives back what it did not need.
func TestTAPBatchHoldsManyFrames(t *testing.T) {
	x, y := bridged(t, nil)
	packets := slices.Repeat([][]byte{fake.Ethernet(1514, 0)}, frame.MaxBatch)
	w, r, b := x.Writer(0), y.Readers()[0], frame.NewBatch(nil)
	most := 0
	for end := time.Now().Add(10 * time.Second); most < frame.MaxBatch; {
		if time.Now().After(end) {
			t.Fatalf("at most %d frames in a batch", most)
		}
		w.Write(fake.Outs(packets...))
		for got := 0; got < len(packets); got += len(b.Frames) {
			must(t, r.Read(b))
			most = max(most, len(b.Frames))
		}
	}
}

func TestTAPWriterSaysWhatItDidNotSend(t *testing.T) {
	h := netns.New(t).Host("h")
	tap := openTAP(t, h, "tap0", &DeviceConfig{Down: true})
	if out := h.IP("-br", "link", "show", "tap0"); strings.Contains(out, ",UP") {
		t.Errorf("the device is up: %s", out)
	}
	w := tap.Writer(0)
	o := fake.Outs(fake.Ethernet(60, 0), fake.Ethernet(60, 0))
	o[1].Tag = 5
	if err := w.Write(o); err != nil || o[0].Drop != frame.PortDown || o[1].Drop != frame.PortDown {
		t.Errorf("device down: %v, %v, %v", err, o[0].Drop, o[1].Drop)
	}
	h.Up("tap0")
	o = fake.Outs(fake.Ethernet(60, 0), fake.Ethernet(13, 0), fake.Ethernet(60, 0), fake.Ethernet(60, 0))
	o[2].F.Kind = frame.IPv6
	if err := w.Write(o); err != nil || o[0].Drop != 0 || o[1].Drop != frame.SendFailed || o[2].Drop != frame.BadKind || o[3].Drop != 0 {
		t.Errorf("device up: %v, %v, %v, %v, %v", err, o[0].Drop, o[1].Drop, o[2].Drop, o[3].Drop)
	}
	h.IP("link", "del", "tap0")
	if err := w.Write(o); err == nil || errors.Is(err, net.ErrClosed) || !strings.Contains(err.Error(), `"tap0"`) || o[0].Drop != frame.PortDown || o[3].Drop != frame.PortDown {
		t.Errorf("device deleted: %v, %v", err, o[0].Drop)
	}
	tap.Close()
	if err := w.Write(o); !errors.Is(err, net.ErrClosed) || o[3].Drop != frame.PortDown {
		t.Errorf("closed: %v, %v", err, o[3].Drop)
	}
}

func TestTAPPauseRacesWithTraffic(t *testing.T) {
	x, y := bridged(t, nil)
	const n = 2000
	toggled, written := make(chan bool), make(chan bool)
	go func() {
		defer close(toggled)
		for range 500 {
			y.Pause()
			runtime.Gosched()
			y.Resume()
		}
	}()
	var seen atomic.Int64
	go func() {
		defer close(written)
		w := x.Writer(0)
		for i := range n {
			o := fake.Outs(fake.Ethernet(60, byte(i)))
			w.Write(o)
			if o[0].Drop != 0 {
				t.Errorf("frame %d: %v", i, o[0].Drop)
			}
			for int64(i)-seen.Load() > 200 { // the device's queue holds 1000
				time.Sleep(time.Millisecond)
			}
		}
	}()
	b, got, paused := frame.NewBatch(nil), 0, 0
	for got < n {
		switch err := y.Readers()[0].Read(b); {
		case err == nil:
			for i := range b.Frames {
				if want := fake.Ethernet(60, byte(got+i)); !bytes.Equal(b.Frames[i].Bytes(), want) {
					t.Fatalf("frame %d of %d bytes: %.20x, want %.20x", got+i, b.Frames[i].Len(), b.Frames[i].Bytes(), want)
				}
			}
			got += len(b.Frames)
			seen.Store(int64(got))
		case errors.Is(err, frame.ErrPaused):
			paused++
		default:
			t.Fatal(err)
		}
	}
	<-toggled
	<-written
	t.Logf("%d frames, %d pauses seen", got, paused)
}

// closeRaces has frames written to one port and read from another, which is paused meanwhile, until
// both are closed, each twice.
func closeRaces(t *testing.T, to, from Port, meanwhile func()) {
	t.Helper()
	var wg sync.WaitGroup
	for _, r := range from.Readers() {
		wg.Go(func() {
			for b := frame.NewBatch(nil); ; {
				err := r.Read(b)
				if errors.Is(err, net.ErrClosed) {
					return
				}
				if err != nil && !errors.Is(err, frame.ErrPaused) {
					t.Errorf("Read: %v", err)
					return
				}
			}
		})
	}
	for k := range 2 {
		wg.Go(func() {
			w, o := to.Writer(k), fake.Outs(fake.Ethernet(60, 0), fake.Ethernet(1514, 1))
			o[0].Tag = 3
			for {
				if err := w.Write(o); err != nil {
					if !errors.Is(err, net.ErrClosed) {
						t.Errorf("Write: %v", err)
					}
					return
				}
				meanwhile()
			}
		})
	}
	wg.Go(func() {
		for range 100 {
			from.(vswitch.Pauser).Pause()
			from.(vswitch.Pauser).Resume()
		}
	})
	time.Sleep(time.Millisecond)
	for range 2 {
		wg.Go(func() { from.Close() })
		wg.Go(func() { to.Close() })
	}
	wg.Wait()
}

func TestTAPCloseRacesWithEverything(t *testing.T) {
	for range 10 {
		x, y := bridged(t, nil)
		closeRaces(t, x, y, x.update)
	}
}

func TestTAPMTURaisedAMomentAgo(t *testing.T) {
	x, y := bridged(t, &DeviceConfig{MTU: 65521})
	y.mtu.Store(1500) // what is known is old
	y.checked.Store(int64(time.Since(y.start)))
	b := frame.NewBatch(nil)
	for _, n := range []int{1519, 9014, 65535} {
		want := fake.Ethernet(n, byte(n))
		x.Writer(0).Write(fake.Outs(want))
		must(t, y.Readers()[0].Read(b))
		if f := &b.Frames[0]; f.Drop != 0 || !bytes.Equal(f.Bytes(), want) {
			t.Errorf("frame of %d bytes: %d bytes, drop %v", n, f.Len(), f.Drop)
		}
	}
	for end := time.Now().Add(5 * time.Second); y.MTU(0) != 65535; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("MTU %d: the new one is not seen", y.MTU(0))
		}
		x.Writer(0).Write(fake.Outs(fake.Ethernet(60, 1)))
		must(t, y.Readers()[0].Read(b))
	}
}

func TestIdleTAPsHoldNoArenas(t *testing.T) {
	h := netns.New(t).Host("h")
	h.Quiet()
	const n = 64
	var taps [n]*Device
	members := make([]string, n)
	for i := range taps {
		members[i] = fmt.Sprintf("tap%d", i)
		taps[i] = openTAP(t, h, members[i], nil)
	}
	h.Bridge("br0", members...)
	before := heap()
	var pool frame.Arenas
	var got [n]atomic.Int64
	var wg sync.WaitGroup
	for i, tap := range taps[1:] {
		wg.Go(func() {
			b := frame.NewBatch(&pool)
			for tap.Readers()[0].Read(b) == nil {
				got[i+1].Add(int64(len(b.Frames)))
			}
		})
	}
	w := taps[0].Writer(0)
	for range 10 {
		w.Write(fake.Outs(append([]byte("\xff\xff\xff\xff\xff\xff"), fake.Ethernet(60, 0)[6:]...)))
	}
	for i := range n - 1 {
		for got[i+1].Load() < 10 {
			time.Sleep(time.Millisecond)
		}
	}
	time.Sleep(20 * time.Millisecond)
	used := int64(heap()) - int64(before)
	t.Logf("%d waiting readers hold %d KiB", n-1, used>>10)
	if used > 4<<20 { // the free list alone may have 8 arenas
		t.Error("too much")
	}
	for _, tap := range taps {
		tap.Close()
	}
	wg.Wait()
}
