package vswitch

import (
	"context"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// A reader that is too slow is told so once, and goes on with what came after; others miss
// nothing.
func TestEventsOverflow(t *testing.T) {
	s := check.Must(New(&Config{Events: 4}))(t)
	slow, fast := s.Events(), s.Events()
	defer slow.Close()
	defer fast.Close()
	next := func(e *Events) frame.Event { return check.Must(e.Next(context.Background()))(t) }
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
	check.Equal(t, "lost", s.Stats().EventsLost, 10)
	for _, n := range []int{-1, 1} {
		if _, err := New(&Config{Events: n}); err == nil {
			t.Errorf("Events %d", n)
		}
	}
	s.Close()
}

// However many MACs move, a reader hears what became of ports.
func TestEventsKeepPorts(t *testing.T) {
	s := check.Must(New(&Config{Events: 16}))(t)
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
	check.True(t, len(ports) >= 7 && ports[0] == 0, "heard of ports %v", ports)
}

// What is kept is older than what is lost: a MAC learned since a port came back is there after an overflow.
func TestEventsBeforeOverflow(t *testing.T) {
	s := check.Must(New(&Config{Events: 8}))(t)
	defer s.Close()
	e := s.Events()
	defer e.Close()
	v := check.Must(s.VSI(1, nil))(t)
	attach := func() *Attachment { return check.Must(v.Attach(newStub("p"), 0))(t) }
	a := attach()
	check.OK(t, a.Detach())
	if again := attach(); again.Dest(0) != a.Dest(0) {
		t.Fatalf("the port is %v, was %v", again.Dest(0), a.Dest(0))
	}
	v.FDB().Learn(mac(1), a.Dest(0), 0)
	v.FDB().Learn(mac(2), a.Dest(0), 0)
	var kinds []frame.EventKind
	for {
		ev, ok, _ := e.poll()
		if !ok {
			break
		}
		kinds = append(kinds, ev.Kind)
	}
	want := []frame.EventKind{frame.EventSegmentUp, frame.EventPortUp, frame.EventAttached, frame.EventOverflow, frame.EventMACLearned}
	if !slices.Equal(kinds, want) {
		t.Errorf("events %v, want %v", kinds, want)
	}
}

// A slow reader of events loses them as a whole, and is told.
func TestEventOverflow(t *testing.T) {
	inLab(t, func(l *lab) {
		slow, fast := l.s.Events(), l.s.Events()
		for range DefaultEvents {
			l.s.events.emit(frame.Event{Kind: frame.EventMACLearned})
		}
		if ev, err := fast.Next(context.Background()); err != nil || ev.Kind != frame.EventMACLearned {
			t.Errorf("%v, %v", ev, err)
		}
		l.s.events.emit(frame.Event{Kind: frame.EventMACAged})
		for i, want := range []frame.EventKind{frame.EventOverflow, frame.EventMACAged} {
			if ev, err := slow.Next(context.Background()); err != nil || ev.Kind != want {
				t.Errorf("event %d: %v, %v; want %v", i, ev.Kind, err, want)
			}
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		check.ErrorIs(t, "Next with nothing to tell", check.Err(slow.Next(ctx)), context.DeadlineExceeded)
		slow.Close()
		check.ErrorIs(t, "Next after Close", check.Err(slow.Next(context.Background())), net.ErrClosed)
	})
}
