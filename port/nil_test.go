package port

import (
	"errors"
	"io"
	"os"
	"testing"

	"github.com/vxswitch/vxswitch/frame"
)

// Decorators wrap nothing that is not there.
func TestNilPort(t *testing.T) {
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	c, err := NewCapture(nil)
	must(err)
	for name, p := range map[string]Port{"nil": nil, "nil pointer": (*Pipe)(nil)} {
		if _, err := NewBuffered(p, nil); err == nil {
			t.Errorf("Buffered: %s: no error", name)
		}
		if _, err := NewFaulty(p, nil); err == nil {
			t.Errorf("Faulty: %s: no error", name)
		}
		if _, err := c.Port(p); err == nil {
			t.Errorf("Capture: %s: no error", name)
		}
	}
	for name, w := range map[string]io.Writer{"nil": nil, "nil pointer": (*os.File)(nil)} {
		if err := c.Start(w); err == nil {
			t.Errorf("Capture.Start: %s: no error", name)
		}
	}
	for name, u := range map[string]Underlay{"nil": nil, "nil pointer": (*captureUnderlay)(nil)} {
		if x := c.Underlay(u); x != nil {
			t.Errorf("Capture.Underlay: %s: %v", name, x)
		}
	}
	for name, x := range map[string]io.ReadWriteCloser{"nil": nil, "nil pointer": (*os.File)(nil)} {
		r := FromReadWriteCloser(x, nil)
		if err := r.Readers()[0].Read(frame.NewBatch(nil)); err == nil || errors.Is(err, frame.ErrPaused) {
			t.Errorf("FromReadWriteCloser: %s: %v", name, err)
		}
		f := frame.Make(make([]byte, 60))
		out := []frame.Out{{F: &f}}
		if err := r.Writer(0).Write(out); err == nil && out[0].Drop == frame.NotDropped {
			t.Errorf("FromReadWriteCloser: %s: written", name)
		}
		must(r.Close())
	}
}
