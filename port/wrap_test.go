package port

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/vxswitch/vxswitch/frame"
)

type fakeMover struct{}

func (fakeMover) SetLocal(netip.Addr) error { return nil }

type fakeReporter struct{}

func (fakeReporter) Unreachable(func(frame.Endpoint, []byte)) {}

type fakeGrouper struct{}

func (fakeGrouper) Join(netip.Addr) error  { return nil }
func (fakeGrouper) Leave(netip.Addr) error { return nil }

// What a decorator returns has what the thing it wraps has, and no more.
func TestDecoratorsHaveWhatTheyWrap(t *testing.T) {
	f := newFakeUnderlay("192.0.2.1:4789")
	c := newCapture(t, nil)
	has := func(x any) string {
		_, moves := x.(mover)
		_, reports := x.(reporter)
		_, groups := x.(grouper)
		_, pauses := x.(pauser)
		return fmt.Sprintf("SetLocal %v, Unreachable %v, Join %v, Pause %v", moves, reports, groups, pauses)
	}
	for _, u := range []Underlay{
		f,
		struct {
			*fakeUnderlay
			fakeMover
		}{f, fakeMover{}},
		struct {
			*fakeUnderlay
			fakeReporter
		}{f, fakeReporter{}},
		struct {
			*fakeUnderlay
			fakeGrouper
		}{f, fakeGrouper{}},
		struct {
			*fakeUnderlay
			fakeMover
			fakeReporter
		}{f, fakeMover{}, fakeReporter{}},
		struct {
			*fakeUnderlay
			fakeMover
			fakeGrouper
		}{f, fakeMover{}, fakeGrouper{}},
		struct {
			*fakeUnderlay
			fakeReporter
			fakeGrouper
		}{f, fakeReporter{}, fakeGrouper{}},
		struct {
			*fakeUnderlay
			fakeMover
			fakeReporter
			fakeGrouper
		}{f, fakeMover{}, fakeReporter{}, fakeGrouper{}},
	} {
		if got, want := has(c.Underlay(u)), has(u); got != want {
			t.Errorf("Capture.Underlay: %s, want %s", got, want)
		}
	}
	if c.Underlay(nil) != nil {
		t.Error("Capture.Underlay makes something of nothing")
	}
	for _, pauses := range []bool{false, true} {
		wrap := map[string]func(p Port) (Port, error){
			"Capture": c.Port,
			"Buffered": func(p Port) (Port, error) {
				b, err := NewBuffered(p, nil)
				return b.Port(), err
			},
			"Faulty": func(p Port) (Port, error) {
				f, err := NewFaulty(p, nil)
				return f.Port(), err
			},
		}
		for name, f := range wrap {
			var p Port = NewPipe(nil)
			if !pauses {
				p = struct{ Port }{p}
			}
			w, err := f(p)
			if err != nil {
				t.Fatal(err)
			}
			if got, want := has(w), has(p); got != want {
				t.Errorf("%s: %s, want %s", name, got, want)
			}
			w.Close()
		}
	}
}
