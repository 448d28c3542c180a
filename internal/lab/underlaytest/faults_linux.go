//go:build amd64 || arm64

package underlaytest

import (
	"errors"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/fault"
)

// Works checks that an underlay that was opened in spite of a fault can be read and paused, and
// closes it.
func Works(u Underlay) error {
	u.Pause()
	for _, r := range u.Readers() {
		if err := r.Read(frame.NewBatch(nil)); !errors.Is(err, frame.ErrPaused) {
			u.Close()
			return errors.New("a pause goes unnoticed: " + err.Error())
		}
	}
	return u.Close()
}

// Faults has each system call of a constructor fail, at host A. Its errors begin with the name of
// its package, and say what failed.
func Faults(t *testing.T, v *Veth, pkg string, open func() (Underlay, error)) {
	enter := func() error { // for good
		f, err := os.Open("/run/netns/" + v.A.NS)
		if err != nil {
			return err
		}
		defer f.Close()
		return unix.Setns(int(f.Fd()), unix.CLONE_NEWNET)
	}
	failed := 0
	fault.Each(t, enter, func() error {
		u, err := open()
		if err != nil {
			return err
		}
		return Works(u)
	}, func(x fault.Fault, err error) {
		if err == nil { // what is not needed has no error
			return
		}
		said, ok := strings.CutPrefix(err.Error(), pkg+": ")
		said = strings.TrimPrefix(said, `interface "eth0": `)
		if !ok || strings.HasPrefix(said, x.Errno.Error()) {
			t.Errorf("%v: %q does not say what failed", x, err)
		}
		failed++
	})
	if failed == 0 {
		t.Error("nothing was an error")
	}
}
