package bfd

import (
	"strings"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/frr"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// FRR and ours: up, timers as agreed, and its operator's commands: new timers, and a session that is shut down, which is not a
// failure.
func TestFRR(t *testing.T) {
	t.Parallel()
	n := netns.New(t)
	a, b := n.Host("a"), n.Host("b")
	n.Link(a, "10.0.0.1/24,fd00::1/64", b, "10.0.0.2/24,fd00::2/64")
	a.Ready()
	b.Ready()
	const settings = "  detect-multiplier 5\n  receive-interval 200\n  transmit-interval 100\n"
	f := frr.Start(t, b, frr.Daemon{Name: "zebra"}, frr.Daemon{Name: "bfdd", Config: "bfd\n peer 10.0.0.1 interface eth0\n" + settings + " !\n peer fd00::1 local-address fd00::2 interface eth0\n" + settings + " !\n"})
	o := newOurs(t, a, UDPConfig{})
	for _, c := range []struct{ local, remote, name string }{
		{"10.0.0.1", "10.0.0.2", "peer 10.0.0.1 interface eth0"},
		{"fd00::1", "fd00::2", "peer fd00::1 local-address fd00::2 interface eth0"},
	} {
		p := o.add(c.local, c.remote, false, SessionConfig{Interval: 150 * time.Millisecond})
		o.want(Alive, NoDiag)
		b.Until("we have agreed", func() bool {
			s := o.session(p)
			return s.Interval == 200*time.Millisecond && s.Detection == 5*150*time.Millisecond
		})
		shown := func() string { return f.Do("show bfd " + c.name + " json") }
		b.Until("FRR is up", func() bool { return strings.Contains(shown(), `"status":"up"`) })

		f.Do("configure terminal", "bfd", c.name, "receive-interval 400", "transmit-interval 500")
		b.Until("other timers", func() bool {
			s := o.session(p)
			return s.Interval == 400*time.Millisecond && s.Detection == 5*500*time.Millisecond
		})
		must(t, o.s.Change(p, &SessionConfig{Interval: 700 * time.Millisecond, Notify: func(c Change) { o.c <- c }}))
		b.Until("FRR has heard of ours", func() bool {
			s := o.session(p)
			return s.Interval == 700*time.Millisecond && s.Detection == 5*700*time.Millisecond && strings.Contains(shown(), `"remote-receive-interval":700`)
		})

		f.Do("configure terminal", "bfd", c.name, "shutdown")
		o.want(Unknown, NeighborDown) // FRR 8.4.4 gives no reason in its packets
		check.Equal(t, "state of FRR", o.session(p).RemoteState, AdminDown)
		f.Do("configure terminal", "bfd", c.name, "no shutdown")
		o.want(Alive, NoDiag)

		// Ours is shut down: FRR shows that it knows.
		must(t, o.s.Change(p, &SessionConfig{AdminDown: true, Notify: func(c Change) { o.c <- c }}))
		o.want(Unknown, DiagAdminDown)
		b.Until("FRR is told", func() bool { return strings.Contains(shown(), `"status":"down"`) })
		must(t, o.s.Remove(p))
	}
	if st := o.s.Stats(); st.Discarded.Total() != st.Discarded[UnknownSession]+st.Discarded[UnknownPeer]+st.Discarded[HeldDown] {
		t.Errorf("%+v", st)
	}
}
