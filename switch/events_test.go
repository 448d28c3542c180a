package vswitch

import (
	"context"
	"testing"

	"github.com/vxswitch/vxswitch/frame"
)

// A reader that is too slow is told so once, and goes on with what came after; others miss
// nothing.
func TestEventsOverflow(t *testing.T) {
	s := must[*Switch](t)(New(&Config{Events: 4}))
	slow, fast := s.Events(), s.Events()
	defer slow.Close()
	defer fast.Close()
	next := func(e *Events) frame.Event { return must[frame.Event](t)(e.Next(context.Background())) }
	for i := range byte(11) {
		s.Notify(frame.Event{Kind: frame.EventMACLearned, MAC: mac(i)})
		if e := next(fast); e.MAC != mac(i) {
			t.Errorf("event %d: %+v", i, e)
		}
	}
	// 4 fit, the fifth and the notice take their place, and so on: the last is left.
	if e := next(slow); e.Kind != frame.EventOverflow {
		t.Errorf("%+v", e)
	}
	if e := next(slow); e.MAC != mac(10) {
		t.Errorf("%+v", e)
	}
	if n := s.Stats().EventsLost; n != 10 {
		t.Errorf("%d lost", n)
	}
	for _, n := range []int{-1, 1} {
		if _, err := New(&Config{Events: n}); err == nil {
			t.Errorf("Events %d", n)
		}
	}
	s.Close()
}
