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

// However many MACs move, a reader hears what became of ports.
func TestEventsKeepPorts(t *testing.T) {
	s := must[*Switch](t)(New(&Config{Events: 16}))
	defer s.Close()
	e := s.Events()
	defer e.Close()
	for i := range 1_000_000 {
		s.Notify(frame.Event{Kind: frame.EventMACMoved, MAC: mac(byte(i))})
		if i%100_000 == 50_000 {
			s.Notify(frame.Event{Kind: frame.EventPortDown, Dest: frame.NewDest(uint16(i/100_000), 0)})
		}
	}
	var ports []uint16
	for {
		ev, ok, err := e.poll()
		if !ok || err != nil {
			break
		}
		if ev.Kind == frame.EventPortDown {
			ports = append(ports, ev.Dest.Port())
		}
	}
	if len(ports) < 7 || ports[0] != 0 {
		t.Errorf("heard of ports %v", ports)
	}
}
