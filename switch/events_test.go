package vswitch

import (
	"context"
	"fmt"
	"net"
	"slices"
	"testing"
	"testing/synctest"
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

// Events say when, and the names of then: a port with the number of another has another name.
func TestEventNames(t *testing.T) {
	inLab(t, func(l *lab) {
		e := l.s.Events()
		defer e.Close()
		begun := time.Now()
		for i, name := range []string{"a", "b"} {
			time.Sleep(time.Second)
			p, at := l.port(name, 0)
			p.send(eth(frame.Broadcast, mac(1), 0x800))
			check.OK(t, at.Detach())
			if want := frame.NewDest(1, 0); at.Dest(0) != want {
				t.Fatalf("port %d is %v, want %v", i, at.Dest(0), want)
			}
		}
		tun := &stubTunnel{stub: newStub("tun")}
		at := check.Must(l.v.Attach(tun, 1))(t)
		tun.in <- [][]byte{fromPeer(7, 1, eth(frame.Broadcast, mac(2), 0x800))}
		synctest.Wait()
		l.s.Notify(frame.Event{Kind: frame.EventMACMoved, Dest: at.Dest(0), Old: at.Dest(7)})
		check.OK(t, at.Detach())
		l.s.Notify(frame.Event{Kind: frame.EventNeighbourMiss})
		var got []string
		for {
			ev, ok, _ := e.poll()
			if !ok {
				break
			}
			got = append(got, fmt.Sprintf("%v %v %q %q", ev.Time.Sub(begun), ev.Kind, ev.Name, ev.OldName))
		}
		check.Slice(t, "events", got, []string{
			`1s port-up "a" ""`, `1s attached "a" ""`, `1s mac-learned "a" ""`, `1s detached "a" ""`, `1s port-down "a" ""`,
			`2s port-up "b" ""`, `2s attached "b" ""`, `2s mac-learned "b" ""`, `2s detached "b" ""`, `2s port-down "b" ""`,
			`2s port-up "tun" ""`, `2s attached "tun" ""`, `2s mac-learned "peer" ""`, `2s mac-moved "tun" "peer"`,
			`2s detached "tun" ""`, `2s port-down "tun" ""`, `2s neighbour-miss "" ""`,
		})
	})
}

// BenchmarkEmit is an event with a reader, who is too slow.
func BenchmarkEmit(b *testing.B) {
	s, _ := New(nil)
	defer s.Close()
	v, _ := s.VSI(1, nil)
	a, _ := v.Attach(newStub("p"), 0)
	e := s.Events()
	defer e.Close()
	for b.Loop() {
		s.Notify(frame.Event{Kind: frame.EventMACLearned, Dest: a.Dest(0)})
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
