package vswitch

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// A MAC that moves to and fro is told of once a second, in an event and in the log, and where
// FlapHold says so the port it came to is taken out, and comes back.
func TestFlap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		l := &lab{t: t, s: check.Must(New(&Config{Log: slog.New(slog.NewTextHandler(&log, nil))}))(t), end: make(chan error, 1)}
		l.v = check.Must(l.s.VSI(1, nil))(t)
		go func() { l.end <- l.s.Run(context.Background()) }()
		defer l.s.Close()
		a, at := l.port("a", 0)
		b, bt := l.port("b", 0)
		o, _ := l.port("o", 0)
		events := l.s.Events()
		defer events.Close()
		told := func() (list []frame.Event) {
			for {
				switch e, ok, err := events.poll(); {
				case !ok || err != nil:
					return list
				case e.Kind == frame.EventMACFlapping || e.Kind == frame.EventPortHeld || e.Kind == frame.EventPortReleased:
					list = append(list, bare(e))
				}
			}
		}
		flap := func(n int, src byte) {
			for range n {
				a.send(eth(frame.Broadcast, mac(src), 0x800))
				b.send(eth(frame.Broadcast, mac(src), 0x800))
			}
		}
		time.Sleep(2500 * time.Millisecond) // in the middle of a tick
		flap(5, 1)
		if list := told(); len(list) != 0 {
			t.Errorf("9 moves: %v", list)
		}
		for range 3 {
			time.Sleep(time.Second)
			for src := byte(2); src < 20; src++ {
				flap(8, src)
			}
		}
		time.Sleep(time.Second)
		synctest.Wait() // the log is read
		list := told()
		check.Need(t, len(list) == 3, "%d events in three seconds: %v", len(list), list)
		if want := (frame.Event{Kind: frame.EventMACFlapping, VNI: 1, MAC: mac(2), Dest: bt.Dest(0), Old: at.Dest(0)}); list[0] != want {
			t.Errorf("%v, want %v", list[0], want)
		}
		if n := strings.Count(log.String(), "is flapping"); n != 3 || !strings.Contains(log.String(), "mac=02:00:00:00:00:02 at=b and=a") {
			t.Errorf("%d lines:\n%s", n, log.String())
		}

		check.OK(t, l.v.Configure(VSIConfig{FlapHold: 10 * time.Second}))
		b.send(eth(frame.Broadcast, mac(43), 0x800))
		a.send(eth(frame.Broadcast, mac(44), 0x800))
		flap(8, 40)
		want := []frame.Event{
			{Kind: frame.EventMACFlapping, VNI: 1, MAC: mac(40), Dest: bt.Dest(0), Old: at.Dest(0)},
			{Kind: frame.EventPortHeld, VNI: 1, MAC: mac(40), Dest: bt.Dest(0), Old: at.Dest(0)},
		}
		if list := told(); len(list) != 2 || list[0] != want[0] || list[1] != want[1] {
			t.Errorf("%v, want %v", list, want)
		}
		if d, ok := l.v.FDB().Lookup(mac(43)); ok {
			t.Errorf("a host heard at the port that is out before is still at %v", d)
		}
		if _, ok := l.v.FDB().Lookup(mac(44)); !ok {
			t.Error("a host at another port is forgotten")
		}
		o.sent()
		b.sent()
		before := l.drops(2)[frame.Flapping]
		b.send(eth(frame.Broadcast, mac(41), 0x800))
		if n := len(o.sent()); n != 0 || l.drops(2)[frame.Flapping] != before+1 {
			t.Errorf("the port that is out sends %d frames", n)
		}
		a.send(eth(frame.Broadcast, mac(42), 0x800))
		if n, m := len(o.sent()), len(b.sent()); n != 1 || m != 0 {
			t.Errorf("%d frames to another port, %d to the one that is out", n, m)
		}
		if st := l.s.Stats().VSIs[0]; st.Held != 1 || st.FDB.Flapped == 0 {
			t.Errorf("%+v", st)
		}
		time.Sleep(11 * time.Second)
		if list := told(); len(list) != 1 || list[0] != (frame.Event{Kind: frame.EventPortReleased, VNI: 1, Dest: bt.Dest(0)}) {
			t.Errorf("%v", list)
		}
		b.send(eth(frame.Broadcast, mac(41), 0x800))
		check.Equal(t, "frames of a port that is back", len(o.sent()), 1)
		l.wantAccounts()
	})
}
