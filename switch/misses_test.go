package vswitch

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vxswitch/vxswitch/fdb"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// bare returns an event without what the switch adds.
func bare(ev frame.Event) frame.Event {
	ev.Time, ev.Name, ev.OldName = time.Time{}, "", ""
	return ev
}

// next returns the events that wait in a queue.
func next(e *Events) (evs []frame.Event) {
	for {
		ctx, cancel := context.WithTimeout(context.Background(), time.Nanosecond)
		ev, err := e.Next(ctx)
		if cancel(); err != nil {
			return evs
		}
		evs = append(evs, bare(ev))
	}
}

// What a table beside the switch tells reaches every reader, in its order among the
// switch's own.
func TestNotify(t *testing.T) {
	inLab(t, func(l *lab) {
		moved := frame.Event{Kind: frame.EventNeighbourMoved, VNI: 1, MAC: mac(1), OldMAC: mac(2), Dest: frame.NewDest(3, 4)}
		l.s.Notify(moved) // to nobody
		readers := []*Events{l.s.Events(), l.s.Events()}
		learned := moved
		learned.Kind = frame.EventNeighbourLearned
		l.s.Notify(learned)
		l.s.Notify(moved)
		for _, e := range readers {
			if got := next(e); len(got) != 2 || got[0] != learned || got[1] != moved {
				t.Errorf("%+v", got)
			}
		}
		readers[0].Close()
		l.s.Notify(moved)
		if got := next(readers[1]); len(got) != 1 || got[0] != moved {
			t.Errorf("%+v", got)
		}
		readers[1].Close()
	})
}

// missLab has ports a and b, settings, and a way to count misses of mac(9).
func missLab(t *testing.T, cfg VSIConfig, test func(l *lab, a, b *stub, misses func(want int, frames ...[]byte))) {
	inLab(t, func(l *lab) {
		check.OK(t, l.v.Configure(cfg))
		a, at := l.port("a", 0)
		b, _ := l.port("b", 0)
		events := l.s.Events()
		defer events.Close()
		time.Sleep(50 * time.Millisecond)
		test(l, a, b, func(want int, frames ...[]byte) {
			t.Helper()
			a.send(frames...)
			n := 0
			for _, e := range next(events) {
				if e.Kind != frame.EventMACMiss {
					continue
				}
				n++
				if miss := (frame.Event{Kind: frame.EventMACMiss, VNI: 1, MAC: mac(9), Dest: at.Dest(0)}); e != miss {
					t.Errorf("%+v, want %+v", e, miss)
				}
			}
			if n != want {
				t.Errorf("at %d: %d misses, want %d", l.s.Tick(), n, want)
			}
		})
	})
}

// A MAC that nobody knows is told of once in MissTimeout, whatever happens to the segment
// meanwhile; the answer takes effect with the next frame.
func TestTellMisses(t *testing.T) {
	unknown := eth(mac(9), mac(1), 0x88b5)
	for timeout, seconds := range map[time.Duration]time.Duration{0: 5, time.Second: 1, 3 * time.Second: 3, 7 * time.Second: 7} {
		missLab(t, VSIConfig{TellMisses: true, MissTimeout: timeout}, func(l *lab, a, b *stub, misses func(int, ...[]byte)) {
			misses(1, unknown, unknown, unknown)
			misses(0, unknown)
			check.Equal(t, "frames flooded", len(b.sent()), 4)
			time.Sleep((seconds - 1) * time.Second)
			_, c := l.port("c", 0)
			check.OK(t, c.Configure(AttachConfig{NoLearn: true}))
			check.OK(t, c.Detach())
			if seconds > 1 {
				misses(0, unknown)
			}
			time.Sleep(time.Second)
			misses(1, unknown, unknown)
			time.Sleep(20 * time.Second)
			misses(1, unknown, unknown)
		})
	}
	missLab(t, VSIConfig{TellMisses: true}, func(l *lab, a, b *stub, misses func(int, ...[]byte)) {
		misses(0, eth(frame.Broadcast, mac(1), 0x88b5), eth(frame.MAC{1, 0, 0x5e, 0, 0, 1}, mac(1), 0x88b5), eth(frame.MAC{0x33, 0x33, 0, 0, 0, 1}, mac(1), 0x88b5))
		misses(0, eth(mac(1), mac(1), 0x88b5)) // known
		misses(1, unknown)
		_, c := l.port("c", 0)
		check.OK(t, l.v.FDB().Set(mac(9), c.Dest(0), fdb.Control))
		b.sent()
		misses(0, unknown)
		check.Equal(t, "frames flooded although the MAC is known", len(b.sent()), 0)
	})
	missLab(t, VSIConfig{TellMisses: true, NoFlood: UnknownUnicast}, func(l *lab, a, b *stub, misses func(int, ...[]byte)) {
		misses(1, unknown, unknown)
		check.Equal(t, "frames flooded", len(b.sent()), 0)
		// Other settings, at once.
		check.OK(t, l.v.Configure(VSIConfig{}))
		time.Sleep(time.Minute)
		misses(0, unknown)
		check.OK(t, l.v.Configure(VSIConfig{TellMisses: true, MissTimeout: 2 * time.Second}))
		misses(1, unknown)
		time.Sleep(2 * time.Second)
		misses(1, unknown)
	})
}

// What the switch itself sends is told of too, from port 0.
func TestOwnMisses(t *testing.T) {
	inLab(t, func(l *lab) {
		check.OK(t, l.v.Configure(VSIConfig{TellMisses: true}))
		l.port("a", 0)
		events := l.s.Events()
		defer events.Close()
		f := frame.Make(eth(mac(9), mac(1), 0x88b5))
		check.Need(t, l.s.Inject(l.v, &f), "not injected")
		synctest.Wait()
		if got := next(events); len(got) != 1 || got[0] != (frame.Event{Kind: frame.EventMACMiss, VNI: 1, MAC: mac(9)}) {
			t.Errorf("%+v", got)
		}
	})
}

func TestMissTimeout(t *testing.T) {
	inLab(t, func(l *lab) {
		for _, d := range []time.Duration{-1, -time.Second, 1, time.Second - 1} {
			cfg := VSIConfig{TellMisses: true, MissTimeout: d}
			_, err := l.s.VSI(9, &cfg)
			for _, err := range []error{err, l.v.Configure(cfg)} {
				if err == nil || !strings.HasPrefix(err.Error(), "vswitch: VSIConfig.MissTimeout: "+d.String()+": ") || strings.Contains(err.Error(), "\n") {
					t.Errorf("%v: %v", d, err)
				}
			}
		}
	})
}
