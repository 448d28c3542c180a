package port

import (
	"errors"
	"io"
	"os"
	"testing"

	"github.com/vxswitch/vxswitch/frame"
)

// Of nothing there is no port.
func TestNilPort(t *testing.T) {
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
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
}
