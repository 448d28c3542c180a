package port

import (
	"bytes"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/fake"
)

// A reader that asks again at once reads what one reads that waits, and ends as it does.
func TestDeviceBusyPoll(t *testing.T) {
	x, y := bridged(t, &DeviceConfig{BusyPoll: time.Millisecond})
	if got := y.queues[0].reader.busy.Max; got != time.Millisecond {
		t.Fatalf("the reader asks for %v", got)
	}
	b := frame.NewBatch(new(frame.Arenas))
	pass := func(from, to *Device, p []byte) {
		t.Helper()
		must(t, from.Writer(0).Write(fake.Outs(p)))
		must(t, to.Readers()[0].Read(b))
		if len(b.Frames) != 1 || !bytes.Equal(b.Frames[0].Bytes(), p) || b.Frames[0].Headroom() != frame.Headroom {
			t.Fatalf("%d frames, the first of %d bytes, want %x", len(b.Frames), b.Frames[0].Len(), p)
		}
	}
	for i := range 300 {
		pass(x, y, fake.Ethernet(60+i, byte(i)))
		pass(y, x, fake.Ethernet(1000-i, byte(i)))
	}
	ended := make(chan error)
	go func() { ended <- y.Readers()[0].Read(b) }()
	y.Pause()
	if err := <-ended; !errors.Is(err, frame.ErrPaused) {
		t.Errorf("paused: %v", err)
	}
	y.Resume()
	go func() { ended <- y.Readers()[0].Read(b) }()
	y.Close()
	if err := <-ended; !errors.Is(err, net.ErrClosed) {
		t.Errorf("closed: %v", err)
	}
}
