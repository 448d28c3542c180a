package underlay

import (
	"errors"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/fake"
)

func TestUDPTruncated(t *testing.T) {
	eachUDP(t, func(t *testing.T, listen opener) {
		a, b := listen(t, "127.0.0.1:0", nil), listen(t, "127.0.0.1:0", &UDPConfig{MaxDatagram: 100})
		eb := endpoint(t, b.LocalAddr())
		send(t, a, to(strings.Repeat("x", 100), 0, eb), to(strings.Repeat("y", 101), 0, eb), to("z", 0, eb))
		rs := receive(t, b, 3)
		if rs[0].Drop != 0 || rs[1].Drop != frame.TooBig || rs[2].Drop != 0 {
			t.Errorf("drops %v %v %v", rs[0].Drop, rs[1].Drop, rs[2].Drop)
		}
		if st := b.Stats(); st.RxTruncated != 1 {
			t.Errorf("stats %+v", st)
		}
	})
}

// What does not fit the receive buffer is counted, exactly.
func TestUDPOverflowIsCounted(t *testing.T) {
	a, b := listen(t, "127.0.0.1:0", nil), listen(t, "127.0.0.1:0", &UDPConfig{RecvBuffer: 4096})
	ds := make([]frame.Datagram, 64)
	for i := range ds {
		ds[i] = to(strings.Repeat("x", 1000), 0, endpoint(t, b.LocalAddr()))
	}
	for range 4 {
		send(t, a, ds...)
	}
	sent := a.Stats().TxDatagrams
	over := b.Stats().RxOverflow
	if over == 0 || sent != 256 {
		t.Fatalf("%d sent, %d overflowed", sent, over)
	}
	receive(t, b, int(sent-over))
	send(t, a, ds[0]) // carries the counter too, and must not count it twice
	receive(t, b, 1)
	if got := b.Stats().RxOverflow; got != over {
		t.Errorf("overflow %d, then %d", over, got)
	}
}

func TestUDPIdleReaderHoldsNoMemory(t *testing.T) {
	a, b := listen(t, "127.0.0.1:0", nil), listen(t, "127.0.0.1:0", nil)
	var pool frame.Arenas
	batch := frame.NewBatch(&pool)
	r := b.Readers()[0]
	send(t, a, to("x", 0, endpoint(t, b.LocalAddr())))
	if err := r.Read(batch); err != nil || len(batch.Frames) != 1 {
		t.Fatal(err)
	}
	time.AfterFunc(10*time.Millisecond, b.Pause)
	if err := r.Read(batch); !errors.Is(err, frame.ErrPaused) {
		t.Fatal(err)
	}
	if cap(batch.Frames) != 0 {
		t.Error("the batch still has its arena")
	}
	for i := range b.readers[0].iov {
		if b.readers[0].iov[i].Base != nil || b.readers[0].Blocks[i] != nil {
			t.Fatal("the reader still points into the arena")
		}
	}
}

func TestUDPQueuesSpread(t *testing.T) {
	a, b := listen(t, "127.0.0.1:0", nil), listen(t, "127.0.0.1:0", &UDPConfig{Queues: 4})
	var mu sync.Mutex
	total, used := 0, 0
	var wg sync.WaitGroup
	for _, r := range b.Readers() {
		wg.Go(func() {
			batch, n := frame.NewBatch(nil), 0
			for r.Read(batch) == nil {
				n += len(batch.Frames)
			}
			mu.Lock()
			defer mu.Unlock()
			total += n
			if n > 0 {
				used++
			}
		})
	}
	for i := range 160 {
		send(t, a, to("x", uint16(i<<12), endpoint(t, b.LocalAddr())))
	}
	fake.Until(t, "all datagrams", func() bool { return b.Stats().RxDatagrams >= 160 })
	b.Close()
	wg.Wait()
	if total != 160 || used < 2 {
		t.Errorf("%d datagrams on %d queues", total, used)
	}
}

// What passes does not end a reader.
func TestFatal(t *testing.T) {
	for _, e := range []syscall.Errno{unix.ECONNREFUSED, unix.ENETDOWN, unix.ENOBUFS, unix.ENOMEM, unix.EHOSTUNREACH} {
		if fatal(e) {
			t.Errorf("%v is fatal", e)
		}
	}
}

// Pause and Resume from many sides while datagrams flow: none is lost.
func TestUDPPauseUnderTraffic(t *testing.T) {
	eachUDP(t, func(t *testing.T, listen opener) {
		a, b := listen(t, "127.0.0.1:0", nil), listen(t, "127.0.0.1:0", nil)
		const total = 2000
		stop := make(chan struct{})
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() {
				for {
					b.Pause()
					b.Resume()
					select {
					case <-stop:
						return
					case <-time.After(100 * time.Microsecond):
					}
				}
			})
		}
		wg.Go(func() {
			for i := range total {
				send(t, a, to("x", uint16(i), endpoint(t, b.LocalAddr())))
			}
		})
		r, batch := b.Readers()[0], frame.NewBatch(new(frame.Arenas))
		for n := 0; n < total; {
			switch err := r.Read(batch); {
			case err == nil:
				n += len(batch.Frames)
			case !errors.Is(err, frame.ErrPaused):
				t.Fatal(err)
			}
		}
		close(stop)
		wg.Wait()
	})
}
