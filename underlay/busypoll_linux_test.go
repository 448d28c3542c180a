package underlay

import (
	"errors"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/frame"
)

// A reader that asks again at once reads what one reads that waits, and ends as it does.
func TestUDPBusyPoll(t *testing.T) {
	families(t, func(t *testing.T, la, lb string) {
		cfg := &UDPConfig{BusyPoll: time.Millisecond}
		a, b := listen(t, la, cfg), listen(t, lb, cfg)
		ea, eb := endpoint(t, a.LocalAddr()), endpoint(t, b.LocalAddr())
		for i := range 300 {
			ask, answer := fmt.Sprint("ask ", i), fmt.Sprint("answer ", i)
			send(t, a, to(ask, 0, eb))
			if r := receive(t, b, 1)[0]; r.Payload != ask {
				t.Fatalf("got %q, want %q", r.Payload, ask)
			}
			send(t, b, to(answer, 0, ea))
			if r := receive(t, a, 1)[0]; r.Payload != answer {
				t.Fatalf("got %q, want %q", r.Payload, answer)
			}
		}
		for _, r := range []*reader{a.readers[0], b.readers[0]} {
			if r.Poll.Max != cfg.BusyPoll {
				t.Error("BusyPoll has not arrived at the reader")
			}
		}
		ended := make(chan error)
		go func() { ended <- b.Readers()[0].Read(frame.NewBatch(nil)) }()
		b.Pause()
		if err := <-ended; !errors.Is(err, frame.ErrPaused) {
			t.Errorf("paused: %v", err)
		}
		b.Resume()
		go func() { ended <- b.Readers()[0].Read(frame.NewBatch(nil)) }()
		b.Close()
		if err := <-ended; !errors.Is(err, net.ErrClosed) {
			t.Errorf("closed: %v", err)
		}
	})
}
